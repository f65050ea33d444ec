//! An archive as a part of a form: handed on as it comes, so that it is never in memory whole. Its other parts may stand before
//! it or behind it.

use axum::body::{Body, Bytes};
use cairn_chassis::status::{Problem, Violation};
use cairn_proto::sync::v1::preview_import_request::Part;
use cairn_proto::sync::v1::{ImportEnd, PreviewImportRequest};
use futures::stream;
use http::{HeaderMap, header};
use multer::{Constraints, Field, Multipart, SizeLimit};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::{Door, ImportForm, preview};
use crate::answers::ImportRun;
use crate::validate;

const ARCHIVE: &str = "archive";
/// The parts that a preview needs, beside the archive.
const NEEDED: [&str; 2] = ["workspaceId", "provider"];
/// Of each part but the archive.
const MOST_PART_BYTES: u64 = 64 * 1024;
/// More than there are names of parts.
const MOST_PARTS: usize = 16;
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

/// Takes the form, and what the service says to it.
/// `fields` are those that the address says; the form may not say them again, and adds its own.
pub(crate) async fn receive(
    door: &Door<'_>,
    headers: &HeaderMap,
    body: Body,
    fields: &mut Map<String, Value>,
) -> Result<ImportRun, Problem> {
    let sent = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let boundary = multer::parse_boundary(sent)
        .map_err(|_| refusal(ARCHIVE, "required", "send a form (multipart/form-data) with the ZIP file"))?;
    let sizes = SizeLimit::new().per_field(MOST_PART_BYTES).for_field(ARCHIVE, u64::MAX);
    let constraints = Constraints::new().size_limit(sizes);
    let form = Multipart::with_constraints(body.into_data_stream(), boundary, constraints);
    let (sender, receiver) = mpsc::channel(WAITING);
    let parts = stream::unfold(receiver, async |mut receiver: mpsc::Receiver<PreviewImportRequest>| {
        receiver.recv().await.map(|part| (part, receiver))
    });
    let (read, taken) = tokio::join!(read_parts(form, door, sender, fields), preview(door.person, parts));
    match read {
        Err(Stopped::Refused(problem)) => Err(problem),
        Ok(()) | Err(Stopped::Unwanted) => taken,
    }
}

/// Hands the archive on, and says what the other parts say of it: before it, when they came before it. Without an end the
/// service keeps nothing.
async fn read_parts(
    mut form: Multipart<'_>,
    door: &Door<'_>,
    sender: mpsc::Sender<PreviewImportRequest>,
    fields: &mut Map<String, Value>,
) -> Result<(), Stopped> {
    let mut is_told = false;
    let mut size_bytes = 0;
    while let Some(field) = form.next_field().await.map_err(|error| unreadable(&error))? {
        let name = field.name().unwrap_or_default().to_owned();
        if fields.contains_key(&name) {
            return Err(refusal(&name, "invalid", "may stand once in a form").into());
        }
        if fields.len() == MOST_PARTS {
            return Err(refusal("body", "too_long", "has more parts than there are names for").into());
        }
        if name != ARCHIVE {
            let text = field.text().await.map_err(|error| unreadable(&error))?;
            // A browser sends what a person left empty.
            if !text.is_empty() {
                fields.insert(name, Value::String(text));
                is_told = false;
            }
            continue;
        }
        let file_name = field.file_name().unwrap_or_default().to_owned();
        fields.insert(name, Value::String(file_name));
        if NEEDED.iter().all(|needed| fields.contains_key(*needed)) {
            is_told = true;
            tell(fields, door, &sender).await?;
        }
        size_bytes = hand_on(field, &sender).await?;
    }
    if !is_told {
        tell(fields, door, &sender).await?;
    }
    send(&sender, Part::End(ImportEnd { size_bytes })).await
}

async fn tell(
    fields: &Map<String, Value>,
    door: &Door<'_>,
    sender: &mpsc::Sender<PreviewImportRequest>,
) -> Result<(), Stopped> {
    let form: ImportForm = validate::read(Value::Object(fields.clone()), "body")?;
    let draft = door.draft(form).await?;
    send(sender, Part::Draft(draft)).await
}

/// Hands the bytes of the archive on; answers how many there were.
async fn hand_on(
    mut archive: Field<'_>,
    sender: &mpsc::Sender<PreviewImportRequest>,
) -> Result<u64, Stopped> {
    let mut size_bytes = 0;
    while let Some(mut chunk) = archive.chunk().await.map_err(|error| unreadable(&error))? {
        size_bytes += chunk.len() as u64;
        while !chunk.is_empty() {
            let piece: Bytes = chunk.split_to(chunk.len().min(MOST_CHUNK_BYTES));
            send(sender, Part::Bytes(piece)).await?;
        }
    }
    Ok(size_bytes)
}

async fn send(sender: &mpsc::Sender<PreviewImportRequest>, part: Part) -> Result<(), Stopped> {
    let message = PreviewImportRequest { part: Some(part) };
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
    refusal(ARCHIVE, "incomplete", "is not whole: send the form again")
}
