//! Validation of a database's properties: ten types, each with its settings.

use cairn_chassis::wording::{self, Unit};
use cairn_proto::domain::limits::NAME_CHARS;
use std::collections::HashSet;

use cairn_proto::ids::DatabaseId;

use crate::checks::Checks;
use crate::model::{PropertyOption, PropertySettings, PropertyType, fold};

pub(super) const MAX_PROPERTIES: usize = 200;
pub(crate) const MAX_OPTIONS: usize = 500;
const MAX_COLOR_CHARS: usize = 50;

/// An option in a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct OptionDraft {
    /// Empty for a new option, and for an existing one that is identified by name.
    pub(crate) id: String,
    pub(crate) name: String,
    /// Absent leaves it unchanged.
    pub(crate) color: Option<String>,
}

/// Settings in a request; absent fields stay unchanged.
#[derive(Debug, Clone, Default)]
pub(crate) struct SettingsDraft {
    /// Replaces the whole list.
    pub(crate) options: Option<Vec<OptionDraft>>,
    pub(crate) multiple: Option<bool>,
    pub(crate) relation_database_id: Option<String>,
}

/// A property to be created.
#[derive(Debug, Clone)]
pub(crate) struct PropertyDraft {
    pub(crate) name: String,
    /// Absent if the request has none, or an unknown one.
    pub(crate) kind: Option<PropertyType>,
    pub(crate) config: Option<SettingsDraft>,
}

/// Changes to a property; absent fields stay unchanged.
#[derive(Debug, Clone, Default)]
pub(crate) struct PropertyPatch {
    pub(crate) name: Option<String>,
    pub(crate) config: Option<SettingsDraft>,
    pub(crate) position: Option<u32>,
    /// Whether the field mask names the type, which is immutable.
    pub(crate) names_type: bool,
    pub(crate) unknown_fields: Vec<String>,
}

/// Validates the name of a property, view or option. Unlike item names it is no path segment, so it may contain a slash.
pub(crate) fn check_label(checks: &mut Checks, path: &str, name: &str) {
    if name.trim().is_empty() {
        checks.violation(path, "required", "give a name");
    } else if name.chars().count() > NAME_CHARS {
        checks.violation(path, "too_long", wording::at_most(NAME_CHARS, Unit::Characters));
    }
    if name.contains(char::is_control) {
        checks.violation(path, "invalid", wording::NO_CONTROL_CHARACTERS);
    }
}

/// Validates settings for a property type; `before` are the current ones.
pub(super) fn check_settings(
    checks: &mut Checks,
    kind: PropertyType,
    draft: SettingsDraft,
    before: Option<&PropertySettings>,
    mut new_id: impl FnMut() -> String,
) -> PropertySettings {
    if !kind.has_options() && draft.options.as_ref().is_some_and(|options| !options.is_empty()) {
        let message = format!("only select and multi_select have options, not {}", kind.as_str());
        checks.violation("config.options", "invalid", message);
    }
    let was_multiple = before.is_some_and(|settings| settings.multiple);
    let multiple = draft.multiple.unwrap_or(was_multiple);
    if !kind.is_reference() && multiple {
        let message = format!("only references and relations may be multiple, not {}", kind.as_str());
        checks.violation("config.multiple", "invalid", message);
    }
    let known: &[PropertyOption] = before.map_or(&[], |settings| &settings.options);
    let options = match draft.options {
        Some(drafts) if kind.has_options() => check_options(checks, drafts, known, &mut new_id),
        _ => known.to_vec(),
    };
    if was_multiple && !multiple {
        let message = "records may hold several ids by now: it stays multiple";
        checks.violation("config.multiple", "invalid", message);
    }
    let relation_database_id = check_relation(checks, kind, draft.relation_database_id.as_deref(), before);
    PropertySettings { options, multiple: multiple && kind.is_reference(), relation_database_id }
}

fn check_relation(
    checks: &mut Checks,
    kind: PropertyType,
    text: Option<&str>,
    before: Option<&PropertySettings>,
) -> Option<DatabaseId> {
    const PATH: &str = "config.relationDatabaseId";
    let given: Option<DatabaseId> = checks.optional_id(PATH, text);
    let known = before.and_then(|settings| settings.relation_database_id);
    if kind != PropertyType::Relation {
        if text.is_some() {
            let message = format!("only a relation names a database, not {}", kind.as_str());
            checks.violation(PATH, "invalid", message);
        }
        return None;
    }
    if text.is_none() && known.is_none() {
        checks.violation(PATH, "required", "a relation names the database whose records it holds");
    }
    if known.is_some() && given.is_some() && given != known {
        checks.violation(PATH, "invalid", "the database of a relation is fixed: add another property");
    }
    given.or(known)
}

