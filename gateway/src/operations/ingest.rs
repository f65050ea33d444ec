//! Ingested documents: upload, status, read, delete.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::status::{Problem, Violation};
use cairn_proto::domain::{ContentType, IngestStatus};
use cairn_proto::ids::DocumentId;
use cairn_proto::ingest::v1 as proto;
use futures::Stream;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{Context, Page, Paging, Written, answered, present};
use crate::answers::IngestedDocument;
use crate::change;
use crate::schema::inputs;

inputs!(IngestDocument, IngestForm);

/// A text to ingest.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct IngestDocument {
    /// Names the document for its sender, such as `wiki:page:1234`: the same content again under it is answered with the
    /// document that is there, other content with 409.
    #[schema(min_length = 1, max_length = 255, examples("wiki:page:1234"))]
    idempotency_key: String,
    #[schema(min_length = 1, max_length = 1000)]
    title: String,
    /// The whole text, at most 5 MB.
    content: String,
    /// What the text is; Markdown when left out. HTML is retained as Markdown.
    content_type: Option<ContentType>,
    /// Where people read it: http or https.
    #[schema(max_length = 2000)]
    url: Option<String>,
    /// The id that it has where it comes from.
    #[schema(max_length = 1000)]
    external_id: Option<String>,
    /// What belongs to it: an object of at most 16 KB.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
    /// When what it says was so, with an offset, such as `2026-11-20T12:00:00Z`.
    #[schema(format = DateTime)]
    occurred_at: Option<String>,
}

/// A file to ingest, as the parts of a form.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct IngestForm {
    /// The file: PDF, Office, e-book, mail, HTML, table, notebook or text.
    #[schema(format = Binary)]
    pub(crate) file: String,
    /// As in JSON.
    #[schema(min_length = 1, max_length = 255)]
    idempotency_key: String,
    /// The file's name when left out.
    #[schema(max_length = 1000)]
    title: Option<String>,
    /// Where people read it: http or https.
    #[schema(max_length = 2000)]
    url: Option<String>,
    /// The id that it has where it comes from.
    #[schema(max_length = 1000)]
    external_id: Option<String>,
    /// What belongs to it: a JSON object of at most 16 KB.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
    /// When what it says was so, with an offset.
    #[schema(format = DateTime)]
    occurred_at: Option<String>,
    /// What the file is, such as `application/pdf` or `html`: a hint beside its content and its name.
    #[schema(max_length = 255)]
    content_type: Option<String>,
}

/// A document that was taken.
pub(crate) type Taken = Written<IngestedDocument>;

/// The retained text of a document.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) text: axum::body::Bytes,
    pub(crate) mime_type: String,
    pub(crate) content_hash: String,
}

impl IngestForm {
    /// The request message for a file; `sent_type` is the part's Content-Type.
    pub(crate) fn into_draft(self, sent_type: Option<String>) -> Result<proto::IngestFileDraft, Problem> {
        let hint = self.content_type.map(|hint| match hint.parse() {
            Ok(known) => media_type(known).to_owned(),
            Err(_) => hint,
        });
        Ok(proto::IngestFileDraft {
            draft: Some(proto::IngestDraft {
                idempotency_key: self.idempotency_key,
                title: self.title.unwrap_or_default(),
                url: self.url,
                external_id: self.external_id,
                metadata: self.metadata.map(|object| Value::Object(object).to_string()),
                occurred_at: time(self.occurred_at)?,
            }),
            file_name: self.file,
            mime_type: with_charset(hint, sent_type).unwrap_or_default(),
        })
    }
}

/// Ingests a text; `true` if the same was sent before.
pub(crate) async fn text(context: &Context, input: IngestDocument) -> Result<(Taken, bool), Problem> {
    let draft = proto::IngestDraft {
        idempotency_key: input.idempotency_key,
        title: input.title,
        url: input.url,
        external_id: input.external_id,
        metadata: input.metadata.map(|object| Value::Object(object).to_string()),
        occurred_at: time(input.occurred_at)?,
    };
    let request = context.call.request(proto::IngestDocumentRequest {
        draft: Some(draft),
        content: input.content,
        content_type: input.content_type.unwrap_or_default().into(),
    });
    let taken = answered(context.upstreams.ingest_documents().ingest_document(request).await)?;
    read(context, taken.document, taken.deduplicated, taken.position)
}

/// Ingests a file while it is being uploaded.
pub(crate) async fn file(
    context: &Context,
    parts: impl Stream<Item = proto::IngestFileRequest> + Send + 'static,
) -> Result<(Taken, bool), Problem> {
    let request = context.call.request(parts);
    let taken = answered(context.upstreams.ingest_documents().ingest_file(request).await)?;
    read(context, taken.document, taken.deduplicated, taken.position)
}

