//! Limits that a service holds to and the descriptions of its callers promise. Characters are Unicode scalar values.

/// Of a name: files, folders, memories, databases, properties, options, views.
pub const NAME_CHARS: usize = 255;
/// Of the name of a workspace, a token, a person.
pub const LABEL_CHARS: usize = 100;
/// Of an email address, in bytes (RFC 5321, section 4.5.3.1.3).
pub const EMAIL_BYTES: usize = 254;
/// Of the description of a file, which lists show.
pub const FILE_DESCRIPTION_CHARS: usize = 1_000;
/// Tags of a file, and of a search.
pub const TAGS: usize = 50;
/// Of a tag.
pub const TAG_CHARS: usize = 100;
/// Of a memory's description and of when to load it: a paragraph, not a document.
pub const GUIDANCE_CHARS: usize = 10_000;
/// Of a memory's name for addresses.
pub const SLUG_CHARS: usize = 100;
/// Members that one call adds to a memory or removes.
pub const MEMBERS_A_CALL: usize = 100;
/// Folders of a token's scope.
pub const SCOPE_FOLDERS: usize = 100;
/// Of what is looked for, in a workspace or a source. Longer ones are a mistake and cost every list.
pub const QUERY_CHARS: usize = 10_000;
/// Sub-queries of a search.
pub const SUBQUERIES: usize = 8;
/// Kinds of a search: each once.
pub const KINDS: usize = 8;
/// Sources of a search: more than a workspace has connected.
pub const SOURCES: usize = 100;
/// Results of a search.
pub const RESULTS: usize = 50;
/// Results of a question to one source.
pub const SOURCE_RESULTS: usize = 20;
/// Related files.
pub const RELATED: usize = 20;
/// Items of a page of most lists, and their number when none is asked for (contract, "Array endpoints").
pub const PAGE: u32 = 1_000;
/// Records of a page.
pub const RECORDS_PAGE: u32 = 200;
/// Groups of records that an answer has, without those that have no value.
pub const RECORD_GROUPS: usize = 200;
/// Properties that are summed up for each group of records.
pub const RECORD_SUMMARIES: usize = 10;
/// Of what is looked for in records.
pub const RECORD_SEARCH_CHARS: usize = 1_000;
/// Files that are read at once.
pub const FILES_AT_ONCE: usize = 20;
/// Items that one call changes.
pub const ITEMS_AT_ONCE: usize = 1_000;
/// Of what lists tell beside each entry, read at once: versions that files have now, states of documents in the index.
pub const BESIDE_A_LIST: usize = 200;
/// Of a message to the operators (spec 2.9).
pub const FEEDBACK_CHARS: usize = 5_000;
/// How deep filters of records nest. Deeper ones are not even read: protobuf could not carry them.
pub const FILTER_LEVELS: usize = 8;
