//! Folders given by path.

use std::collections::HashMap;

use cairn_chassis::status::{Problem, Violation};

use crate::operations::folders::{self, Selection};
use crate::operations::{Context, Paging};

/// The form field.
pub(super) const FIELD: &str = "paths";
/// The limit of folders in a scope.
const MAX_PATHS: usize = 100;

/// The paths in a text, one per line, normalized.
fn paths(text: &str) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let path = format!("/{}", line.trim_matches('/'));
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// Resolves paths, one per line, to folder ids.
pub(super) async fn ids(context: &Context, text: &str) -> Result<Vec<String>, Problem> {
    let wanted = paths(text);
    if wanted.len() > MAX_PATHS {
        return Err(wrong("too_many", format!("may name at most {MAX_PATHS} folders")));
    }
    if wanted.iter().any(|path| path == "/") {
        let message = "may not name '/': choose no folder at all for the whole workspace";
        return Err(wrong("invalid", message.to_owned()));
    }
    let found = if wanted.is_empty() { HashMap::new() } else { find(context, &wanted).await? };
    let missing: Vec<&str> =
        wanted.iter().filter(|path| !found.contains_key(*path)).map(String::as_str).collect();
    if !missing.is_empty() {
        return Err(wrong("not_found", format!("name no folder here: {}", missing.join(", "))));
    }
    Ok(wanted.iter().filter_map(|path| found.get(path).cloned()).collect())
}

/// The existing folders among the paths.
async fn find(context: &Context, wanted: &[String]) -> Result<HashMap<String, String>, Problem> {
    let mut found = HashMap::new();
    let mut cursor = None;
    loop {
        let listed = folders::list(context, Selection::default(), Paging { limit: None, cursor }).await?;
        let named = listed.items.into_iter().filter(|folder| wanted.contains(&folder.path));
        found.extend(named.map(|folder| (folder.path, folder.id)));
        cursor = listed.next;
        if cursor.is_none() || found.len() == wanted.len() {
            return Ok(found);
        }
    }
}

fn wrong(code: &str, message: String) -> Problem {
    Problem::validation(vec![Violation::new(FIELD, code, message)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_as_folders_have_them() {
        assert_eq!(paths(" /Plans/2027/ \r\nPlans\n\n/Plans\n"), ["/Plans/2027", "/Plans"]);
        assert_eq!(paths("/"), ["/"]);
        assert!(paths(" \n").is_empty());
    }
}
