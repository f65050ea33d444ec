//! Decides what to do with an item of the workspace.

use super::place::Local;
use super::state::PulledFile;

/// What to do with an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Local and remote are equal.
    Unchanged,
    /// Write the remote version.
    Write,
    /// Edited locally, and unchanged in the workspace: it stays.
    KeepEdited,
    /// Edited on both sides: it stays, and is reported.
    Conflict,
}

/// `kept` is what an earlier pull wrote at this path, `remote` the hash in the workspace. `overwrite` discards local
/// edits.
pub(super) fn decide(local: &Local, kept: Option<&PulledFile>, remote: &str, overwrite: bool) -> Action {
    let here = match local {
        Local::Missing => return Action::Write,
        // A link or a folder is never replaced.
        Local::Blocked => return Action::Conflict,
        Local::File(hash) => hash,
    };
    if here == remote {
        return Action::Unchanged;
    }
    let Some(kept) = kept else {
        return if overwrite { Action::Write } else { Action::Conflict };
    };
    let (is_edited, is_news) = (*here != kept.local, remote != kept.remote);
    match (is_edited, is_news) {
        (false, false) => Action::Unchanged,
        (false, true) => Action::Write,
        (true, _) if overwrite => Action::Write,
        (true, false) => Action::KeepEdited,
        (true, true) => Action::Conflict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_edited_here_is_never_overwritten_unasked() {
        let file = |hash: &str| Local::File(hash.to_owned());
        let kept = |remote: &str| PulledFile { key: "k".into(), remote: remote.into(), local: "old".into() };
        let cases = [
            (Local::Missing, None, "new", Action::Write),
            (Local::Missing, Some(kept("old")), "old", Action::Write),
            (Local::Blocked, Some(kept("old")), "new", Action::Conflict),
            (file("new"), None, "new", Action::Unchanged),
            (file("mine"), None, "new", Action::Conflict),
            (file("old"), Some(kept("old")), "old", Action::Unchanged),
            (file("old"), Some(kept("old")), "new", Action::Write),
            (file("mine"), Some(kept("old")), "old", Action::KeepEdited),
            (file("mine"), Some(kept("old")), "new", Action::Conflict),
            (file("new"), Some(kept("old")), "new", Action::Unchanged),
            // The service's hash may cover something other than the bytes that were written.
            (file("old"), Some(kept("tag")), "tag", Action::Unchanged),
        ];
        for (local, kept, remote, expected) in cases {
            assert_eq!(decide(&local, kept.as_ref(), remote, false), expected, "{local:?} {kept:?} {remote}");
            let overwritten = decide(&local, kept.as_ref(), remote, true);
            let gives_way =
                matches!(expected, Action::KeepEdited | Action::Conflict) && local != Local::Blocked;
            assert_eq!(overwritten, if gives_way { Action::Write } else { expected });
        }
    }
}
