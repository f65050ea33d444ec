//! A file as a part of a form: handed on as it comes, so that a large one is never in memory whole. Its other parts may
//! stand before it or behind it.

use axum::body::{Body, Bytes};
use cairn_chassis::status::{Problem, Violation};
use cairn_proto::ingest::v1::ingest_file_request::Part;
use cairn_proto::ingest::v1::{IngestFileEnd, IngestFileRequest};
use futures::stream;
use http::{HeaderMap, header};
use multer::{Constraints, Field, Multipart, SizeLimit};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::operations::Context;
use crate::operations::ingest::{self, IngestForm, Taken};
use crate::validate;

const FILE: &str = "file";
const METADATA: &str = "metadata";
/// Of each part but the file.
const MOST_PART_BYTES: u64 = 64 * 1024;
/// More than there are names of parts.
const MOST_PARTS: usize = 32;
/// Of one message to the service.
const MOST_CHUNK_BYTES: usize = 1024 * 1024;
/// Chunks that wait for the service.
const WAITING: usize = 4;

/// Why reading a form ended early.
enum Stopped {
    /// The form cannot be read, or breaks a rule.
    Refused(Problem),
    /// The service takes no more: its answer says why.
    Unwanted,
}

impl From<Problem> for Stopped {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}

/// What parts the parts of a form; `None` when the request is no form.
pub(super) fn boundary(headers: &HeaderMap) -> Option<Result<String, Problem>> {
    let sent = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let is_form = sent.trim_start().to_ascii_lowercase().starts_with("multipart/form-data");
    is_form.then(|| multer::parse_boundary(sent).map_err(|error| unreadable(&error)))
}

/// Takes the form, and what the service says to it.
pub(super) async fn receive(context: &Context, boundary: &str, body: Body) -> Result<(Taken, bool), Problem> {
    let sizes = SizeLimit::new().per_field(MOST_PART_BYTES).for_field(FILE, u64::MAX);
    let constraints = Constraints::new().size_limit(sizes);
    let form = Multipart::with_constraints(body.into_data_stream(), boundary, constraints);
    let (sender, receiver) = mpsc::channel(WAITING);
    let parts = stream::unfold(receiver, async |mut receiver: mpsc::Receiver<IngestFileRequest>| {
        receiver.recv().await.map(|part| (part, receiver))
    });
    let (read, taken) = tokio::join!(read_parts(form, sender), ingest::file(context, parts));
    match read {
        Err(Stopped::Refused(problem)) => Err(problem),
        Ok(()) | Err(Stopped::Unwanted) => taken,
    }
}

/// Hands the file on, then says what the other parts say of it. Without an end the service keeps nothing.
async fn read_parts(mut form: Multipart<'_>, sender: mpsc::Sender<IngestFileRequest>) -> Result<(), Stopped> {
    let mut fields = Map::new();
    let mut sent_type = None;
    let mut size_bytes = 0;
    while let Some(field) = form.next_field().await.map_err(|error| unreadable(&error))? {
        let name = field.name().unwrap_or_default().to_owned();
        if fields.contains_key(&name) {
            return Err(refusal(&name, "invalid", "may stand once in a form").into());
        }
        if fields.len() == MOST_PARTS {
            return Err(refusal("body", "too_long", "has more parts than there are names for").into());
        }
        let value = if name == FILE {
            sent_type = field.content_type().map(ToString::to_string);
            let file_name = field.file_name().unwrap_or_default().to_owned();
            size_bytes = hand_on(field, &sender).await?;
            Value::String(file_name)
        } else {
            let text = field.text().await.map_err(|error| unreadable(&error))?;
            let object = (name == METADATA).then(|| serde_json::from_str(&text).ok()).flatten();
            object.unwrap_or(Value::String(text))
        };
        fields.insert(name, value);
    }
    let input: IngestForm = validate::read(Value::Object(fields), "body")?;
    // Programs that do not know say so.
    let sent_type = sent_type.filter(|sent| sent != "application/octet-stream");
    send(&sender, Part::Draft(input.into_draft(sent_type)?)).await?;
    send(&sender, Part::End(IngestFileEnd { size_bytes })).await
}

/// Hands the bytes of a file on; answers how many there were.
async fn hand_on(mut file: Field<'_>, sender: &mpsc::Sender<IngestFileRequest>) -> Result<u64, Stopped> {
    let mut size_bytes = 0;
    while let Some(mut chunk) = file.chunk().await.map_err(|error| unreadable(&error))? {
        size_bytes += chunk.len() as u64;
        while !chunk.is_empty() {
            let piece: Bytes = chunk.split_to(chunk.len().min(MOST_CHUNK_BYTES));
            send(sender, Part::Bytes(piece)).await?;
        }
    }
    Ok(size_bytes)
}

async fn send(sender: &mpsc::Sender<IngestFileRequest>, part: Part) -> Result<(), Stopped> {
    let message = IngestFileRequest { part: Some(part) };
    sender.send(message).await.map_err(|_| Stopped::Unwanted)
}

fn refusal(path: &str, code: &str, message: &str) -> Problem {
    Problem::validation(vec![Violation::new(path, code, message)])
}

/// What is wrong with a form, in our words.
fn unreadable(error: &multer::Error) -> Problem {
    if let multer::Error::FieldSizeExceeded { field_name, .. } = error {
        let path = field_name.as_deref().unwrap_or("body");
        return refusal(path, "too_long", "may have at most 64 KiB");
    }
    if matches!(error, multer::Error::NoBoundary) {
        return refusal("body", "invalid", "the Content-Type of a form names its boundary");
    }
    refusal("body", "incomplete", "is not a whole form: send it again")
}
