//! Verifies a backup or a data folder.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use cairn_content::AssetLocation;
use serde_json::json;

use super::progress::Progress;
use super::repository::Repository;
use super::restore::{about, selection, write_files};
use crate::cli::{ASSETS_FOLDER, ChosenBackup, DoctorOptions, StoredOptions, VerifyOptions};
use crate::doctor::{self, Examined};

/// Verifies what the options name; fails on any finding.
pub(crate) async fn verify(options: VerifyOptions) -> anyhow::Result<()> {
    match &options.data {
        Some(data) => data_folder(&options, data).await,
        None => backup(&options).await,
    }
}

/// Restores a backup into a temporary folder and checks every invariant. A backup has no index to check: it is rebuilt.
async fn backup(options: &VerifyOptions) -> anyhow::Result<()> {
    let place = options.chosen.place()?;
    let repository = Repository::open_existing(&place, super::key(&options.chosen.key)?).await?;
    let (name, manifest) = repository.manifest(&selection(&options.chosen)?).await?;
    let scratch = scratch_in(options.scratch.as_deref())?;
    let assets = AssetLocation::Folder(scratch.path().join(ASSETS_FOLDER));
    let is_quiet = options.quiet || options.json;
    write_files(&repository, &manifest, scratch.path(), &assets, Progress::new(is_quiet)).await?;
    if !options.json {
        let (files, bytes) = (manifest.files.len(), manifest.size());
        let mut out = std::io::stdout().lock();
        writeln!(out, "{name}: {files} files, {bytes} bytes, every piece as it was kept")?;
    }
    let examined = doctor::examine(&of_doctor(options, scratch.path(), Some(assets))).await?;
    end(options, &examined, Some(about(&name, &manifest)))
}

/// Restores a backup into a temporary folder, which is removed when the returned value is dropped.
pub(crate) async fn unpacked(
    chosen: &ChosenBackup,
    scratch: Option<&Path>,
    is_quiet: bool,
) -> anyhow::Result<tempfile::TempDir> {
    let repository = Repository::open_existing(&chosen.place()?, super::key(&chosen.key)?).await?;
    let (_, manifest) = repository.manifest(&selection(chosen)?).await?;
    let scratch = scratch_in(scratch)?;
    let assets = AssetLocation::Folder(scratch.path().join(ASSETS_FOLDER));
    write_files(&repository, &manifest, scratch.path(), &assets, Progress::new(is_quiet)).await?;
    Ok(scratch)
}

fn scratch_in(folder: Option<&Path>) -> anyhow::Result<tempfile::TempDir> {
    let scratch = match folder {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    };
    scratch.context("there is no place to put the backup to; name one with --scratch")
}

/// Checks every invariant of a data folder, and the index against its owners.
async fn data_folder(options: &VerifyOptions, data: &Path) -> anyhow::Result<()> {
    let examined = doctor::examine(&of_doctor(options, data, options.assets.clone())).await?;
    end(options, &examined, None)
}

fn of_doctor(options: &VerifyOptions, data: &Path, assets: Option<AssetLocation>) -> DoctorOptions {
    DoctorOptions {
        stored: StoredOptions { data: data.to_owned(), database: None },
        assets,
        secret_key: options.secret_key.clone(),
        mend: false,
        yes: false,
        give_up_assets: false,
        chosen: ChosenBackup::none(),
        scratch: None,
        quiet: options.quiet || options.json,
        json: options.json,
    }
}

fn end(
    options: &VerifyOptions,
    examined: &Examined,
    backup: Option<serde_json::Value>,
) -> anyhow::Result<()> {
    if options.json {
        let said = json!({
            "isSound": examined.findings.is_empty(),
            "examined": examined.parts,
            "findings": examined.in_json(),
            "backup": backup,
        });
        let mut out = std::io::stdout().lock();
        writeln!(out, "{said:#}")?;
    } else {
        examined.tell()?;
    }
    examined.result()
}
