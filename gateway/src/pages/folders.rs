//! The folder tree of a workspace, as pages need it: breadcrumbs, selector, tree.

use std::collections::HashMap;

use cairn_chassis::status::Problem;
use cairn_proto::ids::WorkspaceId;
use maud::{Markup, html};

use crate::answers::Folder;
use crate::operations::folders::{self, Selection};
use crate::operations::{Context, Paging};

/// Deeper folders are only shown on their parent's page.
const MAX_LEVELS: usize = 12;

/// The URL of a folder's page; without one, of the root's.
pub(super) fn address(workspace: WorkspaceId, folder: Option<&str>) -> String {
    match folder {
        Some(folder) => format!("/w/{workspace}/files?folder={folder}"),
        None => format!("/w/{workspace}/files"),
    }
}

/// A button with its popover, without scripts; `key` is its keyboard shortcut.
pub(super) fn popover(id: &str, label: &str, key: Option<&str>, content: &Markup) -> Markup {
    html! {
        button type="button" popovertarget=(id) data-key=[key] { (label) }
        div.popover id=(id) popover { (content) }
    }
}

/// Splits comma-separated tags.
pub(super) fn tags(text: &str) -> Vec<&str> {
    text.split(',').map(str::trim).filter(|tag| !tag.is_empty()).collect()
}

/// The folders of a workspace: the first thousand by name, a service's maximum page.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// By path.
    folders: Vec<Folder>,
    by_id: HashMap<String, usize>,
    is_whole: bool,
    /// The token of the view, which its links keep.
    seen_as: Option<String>,
}

impl Tree {
    pub(super) async fn of(context: &Context) -> Result<Self, Problem> {
        let listed = folders::list(context, Selection::default(), Paging::default()).await?;
        Ok(Self::new(listed.items, listed.next.is_none()))
    }

    fn new(mut folders: Vec<Folder>, is_whole: bool) -> Self {
        folders.sort_by(|one, other| one.path.split('/').cmp(other.path.split('/')));
        let by_id = folders.iter().enumerate().map(|(at, folder)| (folder.id.clone(), at)).collect();
        Self { folders, by_id, is_whole, seen_as: None }
    }

    /// The same with links that keep the token of the view.
    pub(super) fn seen_as(self, token: Option<&str>) -> Self {
        Self { seen_as: token.map(ToOwned::to_owned), ..self }
    }

    /// The URL of a folder's page; without one, of the root's.
    pub(super) fn address(&self, workspace: WorkspaceId, folder: Option<&str>) -> String {
        let address = address(workspace, folder);
        match &self.seen_as {
            Some(token) => format!("{address}{}as={token}", if folder.is_some() { '&' } else { '?' }),
            None => address,
        }
    }

    pub(super) fn get(&self, id: &str) -> Option<&Folder> {
        self.by_id.get(id).and_then(|at| self.folders.get(*at))
    }

    pub(super) fn by_path(&self, path: &str) -> Option<&Folder> {
        let path = path.trim_end_matches('/');
        self.folders.iter().find(|folder| folder.path == path)
    }

    /// The direct children of a folder, or of the root.
    pub(super) fn below(&self, parent: Option<&str>) -> Vec<&Folder> {
        self.folders.iter().filter(|folder| folder.parent_id.as_deref() == parent).collect()
    }

    /// A folder and its ancestors, innermost first.
    fn way(&self, folder: Option<&str>) -> Vec<&Folder> {
        let mut way = Vec::new();
        let mut next = folder.and_then(|id| self.get(id));
        while let Some(folder) = next {
            way.push(folder);
            let parent = folder.parent_id.as_deref().and_then(|id| self.get(id));
            next = parent.filter(|_| way.len() < self.folders.len());
        }
        way
    }

    /// The ids of a folder and its ancestors.
    pub(super) fn above(&self, folder: Option<&str>) -> Vec<&str> {
        self.way(folder).into_iter().map(|folder| folder.id.as_str()).collect()
    }

    /// The breadcrumbs to the contents of a folder, or of the root.
    pub(super) fn crumbs(&self, workspace: WorkspaceId, folder: Option<&str>) -> Vec<(String, String)> {
        let way = self.way(folder).into_iter();
        let mut above: Vec<(String, String)> =
            way.map(|folder| (folder.name.clone(), self.address(workspace, Some(&folder.id)))).collect();
        above.push(("Files".to_owned(), self.address(workspace, None)));
        above.reverse();
        above
    }

    /// A folder selector without `without` and its descendants.
    pub(super) fn choice(&self, name: &str, current: Option<&str>, without: Option<&str>) -> Markup {
        self.choice_by_key(name, current, without, None)
    }

