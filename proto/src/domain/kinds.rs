//! What things are.

use super::domain;
use crate::content::v1 as content;
use crate::feed::v1::Kind;
use crate::ingest::v1 as ingest;
use crate::sync::v1 as sync;

domain! {
    /// What a file holds; it decides how the file is cut for search and its raw Content-Type.
    #[derive(Default)]
    FileType of content::FileType {
        /// CommonMark.
        Markdown = "markdown",
        /// JSON.
        Json = "json",
        /// YAML.
        Yaml = "yaml",
        /// Anything else.
        #[default]
        Text = "text",
    }

    /// Which values a property takes and how they are ordered.
    #[derive(Default)]
    PropertyType of content::PropertyType {
        /// A text.
        #[default]
        Text = "text",
        /// A number.
        Number = "number",
        /// True or false.
        Boolean = "boolean",
        /// A day or a time.
        Date = "date",
        /// One of its options.
        Select = "select",
        /// Some of its options.
        MultiSelect = "multi_select",
        /// An address.
        Url = "url",
        /// Records of a database, by their ids.
        Relation = "relation",
        /// Files, by their ids.
        FileReference = "file_reference",
        /// Assets, by their ids.
        AssetReference = "asset_reference",
    }

    /// What a member of a memory refers to.
    #[derive(Default)]
    MemberKind of content::MemberKind {
        /// A file.
        #[default]
        File = "file",
        /// A folder: its files.
        Folder = "folder",
        /// A document of a connected source.
        SourceDocument = "source_document",
        /// A database: its records, or some of them.
        Database = "database",
    }

    /// What was done to an item.
    #[derive(Default)]
    ActivityAction of content::ActivityAction {
        /// Made.
        Created = "created",
        /// Changed in more than one way, or in another way than the three below.
        #[default]
        Updated = "updated",
        /// Given another name, and nothing else.
        Renamed = "renamed",
        /// Put into another folder, and nothing else.
        Moved = "moved",
        /// Given other tags, and nothing else.
        Tagged = "tagged",
        /// Moved to trash.
        Deleted = "deleted",
        /// Brought back from trash.
        Restored = "restored",
        /// Removed for good.
        DeletedPermanently = "deleted_permanently",
    }

    /// What an undo does to an item.
    #[derive(Default)]
    UndoAction of content::UndoAction {
        /// Moves to trash what was made, or brought back.
        Trash = "trash",
        /// Brings back from trash what was deleted.
        Restore = "restore",
        /// Gives it the name, folder, content or values that it had.
        #[default]
        Revert = "revert",
    }

    /// What can be in trash by itself.
    #[derive(Default)]
    TrashKind of Kind {
        /// A file.
        #[default]
        File = "file",
        /// A folder with all that it held.
        Folder = "folder",
        /// A database with its records.
        Database = "database",
        /// A record.
        Record = "record",
        /// A memory.
        Memory = "memory",
    }

    /// What the change feed tells of.
    ChangeKind of Kind {
        /// A file.
        File = "file",
        /// A folder.
        Folder = "folder",
        /// A memory.
        Memory = "memory",
        /// A database.
        Database = "database",
        /// A record of a database.
        Record = "record",
        /// A document of a connected source.
        SourceDocument = "source_document",
        /// A document that was sent.
        Ingested = "ingested",
    }

    /// What is cited.
    #[derive(Default)]
    #[cfg_attr(feature = "schema", schema(as = Kind))]
    DocumentKind of Kind {
        /// A file.
        #[default]
        File = "file",
        /// A record of a database.
        Record = "record",
        /// A document of a connected source.
        SourceDocument = "source_document",
        /// A document that was ingested.
        Ingested = "ingested",
        /// The guidance of a memory.
        Memory = "memory",
    }

    /// What a text is that is ingested.
    #[derive(Default)]
    ContentType of ingest::ContentType {
        /// CommonMark.
        #[default]
        Markdown = "markdown",
        /// Text.
        Text = "text",
        /// JSON.
        Json = "json",
        /// YAML.
        Yaml = "yaml",
        /// HTML, which is retained as Markdown.
        Html = "html",
    }

    /// How far an ingested document is.
    #[derive(Default)]
    IngestStatus of ingest::IngestStatus {
        /// It waits for its turn.
        #[default]
        Pending = "pending",
        /// Its text is being taken out of it, or is on its way into the index.
        Indexing = "indexing",
        /// Search finds it.
        Indexed = "indexed",
        /// Search does not find it; `error` says why.
        Failed = "failed",
    }

    /// How much of a source is kept.
    #[derive(Default)]
    SourceMode of ingest::SourceMode {
        /// Documents whole.
        #[default]
        Indexed = "indexed",
        /// Their names and places.
        Catalog = "catalog",
        /// Nothing: it is asked each time.
        Live = "live",
    }

    /// What a run of a source reads.
    SourceRunKind of ingest::SourceRunKind {
        /// Everything.
        Full = "full",
        /// What the provider says has changed.
        Changes = "changes",
        /// Everything, to find what the changes did not tell.
        Verify = "verify",
    }

    /// How far a run of a source is.
    SourceRunStatus of ingest::SourceRunStatus {
        /// It waits for its turn.
        Queued = "queued",
        /// It is being worked on.
        Running = "running",
        /// The provider asked to wait; it goes on by itself.
        Waiting = "waiting",
        /// All was read.
        Completed = "completed",
        /// All that could be read was read.
        CompletedWithWarnings = "completed_with_warnings",
        /// It ended early.
        Failed = "failed",
        /// Somebody ended it.
        Cancelled = "cancelled",
    }

    /// How a webhook stands.
    WebhookStatus of ingest::WebhookStatus {
        /// It is sent what changes.
        Active = "active",
        /// The last try failed, and another one follows.
        Failing = "failing",
        /// Nothing is sent before somebody enables it.
        Disabled = "disabled",
    }

    /// How far a delivery to a webhook is.
    WebhookDeliveryState of ingest::WebhookDeliveryState {
        /// It is being tried; what comes after it waits.
        Pending = "pending",
        /// It arrived.
        Delivered = "delivered",
        /// It was given up after the last try: a dead letter.
        Dead = "dead",
        /// It was given up, and somebody asked for it anew.
        Replaying = "replaying",
    }

    /// What becomes of documents that changed in the directory.
    #[derive(Default)]
    ConflictPolicy of sync::ConflictPolicy {
        /// Their files are updated, unless somebody edited them in the workspace.
        #[default]
        Update = "update",
        /// Files that exist stay as they are.
        Skip = "skip",
        /// The new version is created beside the old one.
        Duplicate = "duplicate",
    }

    /// How far a run of a sync is.
    RunStatus of sync::RunStatus {
        /// It was previewed and waits to be started.
        Ready = "ready",
        /// It waits for its turn.
        Queued = "queued",
        /// It is being worked on.
        Running = "running",
        /// All was done.
        Completed = "completed",
        /// All that could be done was done.
        CompletedWithWarnings = "completed_with_warnings",
        /// It ended early; a start goes on where it stopped.
        Failed = "failed",
        /// Somebody ended it; a start goes on where it stopped.
        Cancelled = "cancelled",
        /// What it did was taken back.
        RolledBack = "rolled_back",
    }

    /// The tool whose archive is imported.
    ImportProvider of sync::ImportProvider {
        /// A vault of Obsidian.
        ObsidianZip = "obsidian_zip",
        /// An export of Notion.
        NotionZip = "notion_zip",
    }

    /// One of the lists of an import's report.
    #[derive(Default)]
    ReportPart of sync::ReportPart {
        /// What becomes of each object, or became of it.
        #[default]
        Items = "items",
        /// What was imported otherwise than it was, or not at all.
        Warnings = "warnings",
        /// Links that lead nowhere, or to several files.
        Links = "links",
        /// Entries of the archive that are none of the user's content.
        Ignored = "ignored",
    }

    /// What became of a document.
    SyncAction of sync::SyncAction {
        /// A file was made.
        Created = "created",
        /// Its file has the document's content now.
        Updated = "updated",
        /// There was nothing to do.
        Skipped = "skipped",
        /// Somebody changed the file in the workspace: it stays as it is.
        Conflict = "conflict",
        /// The directory does not have it any more: its file is in trash.
        Pruned = "pruned",
        /// The workspace refused it.
        Failed = "failed",
    }
}

