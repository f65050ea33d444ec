//! What is done with files and folders from their list.

use cairn_chassis::status::{Problem, Violation};
use cairn_proto::domain::{FileType, TrashKind};
use cairn_proto::ids::{FileId, FolderId};
use serde_json::json;
use uuid::Uuid;

use super::list::{self, Told};
use crate::operations::Context;
use crate::operations::files::{self, CreateFile, UpdateFile};
use crate::operations::folders::{self as folder_operations, CreateFolder, UpdateFolder};
use crate::pages::form::{self, Form};
use crate::pages::notice::Notice;
use crate::pages::popover::{Refused, is_of_a_form};
use crate::pages::visitor::Visitor;
use crate::pages::{Answer, file, folders, words};

/// What a file is, by the end of its name.
pub(super) fn type_of(name: &str) -> FileType {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    match ending.as_str() {
        "md" | "markdown" | "mdx" => FileType::Markdown,
        "json" => FileType::Json,
        "yaml" | "yml" => FileType::Yaml,
        _ => FileType::Text,
    }
}

fn given<'a>(form: &'a Form, name: &str) -> Option<&'a str> {
    Some(form.trimmed(name)).filter(|text| !text.is_empty())
}

pub(super) async fn new_file(visitor: Visitor, form: Form) -> Answer {
    let folder = given(&form, "folder");
    let name = form.trimmed("name");
    let fields = json!({
        "name": name, "content": "", "fileType": type_of(name).as_str(), "folderId": folder,
    });
    let context = visitor.context()?;
    let made = match form::input::<CreateFile>(fields) {
        Ok(input) => files::create(&context, input).await,
        Err(problem) => Err(problem),
    };
    match made {
        Ok(made) => Ok(visitor.done(&format!("{}/edit", file::address(&made.value.id)), &Notice::Created)),
        Err(problem) => refused(&visitor, folder, ("new", &form), problem).await,
    }
}

pub(super) async fn new_folder(visitor: Visitor, form: Form) -> Answer {
    let folder = given(&form, "folder");
    let fields = json!({"name": form.trimmed("name"), "parentId": folder});
    let context = visitor.context()?;
    let made = match form::input::<CreateFolder>(fields) {
        Ok(input) => folder_operations::create(&context, input).await,
        Err(problem) => Err(problem),
    };
    match made {
        Ok(made) => {
            Ok(visitor.done(&folders::address(visitor.here()?.id, Some(&made.value.id)), &Notice::Created))
        }
        Err(problem) => refused(&visitor, folder, ("new-folder", &form), problem).await,
    }
}

pub(super) async fn rename(visitor: Visitor, form: Form) -> Answer {
    change(&visitor, ("rename-folder", &form), json!({"name": form.trimmed("name")}), &Notice::Renamed).await
}

pub(super) async fn move_folder(visitor: Visitor, form: Form) -> Answer {
    let fields = json!({"parentId": given(&form, "parent")});
    change(&visitor, ("move-folder", &form), fields, &Notice::Saved).await
}

async fn change(visitor: &Visitor, sent: Sent<'_>, fields: serde_json::Value, notice: &Notice) -> Answer {
    let id = sent.1.trimmed("folder");
    let folder: FolderId = id.parse().map_err(|_| no_folder())?;
    let context = visitor.context()?;
    let changed = match form::input::<UpdateFolder>(fields) {
        Ok(input) => folder_operations::update(&context, folder, input).await,
        Err(problem) => Err(problem),
    };
    match changed {
        Ok(_) => Ok(visitor.done(&folders::address(visitor.here()?.id, Some(id)), notice)),
        Err(problem) => refused(visitor, Some(id), sent, problem).await,
    }
}

pub(super) async fn delete_folder(visitor: Visitor, form: Form) -> Answer {
    let folder: FolderId = form.trimmed("folder").parse().map_err(|_| no_folder())?;
    let context = visitor.context()?;
    let was = folder_operations::get(&context, folder).await?;
    folder_operations::delete(&context, folder).await?;
    let to = folders::address(visitor.here()?.id, was.parent_id.as_deref());
    Ok(visitor.done(&to, &Notice::Trashed(vec![(TrashKind::Folder, folder.0)])))
}

fn no_folder() -> Problem {
    Problem::not_found("there is no such folder here")
}

/// A form that was sent: which one of the page, and its fields.
type Sent<'a> = (&'a str, &'a Form);

