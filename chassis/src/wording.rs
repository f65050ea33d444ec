//! The messages of violations that every service reports: one table, so that people and agents read the same sentence for
//! the same rule everywhere. Each continues the name of a field: `tags` "may have at most 50 entries".

use std::fmt::Display;

/// The unit of a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Characters of a text.
    Characters,
    /// Bytes.
    Bytes,
    /// Elements of a list without a more specific name.
    Entries,
    /// Fields of an object.
    Fields,
    /// Conditions of a filter.
    Conditions,
    /// Levels of nesting.
    Levels,
    /// Members of a memory.
    Members,
    /// Options of a select property.
    Options,
    /// Properties of a database.
    Properties,
    /// Views of a database.
    Views,
    /// Filters of a view.
    Filters,
    /// Sort keys.
    Sorts,
    /// Tags of a file.
    Tags,
    /// Writes of a batch.
    Writes,
    /// Documents of one call.
    Documents,
    /// Sub-queries of a search.
    SubQueries,
    /// Connected sources.
    Sources,
    /// Webhooks of a workspace.
    Webhooks,
    /// Folders.
    Folders,
    /// Excluded words of a search.
    Exclusions,
    /// Lines of a text.
    Lines,
    /// Files.
    Files,
    /// Records of a database.
    Records,
    /// Results of a search.
    Results,
    /// Further ones of these.
    FurtherResults,
    /// Ranges of lines beyond those that are named.
    MoreRanges,
    /// Changes of a workspace.
    Changes,
    /// Secrets at rest.
    Secrets,
    /// Findings of a check.
    Faults,
    /// Violations of a call.
    Problems,
    /// Files that are near a known one.
    RelatedFiles,
    /// Reports of feedback.
    Reports,
    /// OAuth clients that registered themselves.
    RegisteredClients,
}

impl Unit {
    /// Every unit, for tests.
    pub const ALL: [Self; 33] = [
        Self::Characters,
        Self::Bytes,
        Self::Entries,
        Self::Fields,
        Self::Conditions,
        Self::Levels,
        Self::Members,
        Self::Options,
        Self::Properties,
        Self::Views,
        Self::Filters,
        Self::Sorts,
        Self::Tags,
        Self::Writes,
        Self::Documents,
        Self::SubQueries,
        Self::Sources,
        Self::Webhooks,
        Self::Folders,
        Self::Exclusions,
        Self::Lines,
        Self::Files,
        Self::Records,
        Self::Results,
        Self::FurtherResults,
        Self::MoreRanges,
        Self::Changes,
        Self::Secrets,
        Self::Faults,
        Self::Problems,
        Self::RelatedFiles,
        Self::Reports,
        Self::RegisteredClients,
    ];

    /// One of it, and several.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Characters => ("character", "characters"),
            Self::Bytes => ("byte", "bytes"),
            Self::Entries => ("entry", "entries"),
            Self::Fields => ("field", "fields"),
            Self::Conditions => ("condition", "conditions"),
            Self::Levels => ("level", "levels"),
            Self::Members => ("member", "members"),
            Self::Options => ("option", "options"),
            Self::Properties => ("property", "properties"),
            Self::Views => ("view", "views"),
            Self::Filters => ("filter", "filters"),
            Self::Sorts => ("sort", "sorts"),
            Self::Tags => ("tag", "tags"),
            Self::Writes => ("write", "writes"),
            Self::Documents => ("document", "documents"),
            Self::SubQueries => ("sub-query", "sub-queries"),
            Self::Sources => ("source", "sources"),
            Self::Webhooks => ("webhook", "webhooks"),
            Self::Folders => ("folder", "folders"),
            Self::Exclusions => ("exclusion", "exclusions"),
            Self::Lines => ("line", "lines"),
            Self::Files => ("file", "files"),
            Self::Records => ("record", "records"),
            Self::Results => ("result", "results"),
            Self::FurtherResults => ("further result", "further results"),
            Self::MoreRanges => ("more range", "more ranges"),
            Self::Changes => ("change", "changes"),
            Self::Secrets => ("secret", "secrets"),
            Self::Faults => ("fault", "faults"),
            Self::Problems => ("problem", "problems"),
            Self::RelatedFiles => ("related file", "related files"),
            Self::Reports => ("report", "reports"),
            Self::RegisteredClients => ("registered client", "registered clients"),
        }
    }
}

/// For an empty text or list.
pub const EMPTY: &str = "may not be empty";

/// For a text with NUL, which PostgreSQL cannot store.
pub const NO_NUL: &str = "may not hold a NUL character";

