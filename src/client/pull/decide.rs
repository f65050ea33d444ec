//! What is done with one item of the workspace.

use super::place::Local;
use super::state::Kept;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Both sides have the same.
    Unchanged,
    /// It is written.
    Write,
    /// It was edited here, and the workspace has nothing new: it stays.
    KeepEdited,
    /// It was edited here, and the workspace has something else: it stays, and is told.
    Conflict,
}

/// `kept` is what an earlier pull wrote at this path, `remote` the hash of what the workspace has. With `overwrite`, what
/// stands here gives way.
pub(super) fn decide(local: &Local, kept: Option<&Kept>, remote: &str, overwrite: bool) -> Action {
    let here = match local {
        Local::Missing => return Action::Write,
        // A link or a folder never gives way.
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
        let kept = |remote: &str| Kept { key: "k".into(), remote: remote.into(), local: "old".into() };
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
            // The service hashes something else than the bytes that were written.
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
