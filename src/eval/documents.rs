//! Uploads documents into a workspace: those of a collection, or those of a local folder.

use std::collections::HashMap;
use std::future::Future;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use fs_err as fs;
use futures::{StreamExt as _, TryStreamExt as _};

use super::api::Api;
use super::collection::Document;
use super::progress::Progress;

/// Concurrent uploads: enough to keep a service busy, few enough to leave it responsive.
const UPLOADS_AT_ONCE: usize = 8;
/// The maximum size of a file's content (spec 7).
const MAX_BYTES: u64 = 5 * 1024 * 1024;

/// Uploads a collection and waits until it is searchable; returns the collection's id for each file id.
pub(super) async fn upload_collection(
    api: &Api,
    documents: &[Document],
    folder: Option<&str>,
    progress: &Progress,
) -> anyhow::Result<HashMap<String, String>> {
    let upload = async |document: &Document| {
        let (name, file_type, content) = document.file();
        let (file, change) = api.create_file(&name, file_type, &content, folder).await?;
        Ok(((file, document.id.clone()), change))
    };
    let files = upload_all(documents, upload, api, progress).await?;
    Ok(files.into_iter().collect())
}

/// Uploads the text files below a folder under their relative paths, and waits until they are searchable.
pub(super) async fn upload_folder(api: &Api, root: &Path, progress: &Progress) -> anyhow::Result<()> {
    let mut found = Found::default();
    found.walk(root, Path::new(""))?;
    ensure!(!found.files.is_empty(), "no text files below {}", root.display());

    let mut ids: HashMap<&Path, String> = HashMap::new();
    for folder in &found.folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let parent = folder.parent().and_then(|parent| ids.get(parent)).map(String::as_str);
        let id = api.create_folder(&name, parent).await?;
        ids.insert(folder, id);
    }

    let upload = async |file: &PathBuf| {
        let content = fs::read_to_string(root.join(file))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let folder = file.parent().and_then(|parent| ids.get(parent)).map(String::as_str);
        let (_, change) = api.create_file(&name, file_type(file), &content, folder).await?;
        Ok(((), change))
    };
    upload_all(&found.files, upload, api, progress).await?;
    Ok(())
}

/// Runs the uploads, with the last one after all others so that its position is the greatest, then waits for that
/// position.
async fn upload_all<'a, T, A, F>(
    documents: &'a [T],
    upload: impl Fn(&'a T) -> F,
    api: &Api,
    progress: &Progress,
) -> anyhow::Result<Vec<A>>
where
    F: Future<Output = anyhow::Result<(A, String)>>,
{
    let (last, others) = documents.split_last().context("there are no documents")?;
    let bar = progress.bar("uploading", documents.len());
    let counted = async |document| {
        let (answer, _) = upload(document).await?;
        bar.inc(1);
        anyhow::Ok(answer)
    };
    let mut answers: Vec<A> =
        futures::stream::iter(others).map(counted).buffer_unordered(UPLOADS_AT_ONCE).try_collect().await?;
    let (answer, change) = upload(last).await?;
    answers.push(answer);
    bar.finish_and_clear();

    let waiting = progress.spinner("indexing");
    api.wait_for(&change).await?;
    waiting.finish_and_clear();
    Ok(answers)
}

/// The contents of a folder, by relative path; a folder comes before its contents.
#[derive(Default)]
struct Found {
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Found {
    fn walk(&mut self, root: &Path, below: &Path) -> anyhow::Result<()> {
        let mut entries: Vec<_> = fs::read_dir(root.join(below))?.collect::<Result<_, _>>()?;
        entries.sort_by_key(|entry| entry.file_name());
        for entry in entries {
            let name = entry.file_name();
            if name.to_string_lossy().starts_with('.') {
                continue;
            }
            let path = below.join(name);
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.folders.push(path.clone());
                self.walk(root, &path)?;
            } else if kind.is_file() && is_text(&root.join(&path))? {
                self.files.push(path);
            }
        }
        Ok(())
    }
}

/// Whether the file can be stored in a workspace.
fn is_text(path: &Path) -> anyhow::Result<bool> {
    if fs::metadata(path)?.len() > MAX_BYTES {
        return Ok(false);
    }
    let bytes = fs::read(path)?;
    Ok(std::str::from_utf8(&bytes).is_ok_and(|text| !text.contains('\0')))
}

fn file_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("md" | "markdown") => "markdown",
        Some("json") => "json",
        Some("yaml" | "yml") => "yaml",
        _ => "text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_walked_in_order_without_what_is_no_text() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["b", "b/c", ".git"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        for (name, bytes) in [
            ("z.md", b"x".as_slice()),
            ("a.bin", b"\xff\xfe"),
            ("b/zero.txt", b"a\0b"),
            ("b/c/d.yaml", b"k: v"),
            (".git/config", b"x"),
        ] {
            fs::write(root.path().join(name), bytes).unwrap();
        }
        let mut found = Found::default();
        found.walk(root.path(), Path::new("")).unwrap();
        assert_eq!(found.folders, [PathBuf::from("b"), PathBuf::from("b/c")]);
        assert_eq!(found.files, [PathBuf::from("b/c/d.yaml"), PathBuf::from("z.md")]);
        assert_eq!(file_type(Path::new("b/c/d.yaml")), "yaml");
        assert_eq!(file_type(Path::new("LICENSE")), "text");
    }
}