/// For a name with line breaks or other control characters.
pub const NO_CONTROL_CHARACTERS: &str = "may not hold control characters";

/// For a malformed id.
pub const ID: &str = "must be an id: a UUID such as 0199c0de-0000-7000-8000-000000000001";

/// For a malformed time.
pub const TIME: &str = "must be an RFC 3339 time such as 2026-11-20T12:00:00Z";

/// A number with its unit: `1 entry`, `5 entries`.
#[must_use]
pub fn count(number: u64, unit: Unit) -> String {
    let (one, several) = unit.names();
    format!("{number} {}", if number == 1 { one } else { several })
}

/// For a count above its maximum.
#[must_use]
pub fn at_most(most: usize, unit: Unit) -> String {
    format!("may have at most {}", count(most as u64, unit))
}

/// For a count below its minimum.
#[must_use]
pub fn at_least(least: usize, unit: Unit) -> String {
    match least {
        1 => EMPTY.to_owned(),
        least => format!("needs at least {}", count(least as u64, unit)),
    }
}

/// For the length of a text or list that is out of range.
#[must_use]
pub fn from_to(least: usize, most: usize, unit: Unit) -> String {
    format!("must have {least} to {}", count(most as u64, unit))
}

/// For several invalid fields, whose violations are listed separately.
#[must_use]
pub fn invalid_fields(number: usize) -> String {
    let verb = if number == 1 { "is" } else { "are" };
    format!("{} {verb} not valid", count(number as u64, Unit::Fields))
}

/// Of a number outside of its range.
#[must_use]
pub fn between(least: impl Display, most: impl Display) -> String {
    format!("must be between {least} and {most}")
}

/// Of a word that is none of those that are known.
#[must_use]
pub fn one_of<T: AsRef<str>>(known: &[T]) -> String {
    let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    format!("must be one of: {}", known.join(", "))
}

/// Names with commas, and `last` (`or`, `and`) before the last one: `a, b or c`.
#[must_use]
pub fn listed<T: AsRef<str>>(names: &[T], last: &str) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.split_last() {
        Some((end, before)) if !before.is_empty() => format!("{} {last} {end}", before.join(", ")),
        _ => names.concat(),
    }
}

/// A JSON type with its article, as people say it; `integer` is a whole number.
#[must_use]
pub fn json_type(name: &str) -> &str {
    match name {
        "boolean" => "true or false",
        "number" => "a number",
        "integer" => "a whole number",
        "string" => "a string",
        "array" => "an array",
        "object" => "an object",
        other => other,
    }
}

/// Names in a row: `name, tags and content`.
pub fn and(names: &[&str]) -> String {
    match names.split_last() {
        None => String::new(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one_and_several_are_several() {
        for unit in Unit::ALL {
            let (one, several) = unit.names();
            assert_ne!(one, several);
            assert_eq!(count(1, unit), format!("1 {one}"));
            for number in [0, 2, 100] {
                assert_eq!(count(number, unit), format!("{number} {several}"));
            }
            assert!(several.ends_with('s') && !one.ends_with('s'), "{unit:?}");
        }
    }

    #[test]
    fn limits_are_sentences_about_a_field() {
        assert_eq!(at_most(1, Unit::Entries), "may have at most 1 entry");
        assert_eq!(at_most(50, Unit::Tags), "may have at most 50 tags");
        assert_eq!(at_least(1, Unit::Entries), "may not be empty");
        assert_eq!(at_least(8, Unit::Characters), "needs at least 8 characters");
        assert_eq!(from_to(1, 100, Unit::Characters), "must have 1 to 100 characters");
        assert_eq!(invalid_fields(1), "1 field is not valid");
        assert_eq!(invalid_fields(2), "2 fields are not valid");
        assert_eq!(between(1, 50), "must be between 1 and 50");
        assert_eq!(one_of(&["asc", "desc"]), "must be one of: asc, desc");
    }

    #[test]
    fn lists_read_as_one_says_them() {
        assert_eq!(listed::<&str>(&[], "or"), "");
        assert_eq!(listed(&["a"], "or"), "a");
        assert_eq!(listed(&["a", "b"], "or"), "a or b");
        assert_eq!(listed(&["a", "b", "c"], "and"), "a, b and c");
    }

    #[test]
    fn every_json_type_has_an_article() {
        for name in ["number", "integer", "string", "array", "object"] {
            let words = json_type(name);
            let noun = words.strip_prefix("an ").or_else(|| words.strip_prefix("a ")).unwrap();
            assert_eq!(noun.starts_with(['a', 'e', 'i', 'o', 'u']), words.starts_with("an "), "{words}");
        }
    }
}
