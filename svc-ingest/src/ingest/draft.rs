//! Validates what a program sends about a document.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::json;
use cairn_chassis::wording::{self, Unit};
use serde_json::{Map, Value};
use url::Url;

use crate::Error;
use crate::checks::Checks;
use crate::model::{ContentType, FileType, MAX_CONTENT_BYTES};

const MAX_KEY_CHARS: usize = 255;
const MAX_TITLE_CHARS: usize = 1_000;
const MAX_URL_CHARS: usize = 2_000;
const MAX_EXTERNAL_ID_CHARS: usize = 1_000;
const MAX_FILE_NAME_CHARS: usize = 255;
const MAX_MIME_TYPE_BYTES: usize = 255;
/// In its compact form.
const MAX_METADATA_BYTES: usize = 16_384;

/// The metadata of a document, whether its content is a text or a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Draft {
    pub(crate) idempotency_key: String,
    pub(crate) title: String,
    pub(crate) url: Option<String>,
    pub(crate) external_id: Option<String>,
    /// JSON.
    pub(crate) metadata: Option<String>,
    pub(crate) occurred_at: Option<Timestamp>,
}

/// A text as received.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextDraft {
    pub(crate) draft: Draft,
    pub(crate) content: String,
    pub(crate) content_type: ContentType,
}

/// A validated draft; metadata is a compact JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckedDraft {
    pub(crate) idempotency_key: String,
    pub(crate) title: String,
    pub(crate) url: Option<String>,
    pub(crate) external_id: Option<String>,
    pub(crate) metadata: Option<String>,
    pub(crate) occurred_at: Option<Timestamp>,
}

/// A validated text.
#[derive(Debug)]
pub(super) struct CheckedText {
    pub(super) draft: CheckedDraft,
    pub(super) content: String,
    /// Absent for HTML, which is converted.
    pub(super) format: Option<FileType>,
}

/// A file, without its bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileDraft {
    /// An empty title defaults to the file name.
    pub(crate) draft: Draft,
    pub(crate) file_name: String,
    /// Empty if unknown.
    pub(crate) mime_type: String,
}

/// A validated file.
#[derive(Debug)]
pub(super) struct CheckedFile {
    pub(super) draft: CheckedDraft,
    pub(super) file_name: String,
    pub(super) mime_type: Option<String>,
}

impl FileDraft {
    pub(super) fn check(self) -> Result<CheckedFile, Error> {
        let mut checks = Checks::default();
        // Some clients send the whole path.
        let name = self.file_name.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
        let title = if self.draft.title.is_empty() { name.clone() } else { self.draft.title };
        let draft = Draft { title, ..self.draft }.check(&mut checks);
        if !name.is_empty() {
            checks.line("file", &name, MAX_FILE_NAME_CHARS);
        }
        if self.mime_type.len() > MAX_MIME_TYPE_BYTES || self.mime_type.contains(char::is_control) {
            checks.violation("contentType", "invalid", "must be a type such as application/pdf");
        }
        checks.finish()?;
        let mime_type = Some(self.mime_type).filter(|text| !text.is_empty());
        Ok(CheckedFile { draft, file_name: name, mime_type })
    }
}

impl TextDraft {
    pub(super) fn check(self) -> Result<CheckedText, Error> {
        let mut checks = Checks::default();
        let draft = self.draft.check(&mut checks);
        let content = self.content;
        if content.trim().is_empty() {
            checks.violation("content", "required", "give the text of the document");
        }
        if content.contains('\0') {
            checks.violation("content", "invalid", wording::NO_NUL);
        }
        let format = match self.content_type {
            ContentType::Markdown => Some(FileType::Markdown),
            ContentType::Text => Some(FileType::Text),
            ContentType::Json => Some(FileType::Json),
            ContentType::Yaml => Some(FileType::Yaml),
            ContentType::Html => None,
        };
        checks.finish()?;
        if content.len() > MAX_CONTENT_BYTES {
            return Err(too_large(content.len()));
        }
        Ok(CheckedText { draft, content, format })
    }
}

impl Draft {
    /// Validates every field; the result is only meaningful if the checks pass.
    pub(super) fn check(self, checks: &mut Checks) -> CheckedDraft {
        checks.line("idempotencyKey", &self.idempotency_key, MAX_KEY_CHARS);
        checks.line("title", &self.title, MAX_TITLE_CHARS);
        if let Some(url) = &self.url {
            check_url(checks, url);
        }
        if let Some(id) = &self.external_id {
            checks.line("externalId", id, MAX_EXTERNAL_ID_CHARS);
        }
        let metadata = self.metadata.and_then(|text| compact(checks, &text));
        CheckedDraft {
            idempotency_key: self.idempotency_key,
            title: self.title,
            url: self.url,
            external_id: self.external_id,
            metadata,
            occurred_at: self.occurred_at,
        }
    }
}

