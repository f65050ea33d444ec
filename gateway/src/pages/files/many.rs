//! Bulk actions on selected items, or on all that match. The latter are previewed first, because nobody sees all of
//! them; the rest is done at once and can be undone.

use cairn_chassis::status::{Problem, Reason, Violation};
use cairn_proto::domain::TrashKind;
use cairn_proto::ids::{FileId, WorkspaceId};
use http::request::Parts;
use maud::{Markup, html};

use super::change;
use super::list::{self, FormOutcome};
use super::list_filters::ListFilters;
use super::selection::MANY;
use crate::answers::{ChangedItems, SkippedItem};
use crate::operations::bulk::{self, BulkAction, Chosen, ChosenItem, MatchingFiles};
use crate::operations::{Context, files};
use crate::pages::form::Form;
use crate::pages::frame::Page;
use crate::pages::notice::{Change, Changed, Notice};
use crate::pages::parts as part;
use crate::pages::popover::is_of_a_form;
use crate::pages::visitor::{Visitor, see_other};
use crate::pages::{Answer, folders, words};

/// How many matching items a preview names, and how many skipped ones a result names.
const NAMED: usize = 10;
const MAX_LEFT: usize = 19;

/// Applies the form's action to the selected items. All that match are previewed first.
pub(super) async fn carry_out(visitor: Visitor, form: Form) -> Answer {
    let narrowed = ListFilters::read(&form);
    let action = action(&form)?;
    let is_all = form.has("all");
    if is_all && !form.has("sure") {
        return Ok(see_other(&planned_at(visitor.here()?.id, &form)));
    }
    let chosen = if is_all { all(&narrowed, expected(&form)) } else { Chosen::Items(items(&form)) };
    if matches!(&chosen, Chosen::Items(items) if items.is_empty()) {
        let message = "needs at least one: select files or folders first";
        let problem = Problem::validation(vec![Violation::new("item", "required", message)]);
        return change::refused(&visitor, narrowed, (MANY, &form), problem).await;
    }
    let context = visitor.context()?;
    match bulk::change(&context, chosen, action.clone(), false).await {
        Ok(done) if done.value.skipped.is_empty() => {
            let to = narrowed.address(visitor.here()?.id);
            Ok(visitor.done(&to, &notice(&action, &done.value)))
        }
        Ok(done) => done_in_part(&visitor, &context, &narrowed, &done.value).await,
        // The preview again, updated.
        Err(problem) if is_all && is_of_a_form(&problem) => {
            Ok(see_other(&planned_at(visitor.here()?.id, &form)))
        }
        Err(problem) => change::refused(&visitor, narrowed, (MANY, &form), problem).await,
    }
}

/// The preview of an action on all that match.
pub(super) async fn plan(visitor: Visitor, parts: Parts) -> Answer {
    let form = Form::read(parts.uri.query().unwrap_or_default().as_bytes());
    let narrowed = ListFilters::read(&form);
    let action = action(&form)?;
    let context = visitor.context()?;
    let workspace = visitor.here()?.id;
    let tree = folders::Tree::of(&context).await?;
    let target = match &action {
        BulkAction::Move(Some(folder)) => {
            tree.get(folder).map_or("another folder", |folder| folder.path.as_str())
        }
        BulkAction::Move(None) | BulkAction::Tag { .. } | BulkAction::Trash | BulkAction::Restore => "/",
    };
    let back = html! { a.button href=(narrowed.address(workspace)) { "Cancel" } };
    let crumbs = tree.crumbs(workspace, narrowed.folder());
    let title = button_label(&action, "all that match");
    let planned = match bulk::change(&context, all(&narrowed, None), action.clone(), true).await {
        Ok(planned) => planned.value,
        Err(problem) if is_of_a_form(&problem) => {
            let body = html! {
                (part::summary(Some(&problem), &[("add", "Tag"), ("remove", "Tag"), ("files", "Files")]))
                p { (back) }
            };
            return Ok(Page::new(&title).crumbs(crumbs).failed().show(&visitor, &body));
        }
        Err(problem) => return Err(problem.into()),
    };
    let matching = list::found(&context, &narrowed, None).await?;
    let names: Vec<String> = matching.items.into_iter().take(NAMED).map(|file| file.path).collect();
    let left = named(&context, &tree, &planned).await?;
    let body = html! {
        p { (words::count(planned.selected_count, "file matches", "files match")) @if narrowed.narrows() { " what you looked for" } ":" }
        @if !names.is_empty() { ul { @for name in &names { li { bdi { (name) } } } } }
        @if planned.selected_count > names.len() as u64 {
            p.quiet { "And " (words::count(planned.selected_count - names.len() as u64, "other", "others")) "." }
        }
        p {
            @if planned.changed_count == 0 { "None of them would change." }
            @else { (words::count(planned.changed_count, "file", "files")) " " (planned_effect(&action, target)) "." }
            @if planned.unchanged_count > 0 { " " (words::count(planned.unchanged_count, "is", "are")) " so already." }
        }
        @if !left.is_empty() {
            h2 { (words::count(planned.skipped.len() as u64, "file stays as it is", "files stay as they are")) }
            (list::name_list(&left))
        }
        form.buttons method="post" action={ (folders::address(workspace, None)) "/many" } {
            @if planned.changed_count > 0 {
                @for (name, value) in match_fields(&form) { input type="hidden" name=(name) value=(value); }
                @if !form.has("all") { input type="hidden" name="all" value="yes"; }
                input type="hidden" name="expect" value=(planned.selected_count);
                input type="hidden" name="sure" value="yes";
                button.primary type="submit" { (button_label(&action, &words::count(planned.changed_count, "file", "files"))) }
            }
            (back)
        }
        p.quiet { "It is one change, which can be undone as one." }
    };
    Ok(Page::new(&title).crumbs(crumbs).show(&visitor, &body))
}

