//! Checks on the HTML of the activity pages.

use maud::html;

use super::query::PageQuery;
use super::{choices, nothing, row};
use crate::answers::{ActivityEntry, Author};
use crate::testing::console::HOSTILE;
use cairn_proto::domain::{ActivityAction, TrashKind};

fn entry(action: ActivityAction, changed: &[&str]) -> ActivityEntry {
    ActivityEntry {
        id: "1.2.0".into(),
        action: action.into(),
        kind: TrashKind::File.into(),
        item_id: "0199c0de-0000-7000-8000-0000000000c1".into(),
        name: HOSTILE.into(),
        path: format!("/{HOSTILE}"),
        author: Some(Author { kind: "token".into(), id: "t".into(), name: HOSTILE.into() }),
        channel: Some("mcp".into()),
        changed: changed.iter().map(ToString::to_string).collect(),
        former_name: Some(HOSTILE.into()),
        item_count: 1,
        version_before: Some(1),
        version_after: Some(2),
        ..ActivityEntry::default()
    }
}

#[test]
fn entries_are_told_in_words() {
    let did = |action, changed: &[&str]| row::did(&entry(action, changed)).into_string();
    assert_eq!(did(ActivityAction::Deleted, &[]), "moved the file to trash");
    assert_eq!(
        did(ActivityAction::Updated, &["content", "folder", "tags"]),
        "changed content, its folder and tags of the file"
    );
    assert!(did(ActivityAction::Renamed, &["name"]).starts_with("renamed the file from <bdi>&lt;script"));
    let who = row::who(&entry(ActivityAction::Created, &[])).into_string();
    assert!(who.contains("(token)") && who.contains("by MCP") && !who.contains("<script"), "{who}");
}

#[test]
fn what_is_gone_for_good_leads_nowhere() {
    let workspace = "0199c0de-0000-7000-8000-000000000001".parse().unwrap();
    let titled = |action| row::titled(workspace, &entry(action, &[])).into_string();
    assert!(titled(ActivityAction::Deleted).contains("href=\"/file/"));
    assert!(!titled(ActivityAction::DeletedPermanently).contains("href"));
}

#[test]
fn only_texts_are_compared() {
    assert!(row::has_texts(&entry(ActivityAction::Updated, &["content"])));
    assert!(!row::has_texts(&entry(ActivityAction::Renamed, &["name"])));
    let folder = ActivityEntry { kind: TrashKind::Folder.into(), ..entry(ActivityAction::Created, &[]) };
    assert!(!row::has_texts(&folder));
}

#[test]
fn an_empty_list_says_why() {
    assert!(nothing(false).into_string().contains("Nothing was done here yet."));
    assert!(nothing(true).into_string().contains("Nothing like that"));
    let tree = crate::pages::folders::Tree::default();
    let actors = [Author { kind: "user".into(), id: "u".into(), name: HOSTILE.into() }];
    let form = html! { (choices("/w/1/activity", &PageQuery::default(), &actors, &tree)) }.into_string();
    assert!(
        form.contains("Everybody") && form.contains("type=\"date\"") && !form.contains("<script"),
        "{form}"
    );
    assert!(!form.contains("Show everything"), "{form}");
}
