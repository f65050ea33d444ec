//! `cairn import`: imports an archive from a terminal.

use std::io::Write as _;
use std::path::Path;

use crate::support::http::{each, text};
use crate::support::people::{PASSWORD, join};
use crate::support::prelude::*;
use crate::support::process::Process;
use crate::support::scratch::Scratch;

scenarios![a_vault_is_previewed_imported_and_taken_back, who_cannot_be_signed_in_imports_nothing];

fn vault(path: &Path) {
    let mut archive = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    let files: [(&str, &[u8]); 4] = [
        ("vault/.obsidian/app.json", b"{}"),
        ("vault/a.md", b"# A\n\n[[b]] and [[nowhere]]"),
        ("vault/sub/b.md", b"# B"),
        ("vault/plan.png", &[0x89, b'P', b'N', b'G', 0]),
    ];
    for (name, content) in files {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap();
}

/// The exit status, stdout and stderr.
async fn import(url: &str, email: &str, password: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let arguments: Vec<String> = ["import"].iter().chain(arguments).map(|text| (*text).to_owned()).collect();
    let variables = [("CAIRN_URL", url), ("CAIRN_EMAIL", email), ("CAIRN_PASSWORD", password)];
    let mut process = Process::start("cairn", &arguments, &variables);
    let status = process.exit().await;
    (status.code(), process.stdout(), process.stderr())
}

async fn a_vault_is_previewed_imported_and_taken_back(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let (url, owner) = (deployment.base_url(), deployment.owner());
    let folder = Scratch::new();
    let archive = folder.path().join("vault.zip");
    vault(&archive);
    let path = archive.display().to_string();
    let run = async |more: &[&str]| {
        let arguments: Vec<&str> =
            [path.as_str(), "--workspace", &workspace.id].into_iter().chain(more.iter().copied()).collect();
        import(&url, &owner.email, &owner.password, &arguments).await
    };
    let paths = async || {
        let listed = workspace.token.get("/api/v1/files").await.expect(200).json();
        let mut paths: Vec<String> = each(&listed, "path").into_iter().map(str::to_owned).collect();
        paths.sort();
        paths
    };
    let (code, output, log) = run(&["--dry-run"]).await;
    assert_eq!(code, Some(0), "{output}{log}");
    for told in ["2 files, 1 assets", "a.md:3 nowhere (not_found)", "left out"] {
        assert!(output.contains(told), "{told} is not in {output}");
    }
    assert_eq!(paths().await, Vec::<String>::new());
    let (code, _, log) = run(&[]).await;
    assert!(code == Some(1) && log.contains("--yes"), "nobody is there to ask: {log}");

    let (code, output, log) = run(&["--yes", "--json"]).await;
    assert_eq!(code, Some(0), "{output}{log}");
    let done: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(
        (text(&done, "status"), &done["counters"]["created"]),
        ("completed".into(), &json!(3)),
        "{done}"
    );
    assert_eq!(paths().await, ["/vault/a.md", "/vault/sub/b.md"]);
    let back = ["--rollback", &text(&done, "id"), "--yes"];
    let (code, output, log) = import(&url, &owner.email, &owner.password, &back).await;
    assert!(code == Some(0) && output.starts_with("rolled back"), "{output}{log}");
    assert_eq!(paths().await, Vec::<String>::new());
}

async fn who_cannot_be_signed_in_imports_nothing(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = Scratch::new();
    let archive = folder.path().join("vault.zip");
    vault(&archive);
    let path = archive.display().to_string();
    let url = deployment.base_url();
    let (code, _, log) = import(&url, "somebody@example.com", "not the password", &[&path, "--yes"]).await;
    assert!(code == Some(4) && !log.contains("not the password"), "{log}");
    let (code, _, log) = import(&url, "", "", &[&path, "--yes"]).await;
    assert!(code == Some(4) && log.contains("CAIRN_EMAIL"), "{log}");
    let viewer = join(&workspace, "viewer").await;
    let (code, _, log) =
        import(&url, &viewer.email, PASSWORD, &[&path, "--workspace", &workspace.id, "--yes"]).await;
    assert!(code == Some(1) && log.contains("FORBIDDEN"), "{log}");
}
