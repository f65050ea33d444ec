//! Looks a backup or a data folder over.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use cairn_content::AssetLocation;
use serde_json::json;

use super::progress::Progress;
use super::repository::Repository;
use super::restore::{about, put_back, wanted};
use crate::cli::{ASSETS_FOLDER, DoctorOptions, INDEX_FOLDER, Role, StoredOptions, VerifyOptions};
use crate::doctor::{self, Examined};
use crate::storages;

/// Looks over what the options name; fails when something is wrong.
pub(crate) async fn verify(options: VerifyOptions) -> anyhow::Result<()> {
    match &options.data {
        Some(data) => data_folder(&options, data).await,
        None => backup(&options).await,
    }
}

/// Puts a backup into a folder that is removed afterwards, and looks every invariant over. Of the index there is nothing to
/// look at: it is built anew.
async fn backup(options: &VerifyOptions) -> anyhow::Result<()> {
    let place = options.chosen.place()?;
    let repository = Repository::open_existing(&place, super::key(&options.chosen.key)?).await?;
    let (name, manifest) = repository.manifest(&wanted(&options.chosen)?).await?;
    let scratch = match &options.scratch {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    };
    let scratch = scratch.context("there is no place to put the backup to; name one with --scratch")?;
    let assets = AssetLocation::Folder(scratch.path().join(ASSETS_FOLDER));
    let is_quiet = options.quiet || options.json;
    put_back(&repository, &manifest, scratch.path(), &assets, Progress::new(is_quiet)).await?;
    if !options.json {
        let (files, bytes) = (manifest.files.len(), manifest.size());
        let mut out = std::io::stdout().lock();
        writeln!(out, "{name}: {files} files, {bytes} bytes, every piece as it was kept")?;
    }
    let examined = doctor::examine(&of_doctor(options, scratch.path(), Some(assets))).await?;
    end(options, &examined, Some(about(&name, &manifest)))
}

/// Looks every invariant of a data folder over, and the index against the owners of what it holds.
async fn data_folder(options: &VerifyOptions, data: &Path) -> anyhow::Result<()> {
    let mut examined = doctor::examine(&of_doctor(options, data, options.assets.clone())).await?;
    // First what the index holds, then what its owners have: so what is written meanwhile is told apart.
    let held = cairn_retrieval::held(&data.join(INDEX_FOLDER)).await;
    let held = held.context("the index cannot be read; a start without its folder builds it anew")?;
    if let Some(held) = held {
        let progress = |rule: &str| {
            if !options.quiet && !options.json {
                doctor::say("index", rule);
            }
        };
        if let Some(content) = storages::of_up(Role::Content, data) {
            let found = cairn_content::examine_index(&content, &held.content, &progress).await?;
            examined.add("index", found);
        }
        if let Some(ingest) = storages::of_up(Role::Ingest, data) {
            let found = cairn_ingest::examine_index(&ingest, &held.ingest, &progress).await?;
            examined.add("index", found);
        }
    }
    end(options, &examined, None)
}

fn of_doctor(options: &VerifyOptions, data: &Path, assets: Option<AssetLocation>) -> DoctorOptions {
    DoctorOptions {
        stored: StoredOptions { data: data.to_owned(), database: None },
        assets,
        secret_key: options.secret_key.clone(),
        quiet: options.quiet || options.json,
    }
}

fn end(
    options: &VerifyOptions,
    examined: &Examined,
    backup: Option<serde_json::Value>,
) -> anyhow::Result<()> {
    if options.json {
        let findings: Vec<_> = examined
            .findings
            .iter()
            .map(|(part, finding)| json!({"part": part, "rule": finding.rule, "subject": finding.subject}))
            .collect();
        let said = json!({
            "isSound": findings.is_empty(),
            "examined": examined.parts,
            "findings": findings,
            "backup": backup,
        });
        let mut out = std::io::stdout().lock();
        writeln!(out, "{said:#}")?;
    } else {
        examined.tell()?;
    }
    examined.result()
}
