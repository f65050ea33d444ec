//! Leftovers of interrupted commands in a data folder. Lock files do not count: the OS releases the lock, and the file
//! itself means nothing.

use std::path::{Path, PathBuf};

use cairn_chassis::doctor::{Finding, Repair, Report};
use fs_err as fs;

use super::{ROLES, files};
use crate::data_folder::{self, UNFINISHED};
use crate::{bootstrap_file, secret_keys};

pub(crate) const PART: &str = "folder";
const RULE: &str = "nothing is left of a command that was cut";
const MENDING: &str = ".db.mending";

/// A leftover.
enum Leftover {
    /// An interrupted restore. Only running it again completes it.
    Restore(PathBuf),
    /// A mend that was interrupted right before the replacement.
    Mended(PathBuf),
    /// A temporary file of an atomic write; the target is unchanged.
    Temporary(PathBuf),
}

/// Searches the folder of `cairn up`, and those of services of `cairn serve` below it.
fn find(data: &Path) -> anyhow::Result<Vec<Leftover>> {
    let mut found = find_in(data)?;
    for folder in ROLES.map(|role| data.join(role.name())) {
        if folder.is_dir() {
            found.extend(find_in(&folder)?);
        }
    }
    Ok(found)
}

fn find_in(data: &Path) -> anyhow::Result<Vec<Leftover>> {
    let mut found: Vec<Leftover> = data_folder::cut_mends(data)?.into_iter().map(Leftover::Mended).collect();
    let restore = data.join(UNFINISHED);
    if restore.exists() {
        found.push(Leftover::Restore(restore));
    }
    for name in [secret_keys::FILE_NAME, bootstrap_file::FILE_NAME] {
        let draft = data.join(format!("{name}.new"));
        // The only copy of a key is not removed.
        if draft.exists() && data.join(name).exists() {
            found.push(Leftover::Temporary(draft));
        }
    }
    for entry in fs::read_dir(data)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().contains(MENDING)) {
            found.push(Leftover::Temporary(path));
        }
    }
    Ok(found)
}

/// The leftovers as findings.
pub(crate) fn examine(data: &Path) -> anyhow::Result<Vec<Finding>> {
    if !data.is_dir() {
        return Ok(Vec::new());
    }
    let finding = |left: Leftover| {
        let subject = match left {
            Leftover::Restore(path) => format!("{}: run the same `cairn restore` again", path.display()),
            Leftover::Mended(path) => format!("{}: a mend was cut before its end", path.display()),
            Leftover::Temporary(path) => format!("{}: it was never finished", path.display()),
        };
        Finding { rule: RULE, subject }
    };
    Ok(find(data)?.into_iter().map(finding).collect())
}

/// Completes interrupted mends, and removes temporary files.
pub(crate) fn mend(data: &Path, report: &mut Report) -> anyhow::Result<()> {
    for left in find(data)? {
        let (path, does) = match left {
            Leftover::Restore(_) => continue,
            Leftover::Mended(path) => {
                let kept = files::put_in_place(&path)?;
                (path, format!("it was put into its place; the damaged one is {}", kept.display()))
            }
            Leftover::Temporary(path) => {
                fs::remove_file(&path)?;
                (path, "it is removed".to_owned())
            }
        };
        report.add(Repair {
            rule: RULE.into(),
            subject: path.display().to_string(),
            does: does.into(),
            is_loss: false,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_go_and_the_only_copy_of_a_key_stays() {
        let data = tempfile::tempdir().unwrap();
        let write = |name: &str| std::fs::write(data.path().join(name), "x").unwrap();
        for name in ["secret.key.new", "content.db.mending", "content.db.mending-wal"] {
            write(name);
        }
        assert_eq!(examine(data.path()).unwrap().len(), 2);
        write("secret.key");
        assert_eq!(examine(data.path()).unwrap().len(), 3);
        mend(data.path(), &mut Report::default()).unwrap();
        assert_eq!(examine(data.path()).unwrap(), Vec::new());
        assert!(data.path().join("secret.key").exists());
    }
}
