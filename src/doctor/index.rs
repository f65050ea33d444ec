//! The index of `cairn up`: checks that its files are intact and that it matches the data of its owners. The index is
//! derived data, so a damaged one is removed and rebuilt.

use std::path::Path;

use cairn_chassis::doctor::{Finding, Repair, Report};
use cairn_chassis::wording::{self, Unit};
use fs_err as fs;

use super::{Examined, say};
use crate::cli::{DoctorOptions, INDEX_FOLDER, Role};
use crate::storages;

pub(crate) const PART: &str = "index";
const RULE: &str = "the files of the index are what was written";
/// A live process may remove a file between listing and reading, so a failure must repeat to count.
const ATTEMPTS: usize = 3;

/// Adds the findings about the index of the data folder.
pub(crate) async fn examine(options: &DoctorOptions, examined: &mut Examined) -> anyhow::Result<()> {
    let data = &options.stored.data;
    let folder = data.join(INDEX_FOLDER);
    let progress = |rule: &str| {
        if !options.quiet && !options.json {
            say(PART, rule);
        }
    };
    if folder.exists() {
        progress(RULE);
    }
    if let Some(subject) = damage(&folder).await {
        examined.add(PART, Some(vec![Finding { rule: RULE, subject }]));
        return Ok(());
    }
    // The index is read before its owners, so that concurrent writes can be told apart from missing ones.
    let stored = match cairn_retrieval::read_stored(&folder).await {
        Ok(None) => return Ok(()),
        Ok(Some(stored)) => stored,
        Err(error) => {
            let subject = format!("{}: it cannot be read: {error}", folder.display());
            examined.add(PART, Some(vec![Finding { rule: RULE, subject }]));
            return Ok(());
        }
    };
    let is_read = |role: Role| !examined.unread.contains(&role);
    let mut found = None::<Vec<Finding>>;
    if let Some(content) = storages::of_up(Role::Content, data).filter(|_| is_read(Role::Content)) {
        let of_content = cairn_content::examine_index(&content, &stored.content, &progress).await?;
        found.get_or_insert_default().extend(of_content.unwrap_or_default());
    }
    if let Some(ingest) = storages::of_up(Role::Ingest, data).filter(|_| is_read(Role::Ingest)) {
        let of_ingest = cairn_ingest::examine_index(&ingest, &stored.ingest, &progress).await?;
        found.get_or_insert_default().extend(of_ingest.unwrap_or_default());
    }
    examined.add(PART, found);
    Ok(())
}

/// The damage, if every attempt finds some.
async fn damage(folder: &Path) -> Option<String> {
    let mut wrong = None;
    for _ in 0..ATTEMPTS {
        wrong = Some(match cairn_retrieval::damaged_files(folder).await {
            Ok(0) => return None,
            Ok(files) => {
                let files = wording::count(files as u64, Unit::Files);
                format!("{}: {files} with other bytes", folder.display())
            }
            Err(error) => format!("{}: it cannot be read: {error}", folder.display()),
        });
    }
    wrong
}

/// Removes the index, so that the next start rebuilds it: that of `cairn up`, and that of `cairn serve` below it.
pub(crate) fn remove(data: &Path, why: &str, report: &mut Report) -> anyhow::Result<()> {
    let of_serve = data.join(Role::Retrieval.name());
    for folder in [data.join(INDEX_FOLDER), of_serve.join(INDEX_FOLDER)] {
        if !folder.exists() {
            continue;
        }
        fs::remove_dir_all(&folder)?;
        report.add(Repair {
            rule: why.to_owned().into(),
            subject: folder.display().to_string(),
            does: "it is removed, and the next start builds it again".into(),
            is_loss: false,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_goes_wherever_it_is() {
        let data = tempfile::tempdir().unwrap();
        let folders = ["index", "retrieval/index"].map(|name| data.path().join(name));
        for folder in &folders {
            std::fs::create_dir_all(folder).unwrap();
        }
        let mut report = Report::default();
        remove(data.path(), "a rule", &mut report).unwrap();
        assert!(folders.iter().all(|folder| !folder.exists()));
        assert_eq!(report.into_items().len(), 2);
    }
}
