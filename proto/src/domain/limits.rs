//! Limits that services enforce and API descriptions promise. Characters are Unicode scalar values.

/// Limit of a name: files, folders, memories, databases, properties, options, views.
pub const NAME_CHARS: usize = 255;
/// Limit of the name of a workspace, a token, a person.
pub const LABEL_CHARS: usize = 100;
/// Limit of an email address, in bytes (RFC 5321, section 4.5.3.1.3).
pub const EMAIL_BYTES: usize = 254;
/// Limit of the description of a file, which lists include.
pub const FILE_DESCRIPTION_CHARS: usize = 1_000;
/// Tags of a file, and of a search.
pub const TAGS: usize = 50;
/// Limit of a tag.
pub const TAG_CHARS: usize = 100;
/// Limit of a memory's description and of its loading guidance: a paragraph, not a document.
pub const GUIDANCE_CHARS: usize = 10_000;
/// Limit of a memory's slug.
pub const SLUG_CHARS: usize = 100;
/// Members added to or removed from a memory per call.
pub const MEMBERS_A_CALL: usize = 100;
/// Folders of a token's scope.
pub const SCOPE_FOLDERS: usize = 100;
/// Limit of a search query, in a workspace or a source. Longer ones are a mistake, and expensive in every ranked list.
pub const QUERY_CHARS: usize = 10_000;
/// Sub-queries of a search.
pub const SUBQUERIES: usize = 8;
/// Kinds of a search: each once.
pub const KINDS: usize = 8;
/// Sources of a search: more than a workspace has connected.
pub const SOURCES: usize = 100;
/// Results of a search.
pub const RESULTS: usize = 50;
/// Results of a query to one source.
pub const SOURCE_RESULTS: usize = 20;
/// Related files.
pub const RELATED: usize = 20;
/// Page size of most lists, maximum and default (contract, "Array endpoints").
pub const PAGE: u32 = 1_000;
/// Page size of records.
pub const RECORDS_PAGE: u32 = 200;
/// Groups of records in a response, not counting that of records without a value.
pub const RECORD_GROUPS: usize = 200;
/// Properties aggregated per group of records.
pub const RECORD_SUMMARIES: usize = 10;
/// Limit of a search in records.
pub const RECORD_SEARCH_CHARS: usize = 1_000;
/// Files read per call.
pub const FILES_AT_ONCE: usize = 20;
/// Items changed per call.
pub const ITEMS_AT_ONCE: usize = 1_000;
/// Entries per batch lookup of list columns: current versions of files, index states of documents.
pub const BESIDE_A_LIST: usize = 200;
/// Limit of a feedback message (spec 2.9).
pub const FEEDBACK_CHARS: usize = 5_000;
/// Nesting depth of record filters. Deeper ones are not even parsed: protobuf could not carry them.
pub const FILTER_LEVELS: usize = 8;
