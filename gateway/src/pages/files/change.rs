//! Actions on files and folders of a list.

use cairn_chassis::status::Problem;
use cairn_proto::domain::{FileType, TrashKind};
use cairn_proto::ids::FolderId;
use serde_json::json;

use super::list::{self, FormOutcome};
use super::list_filters::ListFilters;
use super::selection::{FIELDS, MANY};
use crate::operations::files::{self, CreateFile};
use crate::operations::folders::{self as folder_operations, CreateFolder, UpdateFolder};
use crate::pages::form::{self, Form};
use crate::pages::notice::Notice;
use crate::pages::popover::{Refused, is_of_a_form};
use crate::pages::visitor::Visitor;
use crate::pages::{Answer, file, folders};

/// The file type by extension.
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
        Err(problem) => refused(&visitor, ListFilters::of(folder, None, None), ("new", &form), problem).await,
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
        Err(problem) => {
            refused(&visitor, ListFilters::of(folder, None, None), ("new-folder", &form), problem).await
        }
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
        Err(problem) => refused(visitor, ListFilters::of(Some(id), None, None), sent, problem).await,
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

/// A submitted form: its id on the page, and its fields.
type Sent<'a> = (&'a str, &'a Form);

pub(super) async fn refused(
    visitor: &Visitor,
    narrowed: ListFilters<'_>,
    (of, form): Sent<'_>,
    problem: Problem,
) -> Answer {
    if !is_of_a_form(&problem) {
        return Err(problem.into());
    }
    let to = if of == MANY { "to" } else { "parent" };
    let problem = form::renamed(problem, &[("parentId", to), ("folderId", to)]);
    let problem = form::renamed(problem, &FIELDS);
    let refused = Some(Refused { of, form, problem: &problem });
    list::show_again(
        visitor,
        narrowed,
        FormOutcome { problem: Some(&problem), refused, ..FormOutcome::default() },
    )
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

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
