//! Files crafted to exhaust the extractor: each fails on its own, and the service goes on.

use std::io::{Cursor, Write as _};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::ingest::{document, post, read, send_form};
use crate::support::http::{id, text};
use crate::support::prelude::*;
use crate::support::runner::{announce_skip, run_alone};
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;

const MIB: u64 = 1024 * 1024;
/// What all files together may add to the peak of startup and legitimate documents: the server itself parses none of
/// them.
const MAX_ADDED: u64 = 300 * MIB;

/// A Word document with that main part.
fn docx(main: &[u8], method: CompressionMethod) -> Vec<u8> {
    let types = br#"<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"#;
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in [("[Content_Types].xml", types.as_slice()), ("word/document.xml", main)] {
        writer.start_file(name, SimpleFileOptions::default().compression_method(method)).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    let paragraphs = format!(
        "<w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\"><w:body>{}</w:body></w:document>",
        "<w:p><w:r><w:t>x</w:t></w:r></w:p>".repeat(300_000)
    );
    let attributes: String = (0..700_000).map(|number| format!(" a{number}=1")).collect();
    let noise = (0..4_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8);
    vec![
        ("bomb.docx", docx(&vec![b' '; 20_000_000], CompressionMethod::Deflated)),
        ("paragraphs.docx", docx(paragraphs.as_bytes(), CompressionMethod::Stored)),
        ("deep.html", format!("{}text", "<b>".repeat(3_000_000)).into_bytes()),
        ("attributes.html", format!("<p{attributes}>text</p>").into_bytes()),
        ("unclosed.html", format!("{}text", "<table><tr><td>".repeat(300_000)).into_bytes()),
        ("noise.pdf", b"%PDF-1.7\n".iter().copied().chain(noise).collect()),
        ("brackets.ipynb", "[".repeat(9_000_000).into_bytes()),
    ]
}

#[test]
fn hostile_files_fail_for_themselves_and_take_little_memory() {
    run_alone(async {
        let data = Scratch::new();
        let up = SingleProcess::start_on(data.path(), &[]).await;
        let token = up.token();
        let honest = ("page.html", "<main><h1>Plan</h1><p>Two steps.</p></main>".as_bytes());
        let sent = send_form(&token, &[("idempotencyKey", "honest")], Some(honest)).await.expect(202).json();
        assert_ne!(read(&token, &id(&sent)).await["status"], "failed");
        let Some(before) = up.process().peak_memory() else {
            return announce_skip("nothing tells here how much memory a process took");
        };
        let mut all = Vec::new();
        for (name, bytes) in hostile() {
            let reply = send_form(&token, &[("idempotencyKey", name)], Some((name, &bytes))).await;
            // What can be refused at once may be.
            if reply.status == 202 {
                all.push((name, id(&reply.json())));
            } else {
                assert!(matches!(reply.status, 400 | 413 | 415), "{name}: {}", reply.text());
            }
        }
        // Other requests are served meanwhile.
        token.get("/healthz").await.expect(200);
        let note = post(&token, document("note", "# Otters\n\nThey float.\n")).await.expect(202).json();
        eventually("another note is indexed", async || {
            let now = token.get(&format!("/api/v1/ingest/{}", id(&note))).await.expect(200).json();
            (now["status"] == "indexed").then_some(())
        })
        .await;
        for (name, document) in &all {
            let now = read(&token, document).await;
            if now["status"] == "failed" {
                let why = text(&now, "error");
                assert!(!why.is_empty() && !why.contains("panic") && !why.contains('/'), "{name}: {why}");
            }
        }
        let failed = token.get("/api/v1/ingest?status=failed").await.expect(200).text();
        assert!(failed.contains("bomb.docx") && failed.contains("noise.pdf"), "{failed}");
        let added = up.process().peak_memory().unwrap() - before;
        assert!(added < MAX_ADDED, "{} MiB more than before", added / MIB);
    });
}
