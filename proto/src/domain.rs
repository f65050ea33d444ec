//! The enums that contracts, rules, stores and JSON share, each defined once: its numbers in protobuf and in tables, its
//! names in JSON, and rules that hold everywhere.
//!
//! A protobuf enum has a value "unspecified" and may arrive as any number; these types only hold known values, so code
//! that has one need not handle the rest. Where "unspecified" means one of the values, that is the default, and numbers
//! of a newer version are treated like it.

mod filter;
mod kinds;
pub mod limits;
mod page;
mod permission;

use std::fmt;

pub use self::filter::{Condition, Filter, Misread};
pub use self::kinds::{
    ActivityAction, ChangeKind, ConflictPolicy, ContentType, DocumentKind, FileType, ImportProvider,
    IngestStatus, MemberKind, PropertyType, ReportPart, RunStatus, SourceMode, SourceRunKind,
    SourceRunStatus, SyncAction, TrashKind, UndoAction, WebhookDeliveryState, WebhookStatus,
};
pub use self::page::{page_of, plain_page_of};
pub use self::permission::{Permission, PermissionSet, Publishers, Role};

/// The name or number is no known value of the enum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unknown;

impl fmt::Display for Unknown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("not one of the known values")
    }
}

impl std::error::Error for Unknown {}

