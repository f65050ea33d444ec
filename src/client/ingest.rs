//! `cairn ingest`.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::Ended;
use super::connection::{Connection, ConnectionOptions};
use super::output::{print, print_json_line, visible};

pub(super) const EXAMPLES: &str = "Examples:
  cairn ingest report.pdf notes.md
  cairn ingest report.pdf --address https://intranet.example/report --title 'Annual report'
  cairn ingest handbook/ --wait                      every file below it, until all are searched
  cairn ingest page.html --key wiki:page:1234 --metadata '{\"team\": \"sales\"}'
  git log -20 | cairn ingest - --name changes.txt --title 'Latest changes'

A file that was sent before is not kept twice; a changed one is a new document. It ends with 1 when a file fails.";

/// The polling interval while documents are processed.
const POLL_INTERVAL: Duration = Duration::from_millis(300);
/// Polls before giving up; longer than any document takes.
const MAX_POLLS: u32 = 1_000;
const MAX_FILES: usize = 10_000;
/// The path that stands for stdin.
const STDIN: &str = "-";

#[derive(Debug, Args)]
pub(crate) struct IngestOptions {
    #[command(flatten)]
    connection: ConnectionOptions,
    /// Files, folders with all files below them but hidden ones, and - for what comes on stdin.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Names the document for its sender; of one file only. Default: made of its path and its content.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Of one file only. Default: its name.
    #[arg(long)]
    title: Option<String>,
    /// Where people read it; of one file only.
    #[arg(long, value_name = "URL")]
    address: Option<String>,
    /// What belongs to each: a JSON object of at most 16 KB.
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// What stdin is called; its ending tells what it is.
    #[arg(long, value_name = "NAME", default_value = "stdin.txt")]
    name: String,
    /// Wait until search finds them.
    #[arg(long)]
    wait: bool,
    /// Print a line of JSON for each file: as the API gives the document, with `path`; what could not be sent has `error`.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(options: IngestOptions) -> anyhow::Result<()> {
    let mut files = Vec::new();
    for path in &options.paths {
        gather(path, &mut files)?;
    }
    let names_one = options.key.is_some() || options.title.is_some() || options.address.is_some();
    if names_one && files.len() != 1 {
        bail!("--key, --title and --address are for one file, and there are {}", files.len());
    }
    let connection = Connection::open(&options.connection)?;
    let (mut waiting, mut failed) = (Vec::new(), 0_usize);
    let bar = progress("sending", files.len());
    for file in &files {
        bar.set_message(file.display().to_string());
        match send(&connection, &options, file).await {
            Ok(document) => waiting.push((file, document)),
            // The remaining files would fail for the same reason.
            Err(error) if error.downcast_ref::<Ended>().is_some_and(Ended::is_not_let_in) => {
                return Err(error);
            }
            Err(error) => {
                failed += 1;
                let document = json!({"status": "failed", "error": format!("{error:#}")});
                bar.suspend(|| say(&options, file, document))?;
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let bar = progress(if options.wait { "waiting" } else { "sent" }, waiting.len());
    for (file, document) in waiting {
        bar.set_message(file.display().to_string());
        let document = if options.wait { settled(&connection, document).await? } else { document };
        failed += usize::from(field(&document, "status") == "failed");
        bar.suspend(|| say(&options, file, document))?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    if failed == 0 { Ok(()) } else { Err(anyhow!("{failed} of {} failed", files.len())) }
}

/// Reports the result for a file.
fn say(options: &IngestOptions, file: &Path, mut document: Value) -> anyhow::Result<()> {
    if options.json {
        if let Some(fields) = document.as_object_mut() {
            fields.insert("path".to_owned(), Value::from(file.to_string_lossy()));
        }
        return print_json_line(&document);
    }
    let line = match field(&document, "status") {
        "failed" => format!("failed   {}: {}", file.display(), field(&document, "error")),
        status => format!("{status:<8} {} {}", field(&document, "id"), file.display()),
    };
    print(&visible(&line))
}

fn field<'a>(document: &'a Value, name: &str) -> &'a str {
    document.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The files that a path names, sorted by name.
fn gather(path: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let told = || format!("{} cannot be read", path.display());
    if path.as_os_str() == STDIN {
        files.push(path.to_owned());
        return Ok(());
    }
    if !fs_err::metadata(path).with_context(told)?.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let mut entries = fs_err::read_dir(path).with_context(told)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs_err::DirEntry::file_name);
    for entry in entries {
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        // A link could lead out of the folder, or form a cycle.
        if is_hidden || entry.file_type()?.is_symlink() {
            continue;
        }
        if files.len() >= MAX_FILES {
            bail!("there are more than {MAX_FILES} files: send them in parts");
        }
        gather(&entry.path(), files)?;
    }
    Ok(())
}

async fn send(connection: &Connection, options: &IngestOptions, file: &Path) -> anyhow::Result<Value> {
    let (content, name) = if file.as_os_str() == STDIN {
        (read_stdin()?, options.name.clone())
    } else {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        (fs_err::read(file)?, name)
    };
    let key = options.key.clone().unwrap_or_else(|| key_of(file, &content));
    let fields = [
        ("idempotencyKey", Some(key.as_str())),
        ("title", options.title.as_deref()),
        ("url", options.address.as_deref()),
        ("metadata", options.metadata.as_deref()),
    ];
    let request = connection.request(Method::POST, "/api/v1/ingest");
    connection.json(with_form(request, &fields, &name, &content)).await
}

fn read_stdin() -> anyhow::Result<Vec<u8>> {
    let mut content = Vec::new();
    std::io::stdin().lock().read_to_end(&mut content).context("stdin cannot be read")?;
    Ok(content)
}

/// Derived from path and content, so the same file is the same document, and a changed one another.
fn key_of(file: &Path, content: &[u8]) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(file.to_string_lossy().as_bytes());
    hasher.update(&[0]);
    hasher.update(content);
    format!("cli:{}", hasher.finalize().to_hex())
}

/// A multipart form (RFC 7578) of these fields and the file.
fn with_form(
    request: RequestBuilder,
    fields: &[(&str, Option<&str>)],
    name: &str,
    content: &[u8],
) -> RequestBuilder {
    // No content contains its own hash.
    let boundary = format!("cairn-{}", blake3::hash(content).to_hex());
    let name = name.replace(['"', '\r', '\n'], "_");
    let mut body = Vec::with_capacity(content.len() + 1_024);
    for (field, value) in fields {
        let Some(value) = value else { continue };
        let part =
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{field}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    }
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n"
    );
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(content);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    request.header("content-type", format!("multipart/form-data; boundary={boundary}")).body(body)
}

