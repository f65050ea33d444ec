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

/// What a record's values of one property must be like.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Condition {
    pub(crate) property: PropertyId,
    pub(crate) test: Test,
    /// Whether no value may pass the test; records without a value do then.
    pub(crate) is_negated: bool,
    /// Whether a record has at most one value of the property.
    pub(crate) is_single: bool,
}

/// What one element of a value must be like.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Test {
    /// There is one; whether its key is a number.
    Present { by_number: bool },
    /// One of these texts: key, and the whole where the key is only its beginning.
    TextIs(Vec<(String, Option<String>)>),
    /// It holds this folded text.
    TextHas(String),
    /// It names something that lives in these folders or below them; the type says what. Asked for callers whose scope
    /// hides the rest.
    Visible { kind: PropertyType, folders: Vec<FolderId> },
    /// Its text key is one of these.
    KeyIs(Vec<String>),
    /// One of these numbers.
    NumberIs(Vec<f64>),
    /// Within bounds, the lower inclusive or not, the upper inclusive or not.
    Between { from: Option<(f64, bool)>, to: Option<(f64, bool)> },
}

impl Condition {
    /// Whether the cells that pass the test are those of the records that fulfil the condition.
    pub(crate) const fn is_plain(&self) -> bool {
        !self.is_negated
    }
}
