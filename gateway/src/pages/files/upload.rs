//! Uploads by form: each text becomes a file; rejected ones are reported.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRef, FromRequest, Request};
use cairn_chassis::status::Problem;
use maud::html;
use serde_json::json;

use super::change::type_of;
use super::list::{self, FormOutcome};
use super::list_filters::ListFilters;
use crate::app::App;
use crate::error::Error;
use crate::intake::Intake;
use crate::multipart::{self, Incomplete};
use crate::operations::files::{self, CreateFile};
use crate::pages::notice::Notice;
use crate::pages::visitor::Visitor;
use crate::pages::{Answer, folders, form, words};

const FILES: &str = "files";
/// Files beyond this in one form are skipped.
const MAX_FILES: usize = 200;

/// A submitted upload form.
#[derive(Debug, Default)]
pub(super) struct Upload {
    folder: String,
    files: Vec<(String, Bytes)>,
    left_out: usize,
}

impl FromRequest<App> for Upload {
    type Rejection = Error;

    async fn from_request(request: Request, app: &App) -> Result<Self, Error> {
        let intake = Arc::<Intake>::from_ref(app);
        let mut form = multipart::Form::in_memory(request, &intake, Incomplete::of_file(FILES)).await?;
        let mut upload = Self::default();
        while let Some(part) = form.next_part().await? {
            let name = part.name().to_owned();
            if name == "folder" {
                upload.folder = part.text().await?.trim().to_owned();
                continue;
            }
            // Some browsers send the file's path.
            let file_name = part.file_name().rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
            let bytes = part.bytes().await?;
            if name != FILES || file_name.is_empty() {
                continue;
            }
            if upload.files.len() == MAX_FILES {
                upload.left_out += 1;
            } else {
                upload.files.push((file_name, bytes));
            }
        }
        Ok(upload)
    }
}

pub(super) async fn upload(visitor: Visitor, upload: Upload) -> Answer {
    let folder = Some(upload.folder.as_str()).filter(|id| !id.is_empty());
    let context = visitor.context()?;
    let (mut made, mut left) = (0_u64, Vec::new());
    for (name, bytes) in &upload.files {
        let Ok(text) = std::str::from_utf8(bytes) else {
            left.push(format!("{name}: is no text in UTF-8"));
            continue;
        };
        let fields =
            json!({"name": name, "content": text, "fileType": type_of(name).as_str(), "folderId": folder});
        let done = match form::input::<CreateFile>(fields) {
            Ok(input) => files::create(&context, input).await,
            Err(problem) => Err(problem),
        };
        match done {
            Ok(_) => made += 1,
            Err(problem) => left.push(format!("{name}: {}", words::describe(&problem))),
        }
    }
    if upload.left_out > 0 {
        left.push(format!(
            "{} behind the first {MAX_FILES}",
            words::count(upload.left_out as u64, "file", "files")
        ));
    }
    if left.is_empty() && made > 0 {
        return Ok(visitor.done(&folders::address(visitor.here()?.id, folder), &Notice::Created));
    }
    let message = if made == 0 && left.is_empty() {
        "no file was chosen".to_owned()
    } else {
        format!("{} uploaded; these were left out", words::count(made, "file was", "files were"))
    };
    let problem = Problem::new(cairn_chassis::status::Reason::ValidationError, message);
    let more = if left.is_empty() {
        html! {}
    } else {
        list::name_list(&left)
    };
    list::show_again(
        &visitor,
        ListFilters::of(folder, None, None),
        FormOutcome { problem: Some(&problem), more, refused: None },
    )
    .await
}