/// Polls until the document is indexed or has failed.
async fn settled(connection: &Connection, mut document: Value) -> anyhow::Result<Value> {
    let id = document.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    for _ in 0..MAX_POLLS {
        let status = document.get("status").and_then(Value::as_str).unwrap_or_default();
        if matches!(status, "indexed" | "failed") {
            return Ok(document);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        document = connection.json(connection.request(Method::GET, &format!("/api/v1/ingest/{id}"))).await?;
    }
    bail!("the document {id} is not searched yet; ask for it again with GET /api/v1/ingest/{id}")
}

/// Shown on a terminal only.
fn progress(what: &str, files: usize) -> ProgressBar {
    let template = format!("{what} {{pos}} of {{len}} {{wide_bar}} {{msg}}");
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(files as u64).with_style(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_has_another_key() {
        let key = |path: &str, content: &str| key_of(Path::new(path), content.as_bytes());
        assert_eq!(key("a.md", "x"), key("a.md", "x"));
        assert_ne!(key("a.md", "x"), key("a.md", "y"));
        assert_ne!(key("a.md", "x"), key("b.md", "x"));
    }

    #[test]
    fn a_folder_is_all_its_files_but_hidden_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs_err::create_dir_all(path("b/c")).unwrap();
        for name in ["z.md", "a.md", ".hidden", "b/c/d.md"] {
            fs_err::write(path(name), "x").unwrap();
        }
        let mut files = Vec::new();
        gather(folder.path(), &mut files).unwrap();
        assert_eq!(files, ["a.md", "b/c/d.md", "z.md"].map(path));
        assert!(gather(&path("nothing"), &mut files).is_err());
    }
}