    /// The same with a keyboard shortcut.
    pub(super) fn choice_by_key(
        &self,
        name: &str,
        current: Option<&str>,
        without: Option<&str>,
        key: Option<&str>,
    ) -> Markup {
        let without = without.and_then(|id| self.get(id)).map(|folder| format!("{}/", folder.path));
        let offered = self.folders.iter().filter(|folder| {
            without.as_ref().is_none_or(|without| !format!("{}/", folder.path).starts_with(without))
        });
        html! {
            div.field {
                label for={ "f-" (name) } { "Folder" }
                select id={ "f-" (name) } name=(name) data-key=[key] {
                    option value="" selected[current.is_none()] { "/" }
                    @for folder in offered {
                        option value=(folder.id) selected[current == Some(&folder.id)] dir="auto" { (folder.path) }
                    }
                }
                @if !self.is_whole { span.hint { "The first thousand folders." } }
            }
        }
    }

    /// The tree, expanded along the path to the current folder.
    pub(super) fn markup(&self, workspace: WorkspaceId, current: Option<&str>) -> Markup {
        let mut below: HashMap<Option<&str>, Vec<&Folder>> = HashMap::new();
        for folder in &self.folders {
            below.entry(folder.parent_id.as_deref()).or_default().push(folder);
        }
        let way =
            current.and_then(|id| self.get(id)).map(|folder| format!("{}/", folder.path)).unwrap_or_default();
        html! {
            nav.tree aria-label="Folders" {
                ul {
                    li { a href=(self.address(workspace, None)) aria-current=[current.is_none().then_some("page")] { "All files" } }
                    (level(&below, None, &Look { tree: self, workspace, current, way: &way }, 0))
                }
            }
        }
    }
}

struct Look<'a> {
    tree: &'a Tree,
    workspace: WorkspaceId,
    current: Option<&'a str>,
    /// The path of the current folder, with a trailing slash.
    way: &'a str,
}

fn level(
    below: &HashMap<Option<&str>, Vec<&Folder>>,
    parent: Option<&str>,
    look: &Look<'_>,
    depth: usize,
) -> Markup {
    let folders = below.get(&parent).map(Vec::as_slice).unwrap_or_default();
    html! {
        @for folder in folders {
            @let link = html! {
                a href=(look.tree.address(look.workspace, Some(&folder.id))) aria-current=[(look.current == Some(&folder.id)).then_some("page")] { bdi { (folder.name) } }
            };
            li {
                (link)
                @if depth < MAX_LEVELS && below.contains_key(&Some(folder.id.as_str())) {
                    // Beside the link and not around it: a `summary` must not contain other controls.
                    details open[look.way.starts_with(&format!("{}/", folder.path))] {
                        summary { span.sr { "Folders in " bdi { (folder.name) } } }
                        ul { (level(below, Some(&folder.id), look, depth + 1)) }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(id: &str, path: &str, parent: Option<&str>) -> Folder {
        Folder {
            id: id.to_owned(),
            path: path.to_owned(),
            name: path.rsplit('/').next().unwrap().to_owned(),
            parent_id: parent.map(ToOwned::to_owned),
            ..Folder::default()
        }
    }

    fn tree() -> Tree {
        let folders = vec![
            folder("2", "/a/b", Some("1")),
            folder("3", "/a<", None),
            folder("1", "/a", None),
            folder("4", "/a/b/c", Some("2")),
        ];
        Tree::new(folders, true)
    }

    #[test]
    fn a_folder_is_found_by_its_way() {
        let workspace: WorkspaceId = "0199c0de-0000-7000-8000-0000000000a1".parse().unwrap();
        let crumbs = tree().crumbs(workspace, Some("4"));
        let titles: Vec<&str> = crumbs.iter().map(|(title, _)| title.as_str()).collect();
        assert_eq!(titles, ["Files", "a", "b", "c"]);
        assert_eq!(tree().above(Some("4")), ["4", "2", "1"]);
        assert_eq!(tree().crumbs(workspace, None).len(), 1);
        assert_eq!(tree().crumbs(workspace, Some("nothing")).len(), 1);
        let html = tree().markup(workspace, Some("2")).into_string();
        assert_eq!(html.matches("<details open>").count(), 2, "{html}");
        assert!(
            html.contains("<bdi>a&lt;</bdi>") && html.contains("folder=2\" aria-current=\"page\""),
            "{html}"
        );
        // A cycle terminates.
        let odd = Tree::new(vec![folder("1", "/a", Some("1"))], true);
        assert_eq!(odd.crumbs(workspace, Some("1")).len(), 2);
    }

    #[test]
    fn a_folder_goes_anywhere_but_into_itself() {
        let html = tree().choice("to", Some("3"), Some("2")).into_string();
        assert!(
            html.contains("<option value=\"1\" dir=\"auto\">/a</option>")
                && html.contains("<option value=\"3\" selected dir=\"auto\">/a&lt;</option>"),
            "{html}"
        );
        assert!(!html.contains("value=\"2\"") && !html.contains("value=\"4\""), "{html}");
    }

    #[test]
    fn tags_have_commas_between_them() {
        assert_eq!(tags(" a, b c ,,d"), ["a", "b c", "d"]);
        assert!(tags("").is_empty());
    }
}
