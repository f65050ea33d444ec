//! A search request in the service's own words, and its rules (spec 4.4).

use std::sync::Arc;
use std::time::Duration;

use cairn_browse::Moment;
use cairn_chassis::status::Violation;
use cairn_chassis::wording::{self, Unit};
use cairn_index::ParsedQuery;
use cairn_proto::domain::Feed;
use cairn_proto::domain::limits::{QUERY_CHARS, RESULTS, SOURCES, SUBQUERIES};
pub(crate) use cairn_proto::domain::{Detail, Mode, Strategy, SubqueryType};
use cairn_proto::retrieval::v1::{self as proto, SearchContextRequest};

use super::narrowing::Narrowing;
use super::{DEFAULT_WAIT, MAX_WAIT};
use crate::error::Error;

const DEFAULT_LIMIT: usize = 10;
/// Each is looked up for every list of a search, and none may be left out silently: a query that repeats `-x` through all
/// of its 10 000 characters would keep a core for seconds.
const MAX_EXCLUSIONS: usize = 64;

/// A typed sub-query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subquery {
    /// How it is searched.
    pub kind: SubqueryType,
    /// Its text.
    pub text: QueryText,
}

/// The text of a query in websearch syntax, parsed once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueryText {
    /// As it was given.
    pub given: String,
    /// Its words, phrases and exclusions.
    pub parsed: Arc<ParsedQuery>,
}

/// A write that the search must see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct After {
    /// The feed; `None` if no service has one of that name.
    pub feed: Option<Feed>,
    /// The position in it.
    pub position: u64,
}

/// A checked search request.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchRequest {
    /// The query.
    pub query: QueryText,
    /// Which lists answer it when there are no sub-queries.
    pub strategy: Strategy,
    /// The sub-queries.
    pub searches: Vec<Subquery>,
    /// How far sources are consulted.
    pub mode: Mode,
    /// The connected sources to search in; empty for everything.
    pub source_ids: Vec<String>,
    /// Results at most, 1 to 50.
    pub limit: usize,
    /// Scores below are dropped.
    pub min_score: f64,
    /// Approximate tokens of content at most.
    pub token_budget: Option<usize>,
    /// How much of what was found is shown.
    pub detail: Detail,
    /// Whether scores are explained.
    pub explain: bool,
    /// The writes to wait for.
    pub after: Vec<After>,
    /// How long to wait for them.
    pub max_wait: Duration,
    /// Which documents may be found.
    pub narrowing: Narrowing,
    /// The past moment that is searched; `None` for now.
    pub moment: Option<Moment>,
}

impl SearchRequest {
    /// The filters that owners apply, who know only the present. A search of the past filters by folder with the past tree instead,
    /// since the folder may have been moved.
    pub(super) fn narrowing_of_now(&self) -> Narrowing {
        let folder_id = self.narrowing.folder_id.clone().filter(|_| self.moment.is_none());
        Narrowing { folder_id, ..self.narrowing.clone() }
    }
}

impl TryFrom<SearchContextRequest> for SearchRequest {
    type Error = Error;

    /// Checks a request; all violations at once.
    fn try_from(request: SearchContextRequest) -> Result<Self, Error> {
        let (query, searches) = checked(&request).map_err(Error::Invalid)?;
        let strategy = Strategy::from_number(request.strategy).unwrap_or(Strategy::Hybrid);
        let max_wait = max_wait(request.max_wait.as_ref());
        let (mode, narrowing) = match request.when {
            None => (Mode::from_number(request.mode).unwrap_or(Mode::Balanced), Narrowing::of(&request)),
            // Providers have no past versions.
            Some(_) => (Mode::Fast, Narrowing::of(&request).of_past()),
        };
        Ok(Self {
            narrowing,
            strategy,
            searches,
            mode,
            limit: limit(&request),
            min_score: request.min_score.unwrap_or(0.0),
            token_budget: usize::try_from(request.token_budget).ok().filter(|budget| *budget > 0),
            detail: Detail::from_number(request.detail).unwrap_or_default(),
            explain: request.explain,
            after: request.after.into_iter().map(After::from).collect(),
            max_wait,
            query,
            source_ids: request.source_ids,
            moment: request.when.map(Moment::from),
        })
    }
}

