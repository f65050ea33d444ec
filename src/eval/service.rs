//! A temporary service: a child process `cairn up` on a temporary folder.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tempfile::TempDir;

use crate::bootstrap_file::BootstrapFile;
use crate::cli::models_in;

const MODELS_VARIABLE: &str = "CAIRN_EMBEDDER_MODELS";
const START_LIMIT: Duration = Duration::from_secs(60);
const QDRANT_PREFIX: &str = "cairn-eval";
const PAUSE: Duration = Duration::from_millis(20);
/// Port 0 picks a free one; the bootstrap file has the actual one.
const ANY_PORT: &str = "127.0.0.1:0";

/// The default folder of `cairn models add`.
fn models_in_data_folder() -> PathBuf {
    let given = std::env::var_os("CAIRN_DATA").filter(|folder| !folder.is_empty());
    models_in(Path::new(&given.unwrap_or_else(|| "./cairn-data".into())))
}

/// The process is killed on drop.
pub(super) struct TemporaryService {
    process: Child,
    data: TempDir,
}

impl TemporaryService {
    /// Starts it with that embedder and that Qdrant. Of the user's own environment only the variables of these two are
    /// passed on.
    pub(super) fn start(embedder: Option<&str>, qdrant: Option<&str>) -> anyhow::Result<Self> {
        let data = tempfile::Builder::new().prefix("cairn-eval-").tempdir()?;
        let mut command = Command::new(std::env::current_exe().context("this program's file is not known")?);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            let of_embedder = embedder.is_some() && text.starts_with("CAIRN_EMBEDDER_");
            let of_qdrant = qdrant.is_some() && text.starts_with("CAIRN_QDRANT_");
            if text.starts_with("CAIRN_") && !of_embedder && !of_qdrant {
                command.env_remove(&name);
            }
        }
        command
            .args(["up", "--quiet", "--listen", ANY_PORT, "--admin-listen", ANY_PORT, "--data"])
            .arg(data.path());
        if let Some(embedder) = embedder {
            command.args(["--embedder", embedder]);
            // The name of a model refers to this machine's data folder, not to the temporary one.
            if std::env::var_os(MODELS_VARIABLE).is_none_or(|folder| folder.is_empty()) {
                command.env(MODELS_VARIABLE, models_in_data_folder());
            }
        }
        if let Some(qdrant) = qdrant {
            // Each run has its own workspace, so runs may share a collection.
            command.args(["--qdrant-url", qdrant, "--qdrant-prefix", QDRANT_PREFIX]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let process = command.spawn().context("the temporary service cannot be started")?;
        Ok(Self { process, data })
    }

    /// Its address and token, once they are available.
    pub(super) async fn access(&mut self) -> anyhow::Result<(String, String)> {
        let asked = Instant::now();
        while asked.elapsed() < START_LIMIT {
            if let Some(file) = BootstrapFile::read(self.data.path()) {
                return Ok((file.base_url, file.token));
            }
            if let Some(status) = self.process.try_wait()? {
                bail!("the temporary service ended with {status}");
            }
            tokio::time::sleep(PAUSE).await;
        }
        bail!("the temporary service has not started within {} seconds", START_LIMIT.as_secs())
    }
}

impl Drop for TemporaryService {
    fn drop(&mut self) {
        // Its folder is deleted with it, so an orderly shutdown is unnecessary.
        if self.process.kill().is_ok() {
            let _status = self.process.wait();
        }
    }
}
