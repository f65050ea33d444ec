//! Manifests: validation, warnings, and how their texts are stored.

use std::collections::HashMap;

use cairn_chassis::bodies::{MAX_CONTENT_BYTES, content_hash};
use cairn_chassis::status::Violation;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::domain::limits::NAME_CHARS;
use serde::de::IgnoredAny;
use unicode_normalization::UnicodeNormalization as _;

use crate::Error;
use crate::model::{Baseline, Document, FileType, Kind, TextPlace, Warning};

/// Documents of one run (spec, section 8).
pub(crate) const MAX_DOCUMENTS: usize = 5_000;
pub(crate) const MAX_BYTES: usize = 24 * 1024 * 1024;
const NAME_OF_SYNC_CHARS: usize = 100;
/// Nesting depth of folders in a workspace.
pub(crate) const MAX_FOLDERS: usize = 100;
/// Warnings beyond these are dropped.
const MAX_VIOLATIONS: usize = 51;
/// Texts of about this many bytes are compressed together.
const PIECE_BYTES: usize = 1024 * 1024;
const HASH_DIGITS: usize = 64;

/// A document as it is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) path: String,
    pub(crate) content: String,
    /// Instead of the content: its hash, which the baseline must have under the path.
    pub(crate) hash: Option<String>,
    /// Derived from the extension when absent.
    pub(crate) file_type: Option<FileType>,
}

/// A valid manifest, sorted by path.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// Of the sync, in normal form C.
    pub(crate) name: String,
    /// Their text places are not assigned yet.
    pub(crate) documents: Vec<Document>,
    /// In the same order.
    pub(crate) texts: Vec<String>,
    pub(crate) notes: Vec<Warning>,
    /// Documents of which only the hash was sent.
    pub(crate) unsent: Vec<Unsent>,
}

/// A document of which only the hash was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unsent {
    /// The index in the manifest as it was sent.
    place: usize,
    path: String,
    hash: String,
}

#[derive(Default)]
struct Violations(Vec<Violation>);

impl Violations {
    fn add(&mut self, path: impl Into<String>, code: &str, message: impl Into<String>) {
        if self.0.len() < MAX_VIOLATIONS {
            self.0.push(Violation::new(path, code, message));
        }
    }
}

/// Validates a manifest and hashes its documents (CPU-bound). Reports all violations at once.
pub(crate) fn check(name: &str, sent: Vec<Sent>) -> Result<Checked, Error> {
    let mut wrong = Violations::default();
    let name: String = name.nfc().collect();
    check_name(&name, &mut wrong);
    if sent.len() > MAX_DOCUMENTS {
        let most = wording::at_most(MAX_DOCUMENTS, Unit::Documents);
        wrong.add("documents", "too_long", format!("{most}; this manifest has {}", sent.len()));
        return Err(Error::Invalid(wrong.0));
    }
    let bytes: usize = sent.iter().map(|document| document.content.len()).sum();
    if bytes > MAX_BYTES {
        let most = wording::at_most(MAX_BYTES, Unit::Bytes);
        wrong.add("documents", "too_long", format!("{most} of content in all; this manifest has {bytes}"));
    }
    let mut found: Vec<(String, Sent)> = Vec::with_capacity(sent.len());
    let mut first: HashMap<String, usize> = HashMap::with_capacity(sent.len());
    let mut unsent = Vec::new();
    for (place, document) in sent.into_iter().enumerate() {
        let path: String = document.path.nfc().collect();
        let at = |field: &str| format!("documents[{place}].{field}");
        if let Err((code, message)) = check_path(&path) {
            wrong.add(at("path"), code, message);
        } else if let Some(other) = first.get(&path) {
            wrong.add(at("path"), "duplicate", format!("is the path of documents[{other}] as well"));
        }
        check_content(&document.content, &at("content"), &mut wrong);
        if let Some(hash) = &document.hash {
            check_hash(hash, &document.content, &at("contentHash"), &mut wrong);
            unsent.push(Unsent { place, path: path.clone(), hash: hash.clone() });
        }
        first.entry(path.clone()).or_insert(place);
        found.push((path, document));
    }
    if !wrong.0.is_empty() {
        return Err(Error::Invalid(wrong.0));
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(Checked { unsent, ..describe(name, found) })
}

/// Refuses hashes that the baseline does not have, all at once: those documents have to be sent with content.
pub(crate) fn require_known(unsent: &[Unsent], baseline: &Baseline) -> Result<(), Error> {
    let mut wrong = Violations::default();
    let is_known =
        |one: &&Unsent| baseline.get(Kind::File, &one.path).is_some_and(|entry| entry.hash == one.hash);
    for one in unsent.iter().filter(|one| !is_known(one)) {
        let message = "the last run of this sync left other content under this path, or none: send it";
        wrong.add(format!("documents[{}].content", one.place), "required", message);
    }
    if wrong.0.is_empty() { Ok(()) } else { Err(Error::Invalid(wrong.0)) }
}

fn check_name(name: &str, wrong: &mut Violations) {
    if name.trim().is_empty() {
        return wrong.add("name", "required", "give the sync a name, by which the next run of it is known");
    }
    if name.chars().count() > NAME_OF_SYNC_CHARS {
        wrong.add("name", "too_long", wording::at_most(NAME_OF_SYNC_CHARS, Unit::Characters));
    }
    if name.contains(char::is_control) {
        wrong.add("name", "invalid", wording::NO_CONTROL_CHARACTERS);
    }
}

/// What is wrong with a path in normal form C: a code, and what to do.
fn check_path(path: &str) -> Result<(), (&'static str, String)> {
    let invalid = |message: &str| Err(("invalid", message.to_owned()));
    if path.is_empty() {
        return Err(("required", "give the path of the document in its directory".to_owned()));
    }
    if path.contains(char::is_control) {
        return Err(("invalid", wording::NO_CONTROL_CHARACTERS.to_owned()));
    }
    let mut characters = path.chars();
    let drive = characters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && characters.next() == Some(':')
        && matches!(characters.next(), Some('/' | '\\'));
    if path.starts_with(['/', '\\']) || drive {
        return invalid("must be relative to the directory: leave out what stands before its first name");
    }
    if path.split(['/', '\\']).any(|name| name == "..") {
        return invalid("may not hold '..': a document stands in the directory or below it");
    }
    let names: Vec<&str> = path.split('/').collect();
    if names.iter().any(|name| name.trim().is_empty() || *name == ".") {
        return invalid("may not hold empty names or '.': write the names with one '/' between them");
    }
    if names.iter().any(|name| name.chars().count() > NAME_CHARS) {
        let message = format!("each name {}", wording::at_most(NAME_CHARS, Unit::Characters));
        return Err(("too_long", message));
    }
    if names.len() > MAX_FOLDERS + 1 {
        return Err(("too_deep", wording::at_most(MAX_FOLDERS, Unit::Levels)));
    }
    Ok(())
}

fn check_content(content: &str, path: &str, wrong: &mut Violations) {
    if content.len() > MAX_CONTENT_BYTES {
        let most = wording::at_most(MAX_CONTENT_BYTES, Unit::Bytes);
        wrong.add(path, "too_long", format!("{most}; it has {}", content.len()));
    }
    if content.contains('\0') {
        wrong.add(path, "invalid", wording::NO_NUL);
    }
}

fn check_hash(hash: &str, content: &str, path: &str, wrong: &mut Violations) {
    let digits = hash.strip_prefix("blake3:").unwrap_or_default();
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if digits.len() != HASH_DIGITS || !digits.bytes().all(is_digit) {
        wrong.add(path, "invalid", "must be 'blake3:' and 64 hexadecimal digits in small letters");
    } else if !content.is_empty() {
        wrong.add(path, "invalid", "stands instead of 'content': send one of the two");
    }
}

fn describe(name: String, found: Vec<(String, Sent)>) -> Checked {
    let mut checked = Checked { name, ..Checked::default() };
    let mut spelled: HashMap<String, String> = HashMap::with_capacity(found.len());
    for (path, sent) in found {
        if let Some(other) = spelled.insert(path.to_lowercase(), path.clone()) {
            let message = format!("differs from '{other}' in case only; both are kept");
            checked.notes.push(Warning::new(&path, "case_clash", &message));
        }
        let file_type = sent.file_type.unwrap_or_else(|| type_of(&path));
        // Warnings about content were given when it was sent.
        if sent.hash.is_none() {
            checked.notes.extend(unparsed(&path, file_type, &sent.content));
        }
        checked.documents.push(Document {
            path,
            file_type,
            hash: sent.hash.unwrap_or_else(|| content_hash(&sent.content)),
            bytes: u32::try_from(sent.content.len()).unwrap_or(u32::MAX),
            text: None,
        });
        checked.texts.push(sent.content);
    }
    checked
}

/// The file type by extension (contract, "Sync preview body").
fn type_of(path: &str) -> FileType {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("md" | "markdown" | "mdx") => FileType::Markdown,
        Some("json") => FileType::Json,
        Some("yaml" | "yml") => FileType::Yaml,
        _ => FileType::Text,
    }
}

