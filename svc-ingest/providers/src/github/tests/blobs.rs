//! Files as the scripted service tells them.

use super::*;

pub(super) fn blob(text: &str) -> Reply {
    Reply::json(
        &json!({"content": STANDARD.encode(text), "encoding": "base64", "sha": sha(text), "size": text.len(), "type": "file"}),
    )
}

/// What `contents` tells of a file: of a large one without its content, which stands only in the blob.
pub(super) fn contents(path: &str, text: &str) -> Reply {
    blob(text).map_json(|mut told| {
        told["html_url"] = json!(format!("https://github.com/acme/app/blob/feature/x/{path}"));
        if path.starts_with("large") {
            (told["content"], told["encoding"]) = (json!(""), json!("none"));
        }
        told
    })
}

/// The tree of a commit, or of one of its folders as `commit:folder`.
pub(super) fn tree_of(hub: &Hub, tree: &str, is_deep: bool) -> Reply {
    let (commit, folder) = tree.split_once(':').unwrap_or((tree, ""));
    let Ok(number) = commit.trim_start_matches("commit").parse::<usize>() else { return Reply::refusal(404) };
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let mut nodes = vec![
        json!({"path": "link", "mode": "120000", "type": "blob", "sha": "l"}),
        json!({"path": "sub", "mode": "160000", "type": "commit", "sha": "s"}),
    ];
    let mut folders = Vec::new();
    for (path, text) in &hub.commits[number - 1] {
        let Some(path) = path.strip_prefix(&prefix) else { continue };
        match path.split_once('/') {
            Some((name, _)) if !is_deep => folders.push(name.to_owned()),
            _ => nodes.push(
                json!({"path": path, "mode": "100644", "type": "blob", "sha": sha(text), "size": text.len()}),
            ),
        }
    }
    folders.dedup();
    nodes.extend(folders.iter().map(|name| json!({"path": name, "mode": "040000", "type": "tree", "sha": format!("{commit}:{prefix}{name}")})));
    let is_truncated = hub.is_truncated && is_deep && folder.is_empty();
    if is_truncated {
        nodes.truncate(3);
    }
    Reply::json(&json!({"sha": tree, "tree": nodes, "truncated": is_truncated}))
}
