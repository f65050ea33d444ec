//! A temporary folder that is removed with its owner, or with the test process when the owner is never dropped.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// Waits for EOF on its stdin, when the owner or the test process ends, and then removes the folder. The processes that
/// write there are killed at the same moment, so one of them may still be writing during the first attempt.
const JANITOR: &str = "cat >/dev/null; rm -rf \"$0\" 2>/dev/null || { sleep 1; rm -rf \"$0\"; }";

/// A folder for the data of a deployment that may live in a static.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: TempDir,
    janitor: Child,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let janitor = Command::new("sh")
            .args(["-c", JANITOR])
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { folder, janitor }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Every file below a folder: path and content.
pub(crate) fn files_below(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push((path.display().to_string(), fs::read(&path).unwrap_or_default()));
        }
    }
    files
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(self.janitor.stdin.take());
        // The error has no consequence: the folder's own drop tries again.
        let _ = self.janitor.wait();
    }
}
