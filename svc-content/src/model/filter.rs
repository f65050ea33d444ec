//! Conditions on the values of records.

use cairn_proto::ids::{FolderId, PropertyId};

use super::PropertyType;

/// A tree of conditions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Filter {
    All(Vec<Self>),
    Any(Vec<Self>),
    Is(Condition),
}

/// A condition on the values of one property.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Condition {
    pub(crate) property: PropertyId,
    pub(crate) test: Test,
    /// Whether no value may pass the test; records without a value match then.
    pub(crate) is_negated: bool,
    /// Whether a record has at most one value of the property.
    pub(crate) is_single: bool,
}

/// A test of one element of a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Test {
    /// It exists; whether its key is a number.
    Present { by_number: bool },
    /// One of these texts: the key, and the whole text where the key is a prefix.
    TextIs(Vec<(String, Option<String>)>),
    /// It contains this folded text.
    TextHas(String),
    /// Its target is live and in these folders or below them; the type is that of the property. For callers whose
    /// scope hides other targets.
    Visible { kind: PropertyType, folders: Vec<FolderId> },
    /// Its text key is one of these.
    KeyIs(Vec<String>),
    /// One of these numbers.
    NumberIs(Vec<f64>),
    /// Within bounds, each with whether it is inclusive.
    Between { from: Option<(f64, bool)>, to: Option<(f64, bool)> },
}

impl Condition {
    /// Whether the cells that pass the test are exactly those of the matching records.
    pub(crate) const fn is_plain(&self) -> bool {
        !self.is_negated
    }
}
