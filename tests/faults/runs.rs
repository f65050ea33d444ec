//! Operations that outlast a request: syncs of a directory, imports of an archive, and a connected source.

use std::io::{Cursor, Write as _};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::client::{Client, Outcome};
use crate::support::callers::Caller as _;
use crate::support::http::{Request, id, text};

/// Documents of a client's directory.
const SYNCED: u64 = 12;
/// Files of a client in the source's folder, which it rewrites repeatedly.
const SHELVED: u64 = 20;
/// The number of concurrent clients.
const WRITERS: u64 = 4;
/// After this long, a client stops waiting for a run.
const RUN_LIMIT: Duration = Duration::from_secs(20);
const RUN_PAUSE: Duration = Duration::from_millis(100);
const BOUNDARY: &str = "cairn-faults";
/// Another run of the same name may still be in progress.
const STARTED_OR_BUSY: [u16; 2] = [202, 409];

/// One sync of a directory that belongs to this client alone.
pub(crate) async fn sync(client: &mut Client) {
    let (_, word) = client.fresh();
    let number = client.number;
    let documents: Vec<(String, String)> = (0..SYNCED)
        .map(|place| {
            (format!("s{number}p{place}.md"), format!("# {place}\n\nRound {word} of client {number}.\n"))
        })
        .collect();
    let listed: Vec<Value> =
        documents.iter().map(|(path, content)| json!({"path": path, "content": content})).collect();
    let manifest = json!({"manifest": {"name": format!("docs{number}"), "documents": listed}});
    let request = client.token.post("/api/v1/sync/preview").json(manifest);
    let Outcome::Answered(preview) = client.ask("preview a sync", request, &[201]).await else { return };
    let path = format!("/api/v1/sync/{}", id(&preview.json()));
    // From here on it may be written, perhaps long after the client has stopped waiting.
    for (name, content) in &documents {
        client.ledger.synced.entry(name.clone()).or_default().possible.push(content.clone());
    }
    let start = client.token.post(&format!("{path}/start"));
    client.ask("start a sync", start, &STARTED_OR_BUSY).await;
    if !is_completed(client, |client| client.token.get(&path)).await {
        return;
    }
    for (name, content) in documents {
        let synced = client.ledger.synced.entry(name).or_default();
        synced.possible.retain(|possible| *possible != content);
        synced.acknowledged = Some(content);
    }
}

/// Imports an archive whose notes have unique names.
pub(crate) async fn import(client: &mut Client) {
    let (_, word) = client.fresh();
    let names: Vec<String> = ["a", "b", "c"].iter().map(|part| format!("{word}{part}.md")).collect();
    let form = form(&client.grounds.workspace, &word, &vault(&names));
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    let request = client.grounds.person.post("/api/import/preview").body(&kind, form);
    let Outcome::Answered(preview) = client.ask("preview an import", request, &[201]).await else { return };
    let path = format!("/api/import/{}", id(&preview.json()));
    client.ledger.imported.extend(names.iter().map(|name| (name.clone(), false)));
    let start = client.grounds.person.post(&format!("{path}/start"));
    client.ask("start an import", start, &STARTED_OR_BUSY).await;
    if is_completed(client, |client| client.grounds.person.get(&path)).await {
        client.ledger.imported.extend(names.into_iter().map(|name| (name, true)));
    }
}

/// Writes a new or changed file into the source's folder, and requests a sync.
pub(crate) async fn feed_shelf(client: &mut Client) {
    let (_, word) = client.fresh();
    let (writer, place) = (client.number % WRITERS, client.numbers.below(SHELVED));
    let name = format!("c{writer}f{place}.md");
    std::fs::write(client.grounds.shelf.join(name), format!("# Shelved\n\nIt says {word}.\n")).unwrap();
    let request = client.grounds.person.post(&format!("{}/sync", client.grounds.source)).json(json!({}));
    client.ask("read a source", request, &STARTED_OR_BUSY).await;
}

/// Whether the run was acknowledged as completed before the client stopped waiting.
async fn is_completed(client: &mut Client, request: impl Fn(&Client) -> Request) -> bool {
    let end = Instant::now() + RUN_LIMIT;
    while Instant::now() < end && !client.grounds.is_over.get() {
        let asked = request(&*client);
        if let Outcome::Answered(reply) = client.ask("ask for a run", asked, &[200]).await {
            match text(&reply.json(), "status").as_str() {
                "queued" | "running" => {}
                status => return status.starts_with("completed"),
            }
        }
        tokio::time::sleep(RUN_PAUSE).await;
    }
    false
}

/// An Obsidian vault with these notes.
fn vault(names: &[String]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let mut put = |path: &str, bytes: &[u8]| {
        writer.start_file(path, SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    };
    put("Vault/.obsidian/app.json", b"{}");
    for name in names {
        put(&format!("Vault/{name}"), format!("What {name} says.\n").as_bytes());
    }
    writer.finish().unwrap().into_inner()
}

fn form(workspace: &str, file: &str, archive: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, value) in [("workspaceId", workspace), ("provider", "obsidian_zip")] {
        let part =
            format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    }
    let head = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"archive\"; filename=\"{file}.zip\"\r\n\
         Content-Type: application/zip\r\n\r\n"
    );
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(archive);
    body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
    body
}