impl From<proto::FeedPosition> for After {
    fn from(position: proto::FeedPosition) -> Self {
        Self { feed: position.feed.parse().ok(), position: position.position }
    }
}

/// How long to wait, when the caller may ask for so much.
pub(super) fn max_wait(asked: Option<&prost_types::Duration>) -> Duration {
    asked.map_or(DEFAULT_WAIT, |wait| Duration::try_from(*wait).unwrap_or_default().min(MAX_WAIT))
}

fn limit(request: &SearchContextRequest) -> usize {
    match usize::try_from(request.limit) {
        Ok(0) | Err(_) => DEFAULT_LIMIT,
        Ok(limit) => limit,
    }
}

/// The texts of a request that breaks no rule; otherwise every rule that it breaks.
fn checked(request: &SearchContextRequest) -> Result<(QueryText, Vec<Subquery>), Vec<Violation>> {
    let mut violations = Vec::new();
    let query = text("query", &request.query).map_err(|violation| violations.push(violation)).ok();
    if limit(request) > RESULTS {
        violations.push(Violation::new("limit", "out_of_range", wording::between(1, RESULTS)));
    }
    if request.searches.len() > SUBQUERIES {
        let message = wording::at_most(SUBQUERIES, Unit::SubQueries);
        violations.push(Violation::new("searches", "too_many", message));
    }
    let mut searches = Vec::new();
    for (place, search) in request.searches.iter().take(SUBQUERIES).enumerate() {
        let kind = SubqueryType::from_number(search.r#type);
        if kind.is_none() {
            let path = format!("searches[{place}].type");
            violations.push(Violation::new(path, "invalid", "must be one of: lex, vec, hyde"));
        }
        let text = text(&format!("searches[{place}].text"), &search.text);
        let text = text.map_err(|violation| violations.push(violation)).ok();
        searches.extend(kind.zip(text).map(|(kind, text)| Subquery { kind, text }));
    }
    if request.source_ids.len() > SOURCES {
        let message = wording::at_most(SOURCES, Unit::Sources);
        violations.push(Violation::new("sourceIds", "too_many", message));
    }
    violations.extend(Narrowing::violations(request));
    violations.extend(past_violations(request));
    if request.min_score.is_some_and(|score| !(0.0..=1.0).contains(&score)) {
        violations.push(Violation::new(
            "minScore",
            "out_of_range",
            "must be between 0 and 1: scores are normalised",
        ));
    }
    query.filter(|_| violations.is_empty()).map(|query| (query, searches)).ok_or(violations)
}

/// What cannot be asked of a workspace of then: what is known as it is now only.
fn past_violations(request: &SearchContextRequest) -> Vec<Violation> {
    if request.when.is_none() {
        return Vec::new();
    }
    let given = [
        ("sourceIds", !request.source_ids.is_empty()),
        ("updatedAfter", request.updated_after.is_some()),
        ("updatedBefore", request.updated_before.is_some()),
        ("kinds", Narrowing::of(request).of_past().kinds.is_empty()),
    ];
    let message = "cannot be given with asOf: that is known as it is now only";
    let given = given.into_iter().filter(|(_, is_given)| *is_given);
    given.map(|(path, _)| Violation::new(path, "conflict", message)).collect()
}

/// What does not go with a moment at all.
pub(crate) fn unsupported_moment(request: &SearchContextRequest) -> Option<Violation> {
    let message = "is for searches by themselves: this asks about what is there now";
    request.when.is_some().then(|| Violation::new("asOf", "unsupported", message))
}

fn text(path: &str, given: &str) -> Result<QueryText, Violation> {
    if given.trim().is_empty() {
        return Err(Violation::new(path, "required", wording::EMPTY));
    }
    if given.chars().count() > QUERY_CHARS {
        let message = wording::at_most(QUERY_CHARS, Unit::Characters);
        return Err(Violation::new(path, "too_long", message));
    }
    if given.contains('\0') {
        return Err(Violation::new(path, "invalid", wording::NO_NUL));
    }
    let parsed = ParsedQuery::parse(given);
    if parsed.excluded().len() > MAX_EXCLUSIONS {
        let message = wording::at_most(MAX_EXCLUSIONS, Unit::Exclusions);
        return Err(Violation::new(path, "too_many", message));
    }
    Ok(QueryText { given: given.to_owned(), parsed: Arc::new(parsed) })
}

#[cfg(test)]
mod tests {
    use cairn_proto::feed::v1::Kind;

    use super::*;

    #[test]
    fn all_violations_come_at_once() {
        let request = SearchContextRequest {
            query: " ".into(),
            limit: 51,
            min_score: Some(f64::NAN),
            searches: vec![proto::Subquery::default(); 9],
            ..SearchContextRequest::default()
        };
        let Err(Error::Invalid(violations)) = SearchRequest::try_from(request) else {
            panic!("it was accepted")
        };
        let paths: Vec<&str> = violations.iter().map(|violation| violation.path.as_str()).collect();
        for expected in ["query", "limit", "minScore", "searches", "searches[7].type", "searches[0].text"] {
            assert!(paths.contains(&expected), "{expected} is not in {paths:?}");
        }
        // What is too many is not looked at.
        assert!(!paths.contains(&"searches[8].type"), "{paths:?}");
    }

    #[test]
    fn of_then_only_what_is_known_can_be_asked() {
        let of_then = |request: SearchContextRequest| {
            let when = Some(proto::search_context_request::When::AfterChange(1));
            SearchRequest::try_from(SearchContextRequest { query: "q".into(), when, ..request })
        };
        let kinds = |kinds: &[Kind]| SearchContextRequest {
            kinds: kinds.iter().map(|kind| i32::from(*kind)).collect(),
            mode: proto::Mode::Fresh.into(),
            ..SearchContextRequest::default()
        };
        let asked = of_then(kinds(&[])).unwrap();
        assert_eq!((asked.moment, asked.mode), (Some(Moment::After(1)), Mode::Fast));
        assert_eq!(asked.narrowing.kinds.len(), 3);
        let asked = of_then(kinds(&[Kind::Ingested, Kind::Record])).unwrap();
        assert_eq!(asked.narrowing.kinds, [i32::from(Kind::Record)]);
        let folder_id = Some("x".to_owned());
        let inside = SearchContextRequest { folder_id, tags: vec!["a".into()], ..kinds(&[]) };
        let asked = of_then(inside.clone()).unwrap();
        assert_eq!(
            (asked.narrowing.folder_id.as_deref(), asked.narrowing_of_now().folder_id),
            (Some("x"), None)
        );
        assert_eq!(asked.narrowing_of_now().tags, ["a"]);
        let now = SearchRequest::try_from(SearchContextRequest { query: "q".into(), ..inside }).unwrap();
        assert_eq!(now.narrowing_of_now(), now.narrowing);
        let refused = SearchContextRequest {
            source_ids: vec!["x".into()],
            updated_after: Some(prost_types::Timestamp::default()),
            ..kinds(&[Kind::Ingested])
        };
        let Err(Error::Invalid(violations)) = of_then(refused) else { panic!("it was accepted") };
        let paths: Vec<&str> = violations.iter().map(|violation| violation.path.as_str()).collect();
        assert_eq!(paths, ["sourceIds", "updatedAfter", "kinds"]);
    }

    #[test]
    fn exclusions_are_bounded() {
        let check = |count: usize| {
            let query = format!("word {}", "-x ".repeat(count));
            SearchRequest::try_from(SearchContextRequest { query, ..SearchContextRequest::default() })
        };
        assert!(check(MAX_EXCLUSIONS).is_ok());
        let Err(Error::Invalid(violations)) = check(MAX_EXCLUSIONS + 1) else { panic!("it was accepted") };
        assert_eq!((violations[0].path.as_str(), violations[0].code.as_str()), ("query", "too_many"));
    }

    #[test]
    fn the_boundaries_are_accepted() {
        let request = SearchContextRequest {
            query: "q".repeat(QUERY_CHARS),
            limit: 50,
            min_score: Some(1.0),
            ..SearchContextRequest::default()
        };
        let checked = SearchRequest::try_from(request).unwrap();
        assert_eq!((checked.limit, checked.strategy, checked.mode), (50, Strategy::Hybrid, Mode::Balanced));
        assert_eq!(checked.max_wait, DEFAULT_WAIT);
    }
}
