//! Detects the type of an archive by its entry names, and uploads it as a form.

use std::fs::File;
use std::path::Path;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http_body::Frame;
use http_body_util::StreamBody;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::io::AsyncReadExt as _;

const OBSIDIAN: &str = "obsidian_zip";
const NOTION: &str = "notion_zip";
/// How many entry names are examined; the first ones of an export identify it.
const MAX_NAMES: usize = 100_000;
const CHUNK_BYTES: usize = 256 * 1024;

/// A multipart form (RFC 7578) whose last part is the archive.
pub(super) struct Form {
    pub(super) content_type: String,
    pub(super) length: u64,
    /// A stream, so it cannot be replayed.
    pub(super) body: reqwest::Body,
}

/// The tool that an archive was exported from, by its entry names.
pub(super) fn provider(path: &Path) -> anyhow::Result<&'static str> {
    let file = File::open(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let archive = zip::ZipArchive::new(file)
        .map_err(|_| anyhow::anyhow!("{} is no ZIP file, or it is not whole", path.display()))?;
    match of_names(archive.file_names().take(MAX_NAMES).filter_map(Result::ok)) {
        Some(provider) => Ok(provider),
        None => {
            bail!("the archive holds no notes: if it is one all the same, say what it is of with --provider")
        }
    }
}

fn of_names(names: impl Iterator<Item = impl AsRef<str>>) -> Option<&'static str> {
    let mut found = None;
    for name in names {
        let base = name.as_ref().rsplit(['/', '\\']).next().unwrap_or_default();
        let (stem, ending) = base.rsplit_once('.').unwrap_or((base, ""));
        let ending = ending.to_ascii_lowercase();
        let is_page = matches!(ending.as_str(), "md" | "csv" | "html");
        let is_part = ending == "zip" && stem.contains("Part-");
        if is_part || (is_page && has_id(stem)) {
            return Some(NOTION);
        }
        if matches!(ending.as_str(), "md" | "markdown" | "canvas") {
            found = Some(OBSIDIAN);
        }
    }
    found
}

/// Notion appends a page's id to its name.
fn has_id(stem: &str) -> bool {
    let stem = stem.strip_suffix("_all").unwrap_or(stem);
    let id = stem.rsplit(' ').next().unwrap_or_default();
    id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The form of these fields and the archive, which is streamed.
pub(super) async fn form(path: &Path, fields: &[(&str, Option<&str>)]) -> anyhow::Result<Form> {
    let told = || format!("{} cannot be read", path.display());
    let file = tokio::fs::File::open(path).await.with_context(told)?;
    let size = file.metadata().await.with_context(told)?.len();
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // Random, so no archive contains it.
    let boundary = format!("cairn-{}", oauth2::CsrfToken::new_random().secret());
    let (head, tail) = around(&boundary, fields, &name);
    let length = size.saturating_add((head.len() + tail.len()) as u64);
    let bar = progress(size);
    let content = stream::try_unfold((file, bar), async |(mut file, bar): (tokio::fs::File, ProgressBar)| {
        let mut chunk = vec![0; CHUNK_BYTES];
        let read = file.read(&mut chunk).await?;
        if read == 0 {
            bar.finish_and_clear();
            return Ok(None);
        }
        chunk.truncate(read);
        bar.inc(read as u64);
        Ok(Some((Bytes::from(chunk), (file, bar))))
    });
    let sent = stream::iter([Ok::<_, std::io::Error>(Bytes::from(head))])
        .chain(content)
        .chain(stream::iter([Ok(Bytes::from(tail))]));
    let body = reqwest::Body::wrap(StreamBody::new(sent.map_ok(Frame::data)));
    Ok(Form { content_type: format!("multipart/form-data; boundary={boundary}"), length, body })
}

/// The form before and after the archive.
fn around(boundary: &str, fields: &[(&str, Option<&str>)], name: &str) -> (String, String) {
    let name = name.replace(['"', '\r', '\n'], "_");
    let mut head = String::new();
    for (field, value) in fields.iter().filter_map(|(field, value)| value.map(|value| (field, value))) {
        head.push_str(&format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{field}\"\r\n\r\n{value}\r\n"
        ));
    }
    head.push_str(&format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"archive\"; filename=\"{name}\"\r\n\
         Content-Type: application/zip\r\n\r\n"
    ));
    (head, format!("\r\n--{boundary}--\r\n"))
}

/// Shown on a terminal only.
fn progress(bytes: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("sending {bytes} of {total_bytes} {wide_bar}");
    ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[test]
    fn an_archive_is_known_by_its_names() {
        let of = |names: &[&str]| of_names(names.iter());
        assert_eq!(of(&["vault/.obsidian/app.json", "vault/a.md"]), Some(OBSIDIAN));
        assert_eq!(of(&["Export/Tasks 0123456789abcdef0123456789ABCDEF_all.csv"]), Some(NOTION));
        assert_eq!(of(&["readme.md", "x/Page 0123456789abcdef0123456789abcdef.html"]), Some(NOTION));
        assert_eq!(of(&["ExportBlock-1-Part-1.zip"]), Some(NOTION));
        assert_eq!(of(&["a.png", "b.zip"]), None);
        assert_eq!(of(&[]), None);
    }

    #[tokio::test]
    async fn a_form_is_as_long_as_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a\"b.zip");
        std::fs::write(&path, vec![b'z'; CHUNK_BYTES + 10]).unwrap();
        let form = form(&path, &[("workspaceId", Some("w")), ("folderId", None)]).await.unwrap();
        let length = form.length;
        let sent = form.body.collect().await.unwrap().to_bytes().to_vec();
        assert_eq!(sent.len() as u64, length);
        let text = String::from_utf8(sent).unwrap();
        assert!(text.contains("name=\"workspaceId\"\r\n\r\nw\r\n") && text.contains("filename=\"a_b.zip\""));
        assert!(!text.contains("folderId") && text.ends_with("--\r\n"));
    }
}