/// Defines enums from lines `Variant = "name"`: the variants are those of the protobuf enum in the head, or some of them;
/// the names are used in JSON and text columns.
macro_rules! domain {
    ($(
        $(#[$doc:meta])*
        $name:ident of $contract:ty { $($(#[$variant_doc:meta])* $variant:ident = $text:tt),+ $(,)? }
    )+) => {
        $(
            #[derive(
                Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
            )]
            #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
            $(#[$doc])*
            pub enum $name {
                $($(#[$variant_doc])* #[serde(rename = $text)] $variant,)+
            }

            impl $name {
                /// All values, in the contract's order.
                pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];
                /// Their names, in the same order.
                pub const NAMES: [&'static str; [$($text),+].len()] = [$($text),+];

                /// The name in JSON and in text columns.
                pub const fn as_str(self) -> &'static str {
                    match self {
                        $(Self::$variant => $text,)+
                    }
                }

                /// The number in protobuf and in number columns.
                pub const fn number(self) -> i32 {
                    match self {
                        $(Self::$variant => <$contract>::$variant as i32,)+
                    }
                }

                /// The value of a number; `None` also for "unspecified". Unlike the generated accessors, it does not
                /// turn an unknown number into "unspecified".
                pub fn from_number(number: impl Into<i64>) -> Option<Self> {
                    let number = number.into();
                    Self::ALL.into_iter().find(|one| i64::from(one.number()) == number)
                }
            }

            impl std::fmt::Display for $name {
                fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    formatter.write_str(self.as_str())
                }
            }

            impl std::str::FromStr for $name {
                type Err = $crate::domain::Unknown;

                fn from_str(text: &str) -> Result<Self, $crate::domain::Unknown> {
                    Self::ALL.into_iter().find(|one| one.as_str() == text).ok_or($crate::domain::Unknown)
                }
            }

            impl From<$name> for $contract {
                fn from(value: $name) -> Self {
                    match value {
                        $($name::$variant => <$contract>::$variant,)+
                    }
                }
            }

            impl From<$name> for i32 {
                fn from(value: $name) -> Self {
                    value.number()
                }
            }

            impl TryFrom<i32> for $name {
                type Error = $crate::domain::Unknown;

                fn try_from(number: i32) -> Result<Self, $crate::domain::Unknown> {
                    Self::from_number(number).ok_or($crate::domain::Unknown)
                }
            }

            impl TryFrom<$contract> for $name {
                type Error = $crate::domain::Unknown;

                fn try_from(value: $contract) -> Result<Self, $crate::domain::Unknown> {
                    Self::from_number(i32::from(value)).ok_or($crate::domain::Unknown)
                }
            }
        )+
    };
}
use domain;

use crate::auth::v1 as auth;
use crate::content::v1 as content;
use crate::feed::v1 as feed;
use crate::retrieval::v1 as retrieval;

domain! {
    /// Up or down.
    #[derive(Default)]
    SortOrder of content::SortOrder {
        /// The least first.
        #[default]
        Asc = "asc",
        /// The greatest first.
        Desc = "desc",
    }

    /// Which part of a date makes its group.
    #[derive(Default)]
    DateUnit of content::DateUnit {
        /// Each day.
        #[default]
        Day = "day",
        /// Each month.
        Month = "month",
        /// Each year.
        Year = "year",
    }

    /// In which order groups come.
    GroupOrder of content::GroupOrder {
        /// By value, the least first.
        Asc = "asc",
        /// By value, the greatest first.
        Desc = "desc",
        /// By the number of records, the most first.
        Count = "count",
    }

    /// How a value is compared.
    Operator of content::Operator {
        /// Is the same.
        Equals = "equals",
        /// Is not the same, or is none.
        NotEquals = "not_equals",
        /// Holds it.
        Contains = "contains",
        /// Is one of these.
        In = "in",
        /// Is greater.
        Gt = "gt",
        /// Is greater or the same.
        Gte = "gte",
        /// Is less.
        Lt = "lt",
        /// Is less or the same.
        Lte = "lte",
        /// Is before that day or time.
        Before = "before",
        /// Is after that day or time.
        After = "after",
        /// Is none.
        IsEmpty = "is_empty",
        /// Is any.
        IsNotEmpty = "is_not_empty",
    }

    /// Whose change feed: each service that owns documents has one.
    Feed of feed::Feed {
        /// svc-content's.
        Content = "content",
        /// svc-ingest's.
        Ingest = "ingest",
    }

    /// Which lists answer the query when no sub-queries are given.
    #[derive(Default)]
    Strategy of retrieval::Strategy {
        /// Words alone.
        Keyword = "keyword",
        /// Meaning alone.
        Semantic = "semantic",
        /// Both, fused.
        #[default]
        Hybrid = "hybrid",
    }

    /// How far connected sources are consulted.
    #[derive(Default)]
    Mode of retrieval::Mode {
        /// Retained content only.
        Fast = "fast",
        /// Also the catalogs.
        #[default]
        Balanced = "balanced",
        /// Also live sources.
        Fresh = "fresh",
    }

    /// How much of what was found an answer shows.
    #[derive(Default)]
    Detail of retrieval::Detail {
        /// The lines that answer, and those right around them.
        Lines = "lines",
        /// Whole passages.
        #[default]
        Passages = "passages",
        /// The best passage of each document, and where else in it something was found.
        Documents = "documents",
    }

    /// Where a sub-query goes: `lex` to full-text search, `vec` and `hyde` to vector search.
    SubqueryType of retrieval::SubqueryType {
        /// Full-text search.
        Lex = "lex",
        /// Vector search with a question.
        Vec = "vec",
        /// Vector search with a hypothetical answer.
        Hyde = "hyde",
    }

    /// Whether evidence came from the index or live from a provider.
    #[derive(Default)]
    SyncMode of retrieval::SyncMode {
        /// From the index.
        #[default]
        Indexed = "indexed",
        /// From the provider, just now.
        Live = "live",
    }

    /// How well a question was answered.
    #[derive(Default)]
    QuestionOutcome of retrieval::QuestionOutcome {
        /// Something good was found.
        #[default]
        Answered = "answered",
        /// What was found was good by its words or by its meaning alone.
        Weak = "weak",
        /// Nothing was found.
        Unanswered = "unanswered",
    }

    /// What became of a golden question.
    #[derive(Default)]
    GoldenOutcome of retrieval::GoldenOutcome {
        /// The document is among the results, with the passage where one is pinned.
        Passed = "passed",
        /// The document is among the results, and the pinned passage is not.
        OtherPassage = "other_passage",
        /// The document is not among the results.
        #[default]
        Lost = "lost",
    }

    /// How the index stands to a document.
    #[derive(Default)]
    DocumentState of retrieval::DocumentState {
        /// It is found as it is now, by words and by meaning.
        Searchable = "searchable",
        /// It is found as it is now, and some or all of it by words only.
        WordsOnly = "words_only",
        /// The index has not taken in the text that it has now.
        #[default]
        Behind = "behind",
        /// It has no text, so there is nothing to find.
        Empty = "empty",
        /// Its text cannot be indexed.
        Failed = "failed",
    }

    /// What a check of a document that is missing came to.
    #[derive(Default)]
    Verdict of retrieval::Verdict {
        /// Nothing here is in the way.
        Passed = "passed",
        /// It speaks against the document and does not keep it out by itself.
        Weak = "weak",
        /// It keeps the document out.
        Failed = "failed",
        /// It was not looked at.
        #[default]
        Skipped = "skipped",
    }

    /// What a report is about.
    #[derive(Default)]
    FeedbackCategory of auth::FeedbackCategory {
        /// Something was not found that should be there.
        MissingContext = "missing_context",
        /// What was found is out of date.
        StaleContent = "stale_content",
        /// What was found does not answer the question.
        WrongResult = "wrong_result",
        /// A tool failed or was hard to use.
        ToolProblem = "tool_problem",
        /// Anything else.
        #[default]
        Other = "other",
    }

    /// The way on which a report came in.
    #[derive(Default)]
    FeedbackChannel of auth::FeedbackChannel {
        /// The REST API.
        Rest = "rest",
        /// The command line, which calls the REST API.
        Cli = "cli",
        /// MCP.
        Mcp = "mcp",
        /// gRPC, which callers do not name.
        #[default]
        Grpc = "grpc",
    }
}

impl SubqueryType {
    /// Whether it is a vector search.
    pub const fn is_meant(self) -> bool {
        match self {
            Self::Vec | Self::Hyde => true,
            Self::Lex => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_lead_back() {
        for (one, name) in PropertyType::ALL.into_iter().zip(PropertyType::NAMES) {
            assert_eq!((one.as_str(), name.parse()), (name, Ok(one)));
            assert_eq!(PropertyType::from_number(one.number()), Some(one));
            assert_eq!(PropertyType::try_from(content::PropertyType::from(one)), Ok(one));
        }
        assert_eq!(PropertyType::from_number(0), None, "unspecified is no value");
        assert_eq!(PropertyType::from_number(99), None);
        assert_eq!("texts".parse::<PropertyType>(), Err(Unknown));
    }
}
