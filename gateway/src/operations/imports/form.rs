//! The upload form of an archive, streamed to the service. Its other parts may precede or follow the archive.

use axum::body::Body;
use cairn_chassis::status::Problem;
use cairn_proto::sync::v1::preview_import_request::Part;
use cairn_proto::sync::v1::{ImportEnd, PreviewImportRequest};
use http::HeaderMap;
use serde_json::{Map, Value};

use super::{ImportForm, WorkspaceAccess, preview};
use crate::answers::ImportRun;
use crate::multipart::{self, Form, Incomplete, Outlet, Stopped};
use crate::validate;

const ARCHIVE: &str = "archive";
/// The required parts beside the archive.
const NEEDED: [&str; 2] = ["workspaceId", "provider"];
/// More than there are part names.
const MAX_PARTS: usize = 16;
const INCOMPLETE: Incomplete = Incomplete { path: ARCHIVE, message: "is not whole: send the form again" };

/// Streams the form to the service and returns its response. `fields` come from the URL; the form may not repeat
/// them, and adds its own.
pub(crate) async fn receive(
    access: &WorkspaceAccess<'_>,
    headers: &HeaderMap,
    body: Body,
    fields: &mut Map<String, Value>,
) -> Result<ImportRun, Problem> {
    let boundary = multipart::boundary(headers).map_err(|_| no_form())?;
    let form = Form::coming(body, &boundary, ARCHIVE, INCOMPLETE);
    let (outlet, messages) = Outlet::open(|bytes| message(Part::Bytes(bytes)));
    let (read, taken) =
        tokio::join!(read_parts(form, access, outlet, fields), preview(access.person, messages));
    multipart::settled(read, taken)
}

fn no_form() -> Problem {
    multipart::refusal(ARCHIVE, "required", "send a form (multipart/form-data) with the ZIP file")
}

fn message(part: Part) -> PreviewImportRequest {
    PreviewImportRequest { part: Some(part) }
}

/// Streams the archive and the fields of the other parts. Without the final message the service discards everything.
async fn read_parts(
    mut form: Form,
    access: &WorkspaceAccess<'_>,
    outlet: Outlet<PreviewImportRequest>,
    fields: &mut Map<String, Value>,
) -> Result<(), Stopped> {
    let mut is_told = false;
    let mut size_bytes = 0;
    while let Some(part) = form.next_new_part(fields, MAX_PARTS).await? {
        let name = part.name().to_owned();
        if name != ARCHIVE {
            let text = part.text().await?;
            // Browsers send fields that were left empty.
            if !text.is_empty() {
                fields.insert(name, Value::String(text));
                is_told = false;
            }
            continue;
        }
        fields.insert(name, Value::String(part.file_name().to_owned()));
        if NEEDED.iter().all(|needed| fields.contains_key(*needed)) {
            is_told = true;
            tell(fields, access, &outlet).await?;
        }
        size_bytes = outlet.hand_on(part).await?;
    }
    if !is_told {
        tell(fields, access, &outlet).await?;
    }
    outlet.send(message(Part::End(ImportEnd { size_bytes }))).await
}

async fn tell(
    fields: &Map<String, Value>,
    access: &WorkspaceAccess<'_>,
    outlet: &Outlet<PreviewImportRequest>,
) -> Result<(), Stopped> {
    let form: ImportForm = validate::read(Value::Object(fields.clone()), "body")?;
    let draft = access.draft(form).await?;
    outlet.send(message(Part::Draft(draft))).await
}
