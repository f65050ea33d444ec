//! Plans a search: which sources it uses, by its mode, its source filter and its caller (spec 4.4).

use cairn_proto::retrieval::v1::CoverageNote;
use uuid::Uuid;

use super::answer;
use super::request::Mode;

/// How the documents of a connected source are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeping {
    /// Bodies are indexed.
    Indexed,
    /// Only titles are indexed; bodies are fetched when they match.
    Catalog,
    /// Nothing is indexed; the provider is queried.
    Live,
}

/// A source that is connected to the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) id: Uuid,
    pub(super) keeping: Keeping,
}

/// The plan of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// The connected sources whose indexed documents are searched; `None` for everything that the caller may see.
    pub(super) retained: Option<Vec<Uuid>>,
    /// The sources whose catalogs are searched; `None` for all.
    pub(super) catalogs: Option<Vec<Uuid>>,
    /// The live sources, whose providers are queried.
    pub(super) live: Vec<Uuid>,
    /// Notes on requested sources that are left out.
    pub(super) notes: Vec<CoverageNote>,
}

impl Plan {
    /// The plan for a mode and the sources that the request names (none for everything). `connected` are the
    /// workspace's sources, none of which a folder-scoped caller may see.
    pub(super) fn new(mode: Mode, named: &[String], connected: &[Source], is_scoped: bool) -> Self {
        let visible = if is_scoped { &[] } else { connected };
        let chosen: Vec<Source> =
            visible.iter().filter(|source| named.is_empty() || names(named, source)).copied().collect();
        let of =
            |keeping| chosen.iter().filter(move |source| source.keeping == keeping).map(|source| source.id);
        let absent = named.iter().filter(|id| !visible.iter().any(|source| is_named(id, source)));
        let note = |id: &String| match is_scoped {
            true => answer::source_out_of_scope(id),
            false => answer::source_not_connected(id),
        };
        Self {
            retained: (!named.is_empty()).then(|| of(Keeping::Indexed).collect()),
            catalogs: match mode {
                Mode::Balanced | Mode::Fresh if named.is_empty() && !is_scoped => None,
                Mode::Balanced | Mode::Fresh => Some(of(Keeping::Catalog).collect()),
                Mode::Fast => Some(Vec::new()),
            },
            live: if mode == Mode::Fresh { of(Keeping::Live).collect() } else { Vec::new() },
            notes: absent.map(note).collect(),
        }
    }

    /// The plan for one source alone.
    pub(super) fn of_one(source: Source) -> Self {
        let of = |keeping| if source.keeping == keeping { vec![source.id] } else { Vec::new() };
        Self {
            retained: Some(of(Keeping::Indexed)),
            catalogs: Some(of(Keeping::Catalog)),
            live: of(Keeping::Live),
            notes: Vec::new(),
        }
    }

    /// The plan when the connected sources are unknown: a search of named sources finds nothing.
    pub(super) fn without_sources(named: &[String]) -> Self {
        Self {
            retained: (!named.is_empty()).then(Vec::new),
            catalogs: Some(Vec::new()),
            live: Vec::new(),
            notes: vec![answer::outside_unanswered()],
        }
    }

    /// Whether there may be catalogs to consult.
    pub(super) fn consults_catalogs(&self) -> bool {
        self.catalogs.as_ref().is_none_or(|sources| !sources.is_empty())
    }

    /// Whether there is anything in the index to search.
    pub(super) fn searches_the_index(&self) -> bool {
        self.retained.as_ref().is_none_or(|sources| !sources.is_empty())
    }
}

fn names(named: &[String], source: &Source) -> bool {
    named.iter().any(|id| is_named(id, source))
}

