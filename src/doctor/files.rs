//! The files of SQLite databases: checks that every page is readable, and rebuilds a file from what is.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::doctor::{Finding, Progress, Repair, Report};
use cairn_chassis::sql::repair::{self, Lost, Salvaged};
use cairn_chassis::sql::{Config, Tables};
use fs_err as fs;

use crate::data_folder::{self, MENDED};

const RULE: &str = "the file of the database can be read, page by page";
/// Infix of a replacement file that is still being written.
const MENDING: &str = "db.mending";
const DAMAGED: &str = ".db.damaged-";

/// The findings about the file of a database, if it is a file.
pub(crate) async fn examine(storage: &Config, progress: Progress<'_>) -> anyhow::Result<Vec<Finding>> {
    let Some(path) = storage.file() else { return Ok(Vec::new()) };
    progress(RULE);
    let faults = repair::examine(storage).await?;
    let finding = |fault: String| Finding { rule: RULE, subject: format!("{}: {fault}", path.display()) };
    Ok(faults.into_iter().map(finding).collect())
}

/// Repairs the file of a database: rebuilds its indexes if only they are damaged; otherwise copies the readable rows
/// into a new file and keeps the damaged one beside it. Returns whether rows may have been lost.
pub(crate) async fn mend(
    storage: &Config,
    tables: Tables,
    now: Timestamp,
    report: &mut Report,
    progress: Progress<'_>,
) -> anyhow::Result<bool> {
    let Some(path) = storage.file() else { return Ok(false) };
    let faults = repair::examine(storage).await?;
    if faults.is_empty() {
        return Ok(false);
    }
    progress(RULE);
    let mut told = |subject: String, does: String, is_loss: bool| {
        report.add(Repair { rule: RULE.into(), subject, does: does.into(), is_loss });
    };
    let name = path.display().to_string();
    if repair::only_in_indexes(&faults) && repair::reindex(storage).await? {
        told(name, "its indexes were built again".to_owned(), false);
        return Ok(false);
    }
    let fresh = path.with_extension(MENDING);
    let Salvaged::Copied(lost) = repair::salvage(path, &fresh, tables).await? else { return Ok(false) };
    let whole = named(path, &format!("{MENDED}{}", stamp(now)));
    fs::rename(&fresh, &whole)?;
    let kept = put_in_place(&whole)?;
    let does = format!("what can be read of it stands in a new file; the damaged one is {}", kept.display());
    told(name, does.clone(), false);
    for lost in lost {
        for subject in subjects(&lost) {
            told(subject, does.clone(), true);
        }
    }
    Ok(true)
}

/// Each row that is known to be lost, and what is known about others.
fn subjects(lost: &Lost) -> Vec<String> {
    let Lost { table, rows, named, may_have_more } = lost;
    let mut subjects: Vec<String> = named.iter().map(|key| format!("a row of {table}: {key}")).collect();
    let unnamed = rows.saturating_sub(named.len() as u64);
    if unnamed > 0 {
        subjects.push(format!("{unnamed} more rows of {table}"));
    }
    if *may_have_more {
        subjects.push(format!("rows of {table} of which not even the keys can be read"));
    }
    subjects
}

fn stamp(now: Timestamp) -> String {
    // Some file systems do not allow colons in file names.
    now.to_rfc3339().replace(':', "-")
}

/// The path of a database's sibling file with the given suffix.
fn named(path: &Path, ending: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}{ending}"))
}

/// Replaces the damaged file by a complete one; the damaged one is kept with its log, and its path is returned. After
/// an interruption the same call resumes; until it is done, no service starts on the folder.
pub(crate) fn put_in_place(whole: &Path) -> anyhow::Result<PathBuf> {
    let name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (stem, stamp) = name.split_once(MENDED).context("it is no file that takes the place of another")?;
    let path = whole.with_file_name(format!("{stem}.db"));
    let kept = whole.with_file_name(format!("{stem}{DAMAGED}{stamp}"));
    // The log first: beside the new file, SQLite would replay it into that.
    for ending in ["-wal", "-shm", ""] {
        move_away(&with_ending(&path, ending), &with_ending(&kept, ending))?;
    }
    fs::rename(whole, &path)?;
    path.parent().map_or(Ok(()), data_folder::sync)?;
    Ok(kept)
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn move_away(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn wherever_it_is_cut_a_whole_file_comes_into_place() {
        let all = ["content.db-wal", "content.db-shm", "content.db"];
        for cut in 0..=all.len() {
            let folder = tempfile::tempdir().unwrap();
            let whole = folder.path().join("content.db.mended-T");
            std::fs::write(&whole, "whole").unwrap();
            for (place, name) in all.iter().enumerate() {
                // The files that were moved before the interruption.
                let name =
                    if place < cut { name.replace(".db", ".db.damaged-T") } else { (*name).to_owned() };
                std::fs::write(folder.path().join(name), "damaged").unwrap();
            }
            assert_eq!(put_in_place(&whole).unwrap(), folder.path().join("content.db.damaged-T"));
            assert_eq!(
                names(folder.path()),
                [
                    "content.db",
                    "content.db.damaged-T",
                    "content.db.damaged-T-shm",
                    "content.db.damaged-T-wal"
                ]
            );
            assert_eq!(std::fs::read(folder.path().join("content.db")).unwrap(), b"whole");
        }
    }
}
