// The messages that are serialized as JSON unchanged (REST, MCP, the console), with what their types do not tell. Included
// by the build script.

/// An attribute of a field beyond its type.
pub(crate) enum As {
    /// An id, with the schema format `uuid`.
    Uuid,
    /// Null if absent; other optional fields are omitted.
    Null,
    /// Omitted if it has its default value: empty, false.
    Spare,
    /// Further schema attributes.
    Schema(&'static str),
}

use As::{Null, Schema, Spare, Uuid};

/// A field with its attributes.
type Told = (&'static str, &'static [As]);

/// The messages by full name, each with the fields that have attributes.
pub(crate) const ANSWERS: &[(&str, &[Told])] = &[
    (
        "cairn.content.v1.File",
        &[
            ("id", &[Uuid]),
            ("workspace_id", &[Uuid]),
            ("folder_id", &[Null]),
            ("path", &[Schema("examples(\"/handbook/onboarding.md\")")]),
        ],
    ),
    (
        "cairn.content.v1.Folder",
        &[
            ("id", &[Uuid]),
            ("workspace_id", &[Uuid]),
            ("parent_id", &[Null]),
            ("path", &[Schema("examples(\"/handbook/people\")")]),
        ],
    ),
    ("cairn.content.v1.PropertyOption", &[]),
    ("cairn.content.v1.PropertyConfig", &[("options", &[Spare]), ("multiple", &[Spare])]),
    ("cairn.content.v1.Property", &[("id", &[Uuid])]),
    ("cairn.content.v1.MemoryNote", &[("member_id", &[Uuid]), ("target_id", &[Uuid])]),
    ("cairn.content.v1.NamedItem", &[("id", &[Uuid])]),
    ("cairn.content.v1.FindNamesResponse", &[]),
    ("cairn.content.v1.Author", &[("kind", &[Schema("examples(\"token\")")])]),
    ("cairn.content.v1.TableColumn", &[("property_id", &[Uuid, Null])]),
    ("cairn.content.v1.TableField", &[]),
    ("cairn.content.v1.TableRow", &[]),
    ("cairn.content.v1.RowProblem", &[]),
    ("cairn.content.v1.TrashItem", &[("parent_id", &[Null])]),
    ("cairn.content.v1.UndoStep", &[("item_id", &[Uuid])]),
    ("cairn.content.v1.LeftAlone", &[("item_id", &[Uuid])]),
    ("cairn.content.v1.ActivityEntry", &[("item_id", &[Uuid]), ("changed", &[Spare])]),
    ("cairn.ingest.v1.ProviderOperations", &[]),
    ("cairn.ingest.v1.Source", &[("id", &[Uuid]), ("last_synced_at", &[Null])]),
    ("cairn.ingest.v1.SourceNote", &[]),
    ("cairn.retrieval.v1.CoverageNote", &[]),
    ("cairn.retrieval.v1.CheckEditResponse", &[]),
    ("cairn.retrieval.v1.EditEffect", &[]),
    ("cairn.retrieval.v1.GetDocumentStatusResponse", &[]),
    ("cairn.retrieval.v1.GoldenResult", &[("question_id", &[Uuid])]),
    ("cairn.retrieval.v1.ListRank", &[]),
    ("cairn.retrieval.v1.RunGoldenQuestionsResponse", &[]),
    ("cairn.retrieval.v1.SoughtWord", &[]),
    ("cairn.retrieval.v1.SubqueryTrace", &[]),
    ("cairn.retrieval.v1.Trace", &[]),
    ("cairn.sync.v1.SyncWarning", &[]),
    ("cairn.sync.v1.ReportCounts", &[]),
    ("cairn.sync.v1.ReportTally", &[]),
    ("cairn.sync.v1.ReportEntry", &[("id", &[Uuid])]),
    ("cairn.auth.v1.Grant", &[]),
    ("cairn.auth.v1.User", &[]),
];

/// The enums of [`crate::domain`] that represent protobuf enums.
pub(crate) const WORDS: &[(&str, &str)] = &[
    (".cairn.auth.v1.Permission", "Permission"),
    (".cairn.content.v1.ActivityAction", "ActivityAction"),
    (".cairn.content.v1.UndoAction", "UndoAction"),
    (".cairn.content.v1.FileType", "FileType"),
    (".cairn.content.v1.PropertyType", "PropertyType"),
    (".cairn.feed.v1.Kind", "TrashKind"),
    (".cairn.ingest.v1.SourceMode", "SourceMode"),
    (".cairn.retrieval.v1.DocumentState", "DocumentState"),
    (".cairn.retrieval.v1.GoldenOutcome", "GoldenOutcome"),
];
