//! The reach of a token in words: how much it reads, where it writes, what is hidden.

use cairn_proto::domain::Permission;
use maud::{Markup, html};

use crate::answers::TokenReach;
use crate::pages::words;

/// Hidden folders named.
const MAX_NAMED: usize = 3;

/// The reach in sentences.
pub(super) fn sentences(reach: &TokenReach) -> Markup {
    let may = |permission: Permission| reach.permissions.contains(&permission);
    html! {
        @if may(Permission::Read) { (reads(reach)) } @else { "It reads nothing. " }
        @if may(Permission::Write) {
            " It can write in "
            @if reach.whole_workspace { "all of it." } @else { (words::count(reach.folders, "folder", "folders")) "." }
        }
        @if may(Permission::Delete) { " What it writes in, it can move to trash." }
        @if reach.hidden_folders_total > 0 { (hidden(reach)) }
        @if reach.folders_gone > 0 { " " (words::count(reach.folders_gone, "folder of it is", "folders of it are")) " gone." }
    }
}

/// The folders of its scope.
pub(super) fn folders(reach: &TokenReach) -> Markup {
    html! {
        @if !reach.folder_paths.is_empty() {
            ul { @for path in &reach.folder_paths { li { bdi { (path) } } } }
        }
    }
}

fn reads(reach: &TokenReach) -> String {
    let files = words::count(reach.files, "file", "files");
    let databases = words::count(reach.databases, "database", "databases");
    let memories = words::count(reach.memories, "memory", "memories");
    if reach.whole_workspace {
        return format!(
            "It reaches the whole workspace: {files}, {databases}, {memories}, and every source."
        );
    }
    let folders = words::count(reach.folders, "folder", "folders");
    format!("It reaches {files} in {folders}, {databases} and {memories}, and nothing else.")
}

fn hidden(reach: &TokenReach) -> Markup {
    let named: Vec<_> = reach.hidden_folders.iter().take(MAX_NAMED).collect();
    let others = reach.hidden_folders_total.saturating_sub(named.len() as u64);
    html! {
        " It cannot see "
        @for (at, name) in named.iter().enumerate() {
            @if at > 0 { ", " }
            bdi { (name) }
        }
        @if others > 0 { " and " (words::count(others, "other folder", "other folders")) }
        "."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(reach: &TokenReach) -> String {
        sentences(reach).into_string()
    }

    #[test]
    fn what_is_reached_is_told_in_words() {
        let whole = TokenReach {
            permissions: vec![Permission::Read, Permission::Write],
            whole_workspace: true,
            files: 1,
            databases: 4,
            memories: 2,
            ..TokenReach::default()
        };
        assert_eq!(
            told(&whole),
            "It reaches the whole workspace: 1 file, 4 databases, 2 memories, and every source. It can write in all of it."
        );
        let names = ["<b>", "HR", "Law", "Old"].map(ToOwned::to_owned).to_vec();
        let part = TokenReach {
            permissions: vec![Permission::Read],
            folder_paths: vec!["/a".to_owned(), "/b".to_owned()],
            files: 1_204,
            folders: 2,
            hidden_folders: names,
            hidden_folders_total: 12,
            folders_gone: 1,
            ..TokenReach::default()
        };
        let part = told(&part);
        assert!(
            part.starts_with("It reaches 1\u{202f}204 files in 2 folders, 0 databases and 0 memories"),
            "{part}"
        );
        assert!(
            part.contains(
                "It cannot see <bdi>&lt;b&gt;</bdi>, <bdi>HR</bdi>, <bdi>Law</bdi> and 9 other folders."
            ),
            "{part}"
        );
        assert!(part.ends_with("1 folder of it is gone."), "{part}");
        assert!(told(&TokenReach::default()).starts_with("It reads nothing."));
    }
}
