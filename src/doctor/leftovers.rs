//! What commands that were cut have left in a data folder. A lock is none: the system takes it back, and its file says nothing.

use std::path::{Path, PathBuf};

use cairn_chassis::doctor::{Finding, Mended, Report};
use fs_err as fs;

use super::{ROLES, files};
use crate::data_folder::{self, UNFINISHED};
use crate::{bootstrap_file, secret_keys};

pub(crate) const PART: &str = "folder";
const RULE: &str = "nothing is left of a command that was cut";
const MENDING: &str = ".db.mending";

/// Something that is left.
enum Left {
    /// By a restore. Only the same again makes it whole.
    Restore(PathBuf),
    /// By a mend, right before its end.
    Mended(PathBuf),
    /// By whatever writes a file as a whole; the file itself is as it was.
    Draft(PathBuf),
}

/// In the folder of `cairn up`, and in those of services of `cairn serve` below it.
fn find(data: &Path) -> anyhow::Result<Vec<Left>> {
    let mut found = find_in(data)?;
    for folder in ROLES.map(|role| data.join(role.name())) {
        if folder.is_dir() {
            found.extend(find_in(&folder)?);
        }
    }
    Ok(found)
}

fn find_in(data: &Path) -> anyhow::Result<Vec<Left>> {
    let mut found: Vec<Left> = data_folder::cut_mends(data)?.into_iter().map(Left::Mended).collect();
    let restore = data.join(UNFINISHED);
    if restore.exists() {
        found.push(Left::Restore(restore));
    }
    for name in [secret_keys::FILE_NAME, bootstrap_file::FILE_NAME] {
        let draft = data.join(format!("{name}.new"));
        // A key that stands nowhere else is not removed.
        if draft.exists() && data.join(name).exists() {
            found.push(Left::Draft(draft));
        }
    }
    for entry in fs::read_dir(data)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().contains(MENDING)) {
            found.push(Left::Draft(path));
        }
    }
    Ok(found)
}

/// What is left.
pub(crate) fn examine(data: &Path) -> anyhow::Result<Vec<Finding>> {
    if !data.is_dir() {
        return Ok(Vec::new());
    }
    let finding = |left: Left| {
        let subject = match left {
            Left::Restore(path) => format!("{}: run the same `cairn restore` again", path.display()),
            Left::Mended(path) => format!("{}: a mend was cut before its end", path.display()),
            Left::Draft(path) => format!("{}: it was never finished", path.display()),
        };
        Finding { rule: RULE, subject }
    };
    Ok(find(data)?.into_iter().map(finding).collect())
}

/// Ends what a mend has left, and removes drafts.
pub(crate) fn mend(data: &Path, report: &mut Report) -> anyhow::Result<()> {
    for left in find(data)? {
        let (path, does) = match left {
            Left::Restore(_) => continue,
            Left::Mended(path) => {
                let kept = files::put_in_place(&path)?;
                (path, format!("it was put into its place; the damaged one is {}", kept.display()))
            }
            Left::Draft(path) => {
                fs::remove_file(&path)?;
                (path, "it is removed".to_owned())
            }
        };
        report.add(Mended {
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