fn check_options(
    checks: &mut Checks,
    drafts: Vec<OptionDraft>,
    known: &[PropertyOption],
    new_id: &mut impl FnMut() -> String,
) -> Vec<PropertyOption> {
    if drafts.len() > MAX_OPTIONS {
        checks.violation("config.options", "too_many", wording::at_most(MAX_OPTIONS, Unit::Options));
        return Vec::new();
    }
    let named_by_id: HashSet<String> = drafts.iter().map(|draft| draft.id.clone()).collect();
    let mut names = HashSet::new();
    let mut ids = HashSet::new();
    let mut options = Vec::with_capacity(drafts.len());
    for (place, draft) in drafts.into_iter().enumerate() {
        let at = format!("config.options[{place}]");
        check_label(checks, &format!("{at}.name"), &draft.name);
        if !names.insert(fold(&draft.name)) {
            checks.violation(&format!("{at}.name"), "duplicate", "another option has that name");
        }
        let color = draft.color.as_deref().unwrap_or_default();
        if color.chars().count() > MAX_COLOR_CHARS || color.contains(char::is_control) {
            let message = format!("a color is a word of at most {MAX_COLOR_CHARS} characters");
            checks.violation(&format!("{at}.color"), "invalid", message);
        }
        // An option without an id matches an existing one by name, as agents know names rather than ids.
        let folded = fold(&draft.name);
        let found = match draft.id.as_str() {
            "" => known.iter().find(|one| !named_by_id.contains(&one.id) && fold(&one.name) == folded),
            id => known.iter().find(|option| option.id == id),
        };
        if found.is_none() && !draft.id.is_empty() {
            let message = "no such option: leave the id out to make a new one";
            checks.violation(&format!("{at}.id"), "invalid", message);
        }
        let id = found.map_or_else(&mut *new_id, |option| option.id.clone());
        if !ids.insert(id.clone()) {
            checks.violation(&format!("{at}.id"), "duplicate", "the option is there twice");
        }
        let color = draft.color.or_else(|| found.map(|option| option.color.clone())).unwrap_or_default();
        options.push(PropertyOption { id, name: draft.name, color });
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    fn checked(
        kind: PropertyType,
        draft: SettingsDraft,
        before: Option<&PropertySettings>,
    ) -> (PropertySettings, Vec<String>) {
        let mut checks = Checks::default();
        let mut next = 0;
        let settings = check_settings(&mut checks, kind, draft, before, || {
            next += 1;
            format!("option-{next}")
        });
        let paths = match checks.finish() {
            Err(Error::Invalid(violations)) => violations.into_iter().map(|found| found.path).collect(),
            _ => Vec::new(),
        };
        (settings, paths)
    }

    fn option(id: &str, name: &str) -> OptionDraft {
        OptionDraft { id: id.into(), name: name.into(), color: None }
    }

    #[test]
    fn options_keep_their_ids() {
        let draft = SettingsDraft {
            options: Some(vec![option("", "Open"), option("", "Done")]),
            ..SettingsDraft::default()
        };
        let (before, paths) = checked(PropertyType::Select, draft, None);
        assert!(paths.is_empty(), "{paths:?}");
        let draft = SettingsDraft {
            options: Some(vec![option("option-2", "Finished"), option("", "OPEN")]),
            ..SettingsDraft::default()
        };
        let (after, paths) = checked(PropertyType::Select, draft, Some(&before));
        assert!(paths.is_empty(), "{paths:?}");
        let (first, second) = (&after.options[0], &after.options[1]);
        assert_eq!((first.id.as_str(), first.name.as_str()), ("option-2", "Finished"));
        assert_eq!((second.id.as_str(), second.name.as_str()), ("option-1", "OPEN"));
        let (unchanged, paths) = checked(PropertyType::Select, SettingsDraft::default(), Some(&after));
        assert_eq!((unchanged, paths), (after, vec![]));
    }

    #[test]
    fn a_name_means_no_option_that_an_id_names() {
        let before = PropertySettings {
            options: ["a", "b"]
                .map(|id| PropertyOption { id: id.into(), name: id.into(), color: "red".into() })
                .into(),
            ..PropertySettings::default()
        };
        let swapped = SettingsDraft {
            options: Some(vec![option("a", "b"), option("", "a")]),
            ..SettingsDraft::default()
        };
        let (after, paths) = checked(PropertyType::Select, swapped, Some(&before));
        assert!(paths.is_empty(), "{paths:?}");
        let found: Vec<_> = after
            .options
            .iter()
            .map(|one| (one.id.as_str(), one.name.as_str(), one.color.as_str()))
            .collect();
        assert_eq!(found, [("a", "b", "red"), ("option-1", "a", "")]);
    }

    #[test]
    fn settings_fit_their_type() {
        let everything = || SettingsDraft {
            options: Some(vec![option("", "a"), option("", "A"), option("x", "")]),
            multiple: Some(true),
            relation_database_id: Some("no id".into()),
        };
        let (_, paths) = checked(PropertyType::Select, everything(), None);
        for path in
            ["config.multiple", "config.options[1].name", "config.options[2].id", "config.relationDatabaseId"]
        {
            assert!(paths.iter().any(|found| found == path), "{path} {paths:?}");
        }
        let (_, paths) = checked(PropertyType::Relation, SettingsDraft::default(), None);
        assert_eq!(paths, ["config.relationDatabaseId"]);
        let before = PropertySettings { multiple: true, ..PropertySettings::default() };
        let single = SettingsDraft { multiple: Some(false), ..SettingsDraft::default() };
        let (_, paths) = checked(PropertyType::FileReference, single, Some(&before));
        assert_eq!(paths, ["config.multiple"]);
    }
}