/// The list again, with the skipped items and reasons; the rest can be undone from here, too.
async fn done_in_part(
    visitor: &Visitor,
    context: &Context,
    narrowed: &ListFilters<'_>,
    done: &ChangedItems,
) -> Answer {
    let tree = folders::Tree::of(context).await?;
    let left = named(context, &tree, done).await?;
    let message =
        format!("{} done, the rest was left as it is", words::count(done.changed_count, "was", "were"));
    let problem = Problem::new(Reason::ValidationError, message);
    let workspace = visitor.here()?.id;
    let more = html! {
        (list::name_list(&left))
        @if let Some(write) = done.write_id.as_deref().filter(|_| visitor.may_undo()) {
            (part::action(&format!("/w/{workspace}/activity/undo"), "Undo", "what was done", &[("write", write), ("back", &narrowed.address(workspace))]))
        }
    };
    list::show_again(visitor, *narrowed, FormOutcome { problem: Some(&problem), more, refused: None }).await
}

/// The skipped items by name, as far as the page can name them, and why.
async fn named(context: &Context, tree: &folders::Tree, done: &ChangedItems) -> Result<Vec<String>, Problem> {
    let some = || done.skipped.iter().take(MAX_LEFT);
    let ids: Vec<String> =
        some().filter(|one| one.kind == TrashKind::File).map(|one| one.id.clone()).collect();
    let found = if ids.is_empty() { Vec::new() } else { files::get_many(context, ids, 1, None).await? };
    let name = |one: &SkippedItem| match one.kind {
        TrashKind::Folder => tree.get(&one.id).map(|folder| folder.name.clone()),
        TrashKind::File | TrashKind::Database | TrashKind::Record | TrashKind::Memory => {
            let file = found.iter().find(|(id, _)| *id == one.id);
            file.and_then(|(_, file)| file.as_ref().ok()).map(|file| file.name.clone())
        }
    };
    let mut told: Vec<String> = some()
        .map(|one| match name(one) {
            Some(name) => format!("{name}: {}", words::sentence(&one.message)),
            None => words::sentence(&one.message),
        })
        .collect();
    let more = done.skipped.len() - told.len();
    if more > 0 {
        told.push(format!("And {}.", words::count(more as u64, "other", "others")));
    }
    Ok(told)
}

fn action(form: &Form) -> Result<BulkAction, Problem> {
    let tags = || folders::tags(form.text("tag-selected")).into_iter().map(ToOwned::to_owned).collect();
    Ok(match form.text("do") {
        "trash" => BulkAction::Trash,
        "move" => BulkAction::Move(Some(form.trimmed("to").to_owned()).filter(|id| !id.is_empty())),
        "tag" => BulkAction::Tag { add: tags(), remove: Vec::new() },
        "untag" => BulkAction::Tag { add: Vec::new(), remove: tags() },
        _ => {
            let violation = Violation::new("do", "required", "names nothing that can be done");
            return Err(Problem::validation(vec![violation]));
        }
    })
}