fn check_url(checks: &mut Checks, text: &str) {
    if text.chars().count() > MAX_URL_CHARS {
        return checks.violation("url", "too_long", wording::at_most(MAX_URL_CHARS, Unit::Characters));
    }
    let is_good = !text.contains(char::is_control)
        && Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    if !is_good {
        let message = "must be an address that begins with http:// or https://";
        checks.violation("url", "invalid", message);
    }
}

/// The compact form of a JSON object; `None` if it is not an object, or too large.
fn compact(checks: &mut Checks, text: &str) -> Option<String> {
    let object: Map<String, Value> = match json::read(text.as_bytes()) {
        Ok(object) => object,
        Err(_) => {
            checks.violation("metadata", "invalid", "must be a JSON object such as {\"team\": \"sales\"}");
            return None;
        }
    };
    let compact = Value::Object(object).to_string();
    if compact.len() > MAX_METADATA_BYTES {
        let message =
            format!("{}; it has {}", wording::at_most(MAX_METADATA_BYTES, Unit::Bytes), compact.len());
        checks.violation("metadata", "too_long", message);
        return None;
    }
    Some(compact)
}

fn too_large(bytes: usize) -> Error {
    Error::TooLarge(format!(
        "the content {}; it has {bytes}: send it in parts, each under a key of its own",
        wording::at_most(MAX_CONTENT_BYTES, Unit::Bytes)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> Draft {
        Draft { idempotency_key: "wiki:1".into(), title: "Pricing".into(), ..Draft::default() }
    }

    fn paths(draft: Draft) -> Vec<String> {
        let sent = TextDraft { draft, content: "x".into(), ..TextDraft::default() };
        match sent.check() {
            Err(Error::Invalid(violations)) => violations.into_iter().map(|one| one.path).collect(),
            other => other.map(|_| Vec::new()).unwrap(),
        }
    }

    #[test]
    fn every_problem_is_said_at_once() {
        let url = |url: &str| Draft { url: Some(url.into()), ..draft() };
        let metadata = |text: &str| Draft { metadata: Some(text.into()), ..draft() };
        assert!(paths(draft()).is_empty());
        let odd = Draft {
            idempotency_key: " ".into(),
            title: String::new(),
            url: Some("ftp://x".into()),
            external_id: Some(String::new()),
            metadata: Some("[]".into()),
            occurred_at: None,
        };
        assert_eq!(paths(odd), ["idempotencyKey", "title", "url", "externalId", "metadata"]);
        assert!(paths(url("https://wiki.example/a?b#c")).is_empty());
        for odd in ["wiki.example", "javascript:alert(1)", "http://", "https://a\nb", "mailto:a@b.example"] {
            assert_eq!(paths(url(odd)), ["url"], "{odd}");
        }
        assert!(paths(url(&format!("https://a.example/{}", "x".repeat(1_982)))).is_empty());
        assert_eq!(paths(url(&format!("https://a.example/{}", "x".repeat(1_983)))), ["url"]);
        for odd in ["", "null", "1", "{", "[{}]"] {
            assert_eq!(paths(metadata(odd)), ["metadata"], "{odd}");
        }
        let key = |chars: usize| Draft { idempotency_key: "é".repeat(chars), ..draft() };
        assert!(paths(key(255)).is_empty());
        assert_eq!(paths(key(256)), ["idempotencyKey"]);
    }

    #[test]
    fn metadata_is_measured_without_white_space() {
        let of = |bytes: usize| format!("{{ \"a\" :\n \"{}\" }}", "x".repeat(bytes - 8));
        let sent = |bytes| Draft { metadata: Some(of(bytes)), ..draft() };
        assert!(paths(sent(MAX_METADATA_BYTES)).is_empty());
        assert_eq!(paths(sent(MAX_METADATA_BYTES + 1)), ["metadata"]);
        let mut checks = Checks::default();
        let checked = sent(MAX_METADATA_BYTES).check(&mut checks);
        assert_eq!(checked.metadata.map(|text| text.len()), Some(MAX_METADATA_BYTES));
    }

    #[test]
    fn a_text_is_not_empty_and_not_too_large() {
        let sent =
            |content: &str| TextDraft { draft: draft(), content: content.into(), ..TextDraft::default() };
        assert!(sent(&"x".repeat(MAX_CONTENT_BYTES)).check().is_ok());
        assert!(matches!(sent(&"x".repeat(MAX_CONTENT_BYTES + 1)).check(), Err(Error::TooLarge(_))));
        for odd in ["", " \n", "a\0b"] {
            assert!(matches!(sent(odd).check(), Err(Error::Invalid(_))), "{odd:?}");
        }
    }
}
