//! Actions on a database and its records other than editing: rename, move, trash, body pages, versions.

use cairn_chassis::status::{Problem, Reason, Violation};
use cairn_proto::domain::TrashKind;
use cairn_proto::ids::RecordId;
use serde_json::{Value, json};
use uuid::Uuid;

use super::at::{LocatedDatabase, LocatedPart};
use super::form_outcome::FormOutcome;
use super::grid;
use super::model::title_of;
use super::view_state::ViewState;
use super::{address, list};
use crate::operations::databases::{self, UpdateDatabase};
use crate::operations::files::{self, CreateFile};
use crate::operations::records::{self, UpdateRecord};
use crate::pages::form::{self, Form};
use crate::pages::notice::Notice;
use crate::pages::popover::{Refused, is_of_a_form};
use crate::pages::{Answer, file, words};

/// The page size of the grid, and what a notice can undo.
const MAX_AT_ONCE: usize = 90;
const MAX_CHARS_OF_A_NAME: usize = 200;

/// `POST /databases/{id}/rename`.
pub(super) async fn rename(at: LocatedDatabase, form: Form) -> Answer {
    let description = Some(form.trimmed("description")).filter(|text| !text.is_empty());
    let fields = json!({"name": form.trimmed("name"), "description": description});
    change(&at, ("rename", &form), fields, &Notice::Renamed).await
}

/// `POST /databases/{id}/move`.
pub(super) async fn move_to(at: LocatedDatabase, form: Form) -> Answer {
    let folder = Some(form.trimmed("folder")).filter(|id| !id.is_empty());
    change(&at, ("move", &form), json!({"folderId": folder}), &Notice::Saved).await
}

/// Applies a form's change to the database.
async fn change(at: &LocatedDatabase, (of, form): (&str, &Form), fields: Value, notice: &Notice) -> Answer {
    let changed = match form::input::<UpdateDatabase>(fields) {
        Ok(input) => databases::update(&at.visitor.context()?, at.id, input).await,
        Err(problem) => Err(problem),
    };
    match changed {
        Ok(_) => Ok(at.visitor.done(&address(at.id), notice)),
        Err(problem) if is_of_a_form(&problem) => {
            let problem = form::renamed(problem, &[("folderId", "folder")]);
            let outcome = FormOutcome::of_button(Refused { of, form, problem: &problem });
            grid::show_again(at, &ViewState::default(), outcome).await
        }
        Err(problem) => Err(problem.into()),
    }
}

async fn refused(at: &LocatedDatabase, view_state: &ViewState, problem: Problem) -> Answer {
    if problem.violations.is_empty() {
        return Err(problem.into());
    }
    grid::show_again(at, view_state, FormOutcome::of_page(&problem)).await
}

/// `POST /databases/{id}/delete`: moves to trash, with Undo on the next page.
pub(super) async fn delete(at: LocatedDatabase) -> Answer {
    databases::delete(&at.visitor.context()?, at.id).await?;
    let to = list::address(at.visitor.here()?.id);
    Ok(at.visitor.done(&to, &Notice::Trashed(vec![(TrashKind::Database, at.id.0)])))
}

/// `POST /databases/{id}/records/{record}/delete`: moves to trash, with Undo on the next page.
pub(super) async fn delete_record(LocatedPart { at, id }: LocatedPart<RecordId>, form: Form) -> Answer {
    records::delete(&at.visitor.context()?, at.id, id).await?;
    let to = ViewState::read(form.text("back")).grid().address(&at.id.to_string());
    Ok(at.visitor.done(&to, &Notice::Trashed(vec![(TrashKind::Record, id.0)])))
}