fn is_named(id: &str, source: &Source) -> bool {
    Uuid::try_parse(id) == Ok(source.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCES: [Source; 3] = [
        Source { id: Uuid::from_u128(1), keeping: Keeping::Indexed },
        Source { id: Uuid::from_u128(2), keeping: Keeping::Catalog },
        Source { id: Uuid::from_u128(3), keeping: Keeping::Live },
    ];

    fn ids(numbers: &[u128]) -> Vec<Uuid> {
        numbers.iter().map(|number| Uuid::from_u128(*number)).collect()
    }

    fn named(numbers: &[u128]) -> Vec<String> {
        ids(numbers).iter().map(Uuid::to_string).collect()
    }

    #[test]
    fn a_mode_says_how_far_sources_are_consulted() {
        let plan = |mode| Plan::new(mode, &[], &SOURCES, false);
        let consulted = |mode| (plan(mode).catalogs, plan(mode).live);
        assert_eq!(consulted(Mode::Fast), (Some(ids(&[])), ids(&[])));
        assert_eq!(consulted(Mode::Balanced), (None, ids(&[])));
        assert_eq!(consulted(Mode::Fresh), (None, ids(&[3])));
        assert!(plan(Mode::Balanced).consults_catalogs() && !plan(Mode::Fast).consults_catalogs());
        assert!(plan(Mode::Fresh).searches_the_index() && plan(Mode::Fresh).retained.is_none());
        assert_eq!(plan(Mode::Fresh).notes, []);
    }

    #[test]
    fn named_sources_are_all_that_is_consulted() {
        let plan = Plan::new(Mode::Fresh, &named(&[1, 3]), &SOURCES, false);
        assert_eq!((plan.retained, plan.catalogs, plan.live), (Some(ids(&[1])), Some(ids(&[])), ids(&[3])));
        let plan = Plan::new(Mode::Balanced, &named(&[2]), &SOURCES, false);
        assert!(!plan.searches_the_index() && plan.consults_catalogs());
        assert_eq!(plan.catalogs, Some(ids(&[2])));
    }

    #[test]
    fn what_is_not_there_is_said() {
        let asked = [named(&[1, 9]), vec!["wiki".to_owned()]].concat();
        let plan = Plan::new(Mode::Balanced, &asked, &SOURCES, false);
        let told: Vec<(&str, &str)> = plan
            .notes
            .iter()
            .map(|note| (note.code.as_str(), note.source_id.as_deref().unwrap_or_default()))
            .collect();
        assert_eq!(told, [("source_excluded", named(&[9])[0].as_str()), ("source_excluded", "wiki")]);
    }

    #[test]
    fn one_source_is_consulted_where_it_keeps_what_it_has() {
        let plans = SOURCES.map(Plan::of_one);
        let consulted = plans.map(|plan| (plan.searches_the_index(), plan.consults_catalogs(), plan.live));
        assert_eq!(consulted, [(true, false, ids(&[])), (false, true, ids(&[])), (false, false, ids(&[3]))]);
    }

    #[test]
    fn where_nobody_knows_the_sources_the_rest_is_searched() {
        let codes = |plan: &Plan| plan.notes.iter().map(|note| note.code.clone()).collect::<Vec<_>>();
        let (all, some) = (Plan::without_sources(&[]), Plan::without_sources(&named(&[1])));
        assert!(all.searches_the_index() && !some.searches_the_index());
        assert_eq!((codes(&all), codes(&some)), (vec!["provider_unavailable".to_owned()], codes(&all)));
    }

    #[test]
    fn a_folder_scoped_caller_has_no_sources() {
        let plan = Plan::new(Mode::Fresh, &named(&[1]), &SOURCES, true);
        assert!(!plan.searches_the_index());
        assert_eq!(plan.notes.iter().map(|note| note.code.as_str()).collect::<Vec<_>>(), ["out_of_scope"]);
        let plan = Plan::new(Mode::Fresh, &[], &SOURCES, true);
        assert!(plan.searches_the_index() && !plan.consults_catalogs());
        assert!(plan.live.is_empty() && plan.notes.is_empty());
    }
}
