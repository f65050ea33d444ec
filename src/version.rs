//! Build information: for people, for scripts, and as a metric.

use std::env::consts::{ARCH, OS};
use std::io::Write as _;

use serde::Serialize;

use crate::cli::VersionOptions;

/// The release.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit, if the build passed it (`CAIRN_COMMIT`). Not taken from git: a build from an archive has no repository,
/// and builds of the same sources must be identical.
const COMMIT: Option<&str> = option_env!("CAIRN_COMMIT");
/// An info metric whose labels describe the build.
const BUILD_INFO: &str = "cairn_build_info";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Build {
    version: &'static str,
    commit: Option<&'static str>,
    target: String,
    features: Vec<&'static str>,
    /// Whether debug assertions are on, which makes it far slower.
    debug: bool,
}

impl Build {
    fn of_this() -> Self {
        let features = [
            ("qdrant", cfg!(feature = "qdrant")),
            ("redis", cfg!(feature = "redis")),
            ("s3", cfg!(feature = "s3")),
            ("transformer", cfg!(feature = "transformer")),
        ];
        Self {
            version: VERSION,
            commit: commit(),
            target: format!("{ARCH}-{OS}{}", libc()),
            features: features.into_iter().filter(|(_, is_in)| *is_in).map(|(name, _)| name).collect(),
            debug: cfg!(debug_assertions),
        }
    }
}

fn commit() -> Option<&'static str> {
    COMMIT.filter(|commit| !commit.is_empty())
}

const fn libc() -> &'static str {
    if cfg!(target_env = "gnu") {
        "-gnu"
    } else if cfg!(target_env = "musl") {
        "-musl"
    } else {
        ""
    }
}

/// `cairn version`.
pub(crate) fn print(options: &VersionOptions) -> anyhow::Result<()> {
    let build = Build::of_this();
    let mut out = std::io::stdout().lock();
    if options.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&build)?)?;
        return Ok(out.flush()?);
    }
    let commit = build.commit.unwrap_or("unknown");
    writeln!(out, "cairn {} (commit {commit}, {})", build.version, build.target)?;
    writeln!(
        out,
        "with {}",
        if build.features.is_empty() { "no optional part".to_owned() } else { build.features.join(", ") }
    )?;
    Ok(out.flush()?)
}

/// Records the build information as a metric.
pub(crate) fn record() {
    let commit = commit().unwrap_or("unknown");
    metrics::gauge!(BUILD_INFO, "version" => VERSION, "commit" => commit).set(1.0);
}