/// `POST /databases/{id}/records/many`: moves the selected records to trash, with a single Undo.
pub(super) async fn many(at: LocatedDatabase, form: Form) -> Answer {
    let view_state = ViewState::read(form.text("back"));
    let items: Option<Vec<RecordId>> = form.all("item").map(|id| id.parse().ok()).collect();
    let items = items.filter(|items| (1..=MAX_AT_ONCE).contains(&items.len()));
    let (Some(items), "trash") = (items, form.text("do")) else {
        let message = format!("needs records that are selected: 1 to {MAX_AT_ONCE} at once");
        let problem = Problem::validation(vec![Violation::new("item", "required", message)]);
        return refused(&at, &view_state, problem).await;
    };
    let context = at.visitor.context()?;
    let mut done: Vec<(TrashKind, Uuid)> = Vec::with_capacity(items.len());
    for id in items {
        match records::delete(&context, at.id, id).await {
            Ok(_) => done.push((TrashKind::Record, id.0)),
            // Already deleted concurrently.
            Err(problem) if problem.reason == Reason::NotFound => {}
            Err(problem) if done.is_empty() => return Err(problem.into()),
            Err(problem) => {
                let message = format!(
                    "{} moved to trash, the rest was left as it is: {}",
                    words::count(done.len() as u64, "record was", "records were"),
                    problem.message
                );
                return grid::show_again(
                    &at,
                    &view_state,
                    FormOutcome::of_page(&Problem { message, ..problem }),
                )
                .await;
            }
        }
    }
    Ok(at.visitor.done(&view_state.grid().address(&at.id.to_string()), &Notice::Trashed(done)))
}

/// `POST /databases/{id}/records/{record}/restore`: restores a version, as a new version.
pub(super) async fn restore_version(LocatedPart { at, id }: LocatedPart<RecordId>, form: Form) -> Answer {
    let version = form.text("version").parse().map_err(|_| super::at::no_part())?;
    let view_state = ViewState::read(form.text("back"));
    match records::restore_version(&at.visitor.context()?, at.id, id, version).await {
        Ok(_) => Ok(at.visitor.done(&record_url(&at, id, &view_state), &Notice::Restored)),
        Err(problem) => refused(&at, &view_state.beside(&id.to_string()), problem).await,
    }
}

/// `POST /databases/{id}/records/{record}/page`: creates a file as the record's body, beside the database, and opens
/// its editor.
pub(super) async fn add_page(LocatedPart { at, id }: LocatedPart<RecordId>) -> Answer {
    let context = at.visitor.context()?;
    let (database, record) =
        tokio::try_join!(databases::get(&context, at.id), records::get(&context, at.id, id))?;
    if let Some(has) = &record.content_file_id {
        return Ok(at.visitor.done(&file::address(has), &Notice::Saved));
    }
    let fields = json!({
        "name": file_name(title_of(&record)),
        "content": "",
        "fileType": "markdown",
        "folderId": database.folder_id,
    });
    let made = files::create(&context, form::input::<CreateFile>(fields)?).await?.value;
    let input = form::input::<UpdateRecord>(json!({"contentFileId": made.id}))?;
    records::update(&context, at.id, id, input, vec![record.version], false).await?;
    Ok(at.visitor.done(&format!("{}/edit", file::address(&made.id)), &Notice::Created))
}

/// `POST /databases/{id}/records/{record}/no-page`: detaches the body; the file is kept.
pub(super) async fn remove_page(LocatedPart { at, id }: LocatedPart<RecordId>, form: Form) -> Answer {
    let input = form::input::<UpdateRecord>(json!({"contentFileId": null}))?;
    records::update(&at.visitor.context()?, at.id, id, input, Vec::new(), false).await?;
    Ok(at.visitor.done(&record_url(&at, id, &ViewState::read(form.text("back"))), &Notice::Saved))
}

/// The URL of the record beside the grid, with the current view.
fn record_url(at: &LocatedDatabase, record: RecordId, view_state: &ViewState) -> String {
    view_state.beside(&record.to_string()).address(&at.id.to_string())
}

/// A title as a valid file name.
fn file_name(title: &str) -> String {
    let name: String = title
        .chars()
        .map(|letter| if letter == '/' || letter.is_control() { '-' } else { letter })
        .take(MAX_CHARS_OF_A_NAME)
        .collect();
    let name = name.trim().trim_matches('.').trim();
    format!("{}.md", if name.is_empty() { "Page" } else { name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_becomes_a_name() {
        for (title, name) in [
            ("Plan", "Plan.md"),
            ("a/b\nc", "a-b-c.md"),
            ("..", "Page.md"),
            (" ", "Page.md"),
            ("", "Page.md"),
        ] {
            assert_eq!(file_name(title), name);
        }
        assert_eq!(file_name(&"é".repeat(999)).chars().count(), MAX_CHARS_OF_A_NAME + 3);
    }
}