fn all(narrowed: &ListFilters<'_>, expected_count: Option<u64>) -> Chosen {
    Chosen::Files(MatchingFiles { expected_count, ..narrowed.matching() })
}

fn expected(form: &Form) -> Option<u64> {
    form.trimmed("expect").parse().ok()
}

fn items(form: &Form) -> Vec<ChosenItem> {
    form.all("item").filter_map(item).collect()
}

/// Parses `file:` or `folder:` with an id.
fn item(text: &str) -> Option<ChosenItem> {
    let (kind, id) = text.split_once(':')?;
    let kind = match kind {
        "file" => TrashKind::File,
        "folder" => TrashKind::Folder,
        _ => return None,
    };
    Some(ChosenItem { kind, id: id.parse::<FileId>().ok()?.to_string() })
}

/// The fields of an action on all that match, without the selection.
fn match_fields(form: &Form) -> Vec<(&'static str, &str)> {
    let names = ["do", "in", "q", "tag", "to", "tag-selected", "all"];
    names.into_iter().map(|name| (name, form.text(name))).filter(|(_, value)| !value.is_empty()).collect()
}

fn planned_at(workspace: WorkspaceId, form: &Form) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(match_fields(form));
    format!("{}/all?{}", folders::address(workspace, None), query.finish())
}

/// The label of the action's button.
fn button_label(action: &BulkAction, what: &str) -> String {
    match action {
        BulkAction::Move(_) => format!("Move {what}"),
        BulkAction::Tag { add, .. } if add.is_empty() => format!("Remove tag from {what}"),
        BulkAction::Tag { .. } => format!("Tag {what}"),
        BulkAction::Trash => format!("Move {what} to trash"),
        BulkAction::Restore => format!("Restore {what}"),
    }
}

fn planned_effect(action: &BulkAction, target: &str) -> Markup {
    html! {
        @match action {
            BulkAction::Move(_) => { "would stand in " bdi { (target) } }
            BulkAction::Tag { add, remove } => {
                @if add.is_empty() { "would lose " bdi { (cairn_chassis::wording::listed(remove, "and")) } }
                @else { "would be tagged " bdi { (cairn_chassis::wording::listed(add, "and")) } }
            }
            BulkAction::Trash => "would go to trash",
            BulkAction::Restore => "would come back",
        }
    }
}

fn notice(action: &BulkAction, done: &ChangedItems) -> Notice {
    let change = match action {
        BulkAction::Move(_) => Change::Moved,
        BulkAction::Tag { .. } => Change::Tagged,
        BulkAction::Trash => Change::Trashed,
        BulkAction::Restore => Change::Restored,
    };
    let changed = done.write_id.as_deref().and_then(|write| Changed::read(change, done.changed_count, write));
    changed.map_or(Notice::Saved, Notice::Changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_files_and_folders_by_id() {
        let id = "0199c0de-0000-7000-8000-000000000001";
        assert_eq!(item(&format!("file:{id}")).unwrap().kind, TrashKind::File);
        assert_eq!(item(&format!("folder:{id}")).unwrap().kind, TrashKind::Folder);
        for odd in ["", "file", "file:", "file:x", &format!("record:{id}")] {
            assert!(item(odd).is_none(), "{odd}");
        }
    }

    #[test]
    fn all_that_match_are_shown_by_an_address_that_says_what_is_meant() {
        let form = Form::read(b"do=tag&in=1&q=a+b&tag=&to=2&tag-selected=x&all=yes&item=file%3A1&expect=3");
        let workspace: WorkspaceId = "0199c0de-0000-7000-8000-0000000000a1".parse().unwrap();
        let address = planned_at(workspace, &form);
        assert!(address.ends_with("/files/all?do=tag&in=1&q=a+b&to=2&tag-selected=x&all=yes"), "{address}");
        assert_eq!(expected(&form), Some(3));
        assert!(matches!(action(&form), Ok(BulkAction::Tag { add, .. }) if add == ["x"]));
        assert!(action(&Form::read(b"do=nothing")).is_err());
    }
}