pub(crate) async fn get(context: &Context, id: DocumentId) -> Result<IngestedDocument, Problem> {
    let request = context.call.request(proto::GetIngestedDocumentRequest { document_id: id.to_string() });
    let found = answered(context.upstreams.ingest_documents().get_ingested_document(request).await)?;
    Ok(IngestedDocument::read(present(found.document)?, &context.links))
}

pub(crate) async fn list(
    context: &Context,
    status: Option<IngestStatus>,
    title: Option<String>,
    page: Paging,
) -> Result<Page<IngestedDocument>, Problem> {
    let request = context.call.request(proto::ListIngestedDocumentsRequest {
        status: status.map_or(0, IngestStatus::number),
        page_size: page.limit.unwrap_or_default(),
        page_token: page.cursor.unwrap_or_default(),
        title: title.unwrap_or_default(),
    });
    let listed = answered(context.upstreams.ingest_documents().list_ingested_documents(request).await)?;
    let next = Some(listed.next_page_token).filter(|token| !token.is_empty());
    let items = listed.documents.into_iter();
    let items = items.map(|document| IngestedDocument::read(document, &context.links)).collect();
    Ok(Page { items, next, total: listed.total_size })
}

pub(crate) async fn content(context: &Context, id: DocumentId) -> Result<Content, Problem> {
    let request = context.call.request(proto::GetIngestedContentRequest { document_id: id.to_string() });
    let found = answered(context.upstreams.ingest_documents().get_ingested_content(request).await)?;
    Ok(Content { text: found.content, mime_type: found.mime_type, content_hash: found.content_hash })
}

pub(crate) async fn delete(context: &Context, id: DocumentId) -> Result<Written<()>, Problem> {
    let request = context.call.request(proto::DeleteIngestedDocumentRequest { document_id: id.to_string() });
    let gone = answered(context.upstreams.ingest_documents().delete_ingested_document(request).await)?;
    Ok(Written { value: (), change: change::of_ingest(gone.position) })
}

fn read(
    context: &Context,
    document: Option<proto::IngestedDocument>,
    deduplicated: bool,
    position: u64,
) -> Result<(Taken, bool), Problem> {
    let value = IngestedDocument::read(present(document)?, &context.links).deduplicated(deduplicated);
    Ok((Written { value, change: change::of_ingest(position) }, deduplicated))
}

fn time(text: Option<String>) -> Result<Option<prost_types::Timestamp>, Problem> {
    let Some(text) = text else { return Ok(None) };
    match Timestamp::parse_rfc3339(&text) {
        Some(at) => Ok(Some(at.to_proto())),
        None => {
            let message = "must be a time with an offset, such as 2026-11-20T12:00:00Z";
            Err(Problem::validation(vec![Violation::new("occurredAt", "invalid", message)]))
        }
    }
}

/// The hint overrides the part's Content-Type, but only the latter has a charset.
fn with_charset(hint: Option<String>, sent: Option<String>) -> Option<String> {
    let (Some(hint), Some(sent)) = (&hint, &sent) else { return hint.or(sent) };
    let is_charset = |parameter: &&str| parameter.trim_start().to_ascii_lowercase().starts_with("charset=");
    match sent.split(';').skip(1).find(is_charset).filter(|_| !hint.contains(';')) {
        Some(charset) => Some(format!("{hint};{charset}")),
        None => Some(hint.clone()),
    }
}

const fn media_type(content_type: ContentType) -> &'static str {
    match content_type {
        ContentType::Markdown => "text/markdown",
        ContentType::Text => "text/plain",
        ContentType::Json => "application/json",
        ContentType::Yaml => "text/yaml",
        ContentType::Html => "text/html",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_leaves_the_charset_that_came_with_the_bytes() {
        let told = |hint: Option<&str>, sent: Option<&str>| {
            with_charset(hint.map(str::to_owned), sent.map(str::to_owned))
        };
        let html = Some("text/html");
        let cyrillic = Some("text/html; Charset=windows-1251; boundary=x");
        assert_eq!(told(html, cyrillic).as_deref(), Some("text/html; Charset=windows-1251"));
        assert_eq!(told(html, Some("text/html; boundary=x")).as_deref(), html);
        assert_eq!(
            told(Some("text/html;charset=utf-8"), cyrillic).as_deref(),
            Some("text/html;charset=utf-8")
        );
        assert_eq!(told(None, cyrillic).as_deref(), cyrillic);
        assert_eq!(told(html, None).as_deref(), html);
        assert_eq!(told(None, None), None);
    }
}