async fn refused(visitor: &Visitor, folder: Option<&str>, (of, form): Sent<'_>, problem: Problem) -> Answer {
    if !is_of_a_form(&problem) {
        return Err(problem.into());
    }
    let to = if of == list::MANY { "to" } else { "parent" };
    let problem = form::renamed(problem, &[("parentId", to), ("folderId", to)]);
    let refused = Some(Refused { of, form, problem: &problem });
    list::again(visitor, folder, Told { problem: Some(&problem), refused, ..Told::default() }).await
}

/// What is done with each of many.
enum Deed<'a> {
    Trash,
    Move(Option<&'a str>),
    Tag(Vec<&'a str>),
}

pub(super) async fn many(visitor: Visitor, form: Form) -> Answer {
    let within = given(&form, "in");
    let items: Vec<(TrashKind, Uuid)> = form.all("item").filter_map(item).collect();
    let deed = match form.text("do") {
        "trash" => Deed::Trash,
        "move" => Deed::Move(given(&form, "to")),
        "tag" => Deed::Tag(folders::tags(form.text("tag-selected"))),
        _ => return Err(nothing("do", "names nothing that can be done").into()),
    };
    if items.is_empty() {
        let problem = nothing("item", "needs at least one: select files or folders first");
        return refused(&visitor, within, (list::MANY, &form), problem).await;
    }
    let context = visitor.context()?;
    let (mut done, mut left) = (Vec::new(), Vec::new());
    for (kind, id) in items {
        match apply(&context, &deed, kind, id).await {
            Ok(()) => done.push((kind, id)),
            Err(problem) => left.push(words::told(&problem)),
        }
    }
    if left.is_empty() {
        let notice = if matches!(deed, Deed::Trash) { Notice::Trashed(done) } else { Notice::Saved };
        return Ok(visitor.done(&folders::address(visitor.here()?.id, within), &notice));
    }
    left.dedup();
    let message =
        format!("{} done, the rest was left as it is", words::count(done.len() as u64, "was", "were"));
    let problem = Problem::new(cairn_chassis::status::Reason::ValidationError, message);
    list::again(&visitor, within, Told { problem: Some(&problem), more: list::some(&left), refused: None })
        .await
}

fn nothing(path: &str, message: &str) -> Problem {
    Problem::validation(vec![Violation::new(path, "required", message)])
}

/// `file:` or `folder:`, and an id.
fn item(text: &str) -> Option<(TrashKind, Uuid)> {
    let (kind, id) = text.split_once(':')?;
    let kind = match kind {
        "file" => TrashKind::File,
        "folder" => TrashKind::Folder,
        _ => return None,
    };
    Some((kind, id.parse::<FileId>().ok()?.0))
}

async fn apply(context: &Context, deed: &Deed<'_>, kind: TrashKind, id: Uuid) -> Result<(), Problem> {
    if kind == TrashKind::Folder {
        let folder = FolderId(id);
        return match deed {
            Deed::Trash => folder_operations::delete(context, folder).await.map(drop),
            Deed::Move(to) => {
                let input = form::input::<UpdateFolder>(json!({"parentId": to}))?;
                folder_operations::update(context, folder, input).await.map(drop)
            }
            Deed::Tag(_) => Err(nothing("folder", "has no tags: only files do")),
        };
    }
    let file = FileId(id);
    match deed {
        Deed::Trash => files::delete(context, file).await.map(drop),
        Deed::Move(to) => {
            let input = form::input::<UpdateFile>(json!({"folderId": to}))?;
            files::update(context, file, input, Vec::new()).await.map(drop)
        }
        Deed::Tag(tags) => {
            let mut all = files::get(context, file).await?.tags;
            for tag in tags {
                if !all.iter().any(|known| known == tag) {
                    all.push((*tag).to_owned());
                }
            }
            let input = form::input::<UpdateFile>(json!({"tags": all}))?;
            files::update(context, file, input, Vec::new()).await.map(drop)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_files_and_folders_by_id() {
        let id = "0199c0de-0000-7000-8000-000000000001";
        assert_eq!(item(&format!("file:{id}")).unwrap().0, TrashKind::File);
        assert_eq!(item(&format!("folder:{id}")).unwrap().0, TrashKind::Folder);
        for odd in ["", "file", "file:", "file:x", &format!("record:{id}")] {
            assert_eq!(item(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_file_is_what_its_name_ends_with() {
        for (name, of) in [
            ("a.MD", FileType::Markdown),
            ("a.b.json", FileType::Json),
            ("a.yml", FileType::Yaml),
            ("README", FileType::Text),
            ("md", FileType::Text),
        ] {
            assert_eq!(type_of(name), of, "{name}");
        }
    }
}