/// Warns about content that does not match its type; it is stored as it is.
fn unparsed(path: &str, file_type: FileType, content: &str) -> Option<Warning> {
    let (code, what) = match file_type {
        FileType::Json => {
            serde_json::from_str::<IgnoredAny>(content).is_err().then_some(("invalid_json", "JSON"))?
        }
        FileType::Yaml => {
            let documents = serde_norway::Deserializer::from_str(content);
            let is_broken = documents
                .into_iter()
                .any(|document| <IgnoredAny as serde::Deserialize>::deserialize(document).is_err());
            is_broken.then_some(("invalid_yaml", "YAML"))?
        }
        FileType::Markdown | FileType::Text => return None,
    };
    Some(Warning::new(path, code, &format!("this is no {what}; it is kept as it is")))
}

/// Packs the texts that may have to be written into pieces, each distinct text once, and sets the text places of their documents.
/// Returns the pieces and their size in bytes.
pub(crate) fn piece_up(
    documents: &mut [Document],
    texts: &[String],
    is_wanted: impl Fn(&Document) -> bool,
) -> (Vec<Vec<u8>>, u64) {
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    let mut places: HashMap<String, TextPlace> = HashMap::new();
    let mut bytes = 0;
    for (document, text) in documents.iter_mut().zip(texts) {
        if !is_wanted(document) {
            continue;
        }
        let place = places.entry(document.hash.clone()).or_insert_with(|| {
            bytes += text.len() as u64;
            append(&mut pieces, text)
        });
        document.text = Some(*place);
    }
    (pieces, bytes)
}

fn append(pieces: &mut Vec<Vec<u8>>, text: &str) -> TextPlace {
    let has_room = pieces.last().is_some_and(|last| last.len() + text.len() <= PIECE_BYTES);
    if !has_room {
        pieces.push(Vec::new());
    }
    let piece = u32::try_from(pieces.len().saturating_sub(1)).unwrap_or(u32::MAX);
    let offset = pieces.last().map_or(0, Vec::len);
    if let Some(last) = pieces.last_mut() {
        last.extend_from_slice(text.as_bytes());
    }
    TextPlace { piece, offset: u32::try_from(offset).unwrap_or(u32::MAX) }
}

#[cfg(test)]
mod tests;