impl RunStatus {
    /// Whether it may be started or resumed.
    pub const fn is_startable(self) -> bool {
        matches!(self, Self::Ready | Self::Failed | Self::Cancelled)
    }

    /// Whether it is queued or running.
    pub const fn is_busy(self) -> bool {
        matches!(self, Self::Queued | Self::Running)
    }

    /// Whether it ran to its end, possibly with warnings.
    pub const fn is_completed(self) -> bool {
        matches!(self, Self::Completed | Self::CompletedWithWarnings)
    }
}

impl SourceMode {
    /// Whether the source has runs.
    pub const fn has_runs(self) -> bool {
        !matches!(self, Self::Live)
    }
}

impl SourceRunKind {
    /// Whether it reads the full listing.
    pub const fn lists(self) -> bool {
        !matches!(self, Self::Changes)
    }
}

impl SourceRunStatus {
    /// Whether it has ended.
    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Queued | Self::Running | Self::Waiting)
    }
}

impl FileType {
    /// The media type, without parameters.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Markdown => "text/markdown",
            Self::Json => "application/json",
            Self::Yaml => "text/yaml",
            Self::Text => "text/plain",
        }
    }
}

impl DocumentKind {
    /// Whether its content comes from outside: it is read-only here, and edited at its origin.
    pub const fn is_from_outside(self) -> bool {
        matches!(self, Self::SourceDocument | Self::Ingested)
    }
}

impl PropertyType {
    /// Whether values reference other items by id.
    pub const fn is_reference(self) -> bool {
        matches!(self, Self::Relation | Self::FileReference | Self::AssetReference)
    }

    /// Whether values are choices among options.
    pub const fn has_options(self) -> bool {
        matches!(self, Self::Select | Self::MultiSelect)
    }
}
