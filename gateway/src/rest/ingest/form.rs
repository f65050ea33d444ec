//! The upload form of a file, streamed to the service. Its other parts may precede or follow the file.

use axum::body::Body;
use cairn_chassis::status::Problem;
use cairn_proto::ingest::v1::ingest_file_request::Part;
use cairn_proto::ingest::v1::{IngestFileEnd, IngestFileRequest};
use http::{HeaderMap, header};
use serde_json::{Map, Value};

use crate::multipart::{self, Form, Incomplete, Outlet, Stopped};
use crate::operations::Context;
use crate::operations::ingest::{self, IngestForm, Taken};
use crate::validate;

const FILE: &str = "file";
const METADATA: &str = "metadata";
/// More than there are part names.
const MAX_PARTS: usize = 32;
const INCOMPLETE: Incomplete = Incomplete { path: "body", message: "is not a whole form: send it again" };

/// The boundary of a multipart request; `None` if it is none.
pub(super) fn boundary(headers: &HeaderMap) -> Option<Result<String, Problem>> {
    let sent = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let is_form = sent.trim_start().to_ascii_lowercase().starts_with("multipart/form-data");
    is_form.then(|| multipart::boundary(headers).map_err(|error| INCOMPLETE.unreadable(&error)))
}

/// Streams the form to the service and returns its response.
pub(super) async fn receive(context: &Context, boundary: &str, body: Body) -> Result<(Taken, bool), Problem> {
    let form = Form::coming(body, boundary, FILE, INCOMPLETE);
    let (outlet, messages) = Outlet::open(|bytes| message(Part::Bytes(bytes)));
    let (read, taken) = tokio::join!(read_parts(form, outlet), ingest::file(context, messages));
    multipart::settled(read, taken)
}

fn message(part: Part) -> IngestFileRequest {
    IngestFileRequest { part: Some(part) }
}

/// Streams the file, then the fields of the other parts. Without the final message the service discards everything.
async fn read_parts(mut form: Form, outlet: Outlet<IngestFileRequest>) -> Result<(), Stopped> {
    let mut fields = Map::new();
    let mut sent_type = None;
    let mut size_bytes = 0;
    while let Some(part) = form.next_new_part(&fields, MAX_PARTS).await? {
        let name = part.name().to_owned();
        let value = if name == FILE {
            sent_type = part.sent_type();
            let file_name = part.file_name().to_owned();
            size_bytes = outlet.hand_on(part).await?;
            Value::String(file_name)
        } else {
            let text = part.text().await?;
            let object = (name == METADATA).then(|| serde_json::from_str(&text).ok()).flatten();
            object.unwrap_or(Value::String(text))
        };
        fields.insert(name, value);
    }
    let input: IngestForm = validate::read(Value::Object(fields), "body")?;
    // A generic type that programs send if they do not know a better one.
    let sent_type = sent_type.filter(|sent| sent != "application/octet-stream");
    outlet.send(message(Part::Draft(input.into_draft(sent_type)?))).await?;
    outlet.send(message(Part::End(IngestFileEnd { size_bytes }))).await
}
