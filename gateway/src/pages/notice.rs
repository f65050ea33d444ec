//! Flash messages after a form, carried by a cookie of half a minute: a code, and ids for Undo, never texts.

mod changed;

use cairn_proto::domain::TrashKind;
use http::{HeaderMap, HeaderValue};
use uuid::Uuid;

pub(crate) use self::changed::{Change, Changed};
use crate::auth::cookie_value;

const COOKIE: &str = "cairn_notice";
const SECONDS: u32 = 30;
/// A cookie holds 4 KiB, which fits this many ids. The rest can be restored from Trash.
const MAX_ITEMS: usize = 90;

/// The outcome of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Notice {
    Saved,
    /// Saved despite a syntax error.
    SavedOdd,
    Created,
    Deleted,
    Restored,
    Undone,
    UndoneInPart,
    Renamed,
    SwitchedOff,
    SwitchedOn,
    Ended,
    Removed,
    MemberRemoved,
    Withdrawn,
    Joined,
    Declined,
    PasswordChanged,
    SessionEnded,
    LookChanged,
    RoleChanged,
    WorkspaceDeleted,
    RunQueued,
    Retried,
    Paused,
    Resumed,
    Disconnected,
    Connected,
    CredentialsReplaced,
    Uploaded,
    Started,
    Cancelled,
    RollingBack,
    RunDeleted,
    RecordsImported,
    /// Items that were moved to trash.
    Trashed(Vec<(TrashKind, Uuid)>),
    /// A bulk change.
    Changed(Changed),
}

/// The notices without ids: their codes and sentences.
const PLAIN: [(Notice, &str, &str); 34] = [
    (Notice::Saved, "saved", "Saved."),
    (Notice::SavedOdd, "odd", "Saved. Something in it is no valid YAML: the page of the file says what."),
    (Notice::Created, "created", "Created."),
    (Notice::Deleted, "deleted", "Deleted for good."),
    (Notice::Restored, "restored", "Restored."),
    (Notice::Undone, "undone", "Undone. The activity says what was done for that."),
    (Notice::UndoneInPart, "part", "Undone in part. What is left stands here."),
    (Notice::Renamed, "renamed", "Renamed."),
    (Notice::SwitchedOff, "off", "Switched off. It opens nothing from now on."),
    (Notice::SwitchedOn, "on", "Switched on."),
    (Notice::Ended, "ended", "Ended. The app opens nothing from now on."),
    (Notice::Removed, "removed", "Removed from the workspace."),
    (Notice::MemberRemoved, "member", "Taken out of the memory. What it referred to stays."),
    (Notice::Withdrawn, "withdrawn", "Withdrawn. The link opens nothing from now on."),
    (Notice::Joined, "joined", "You are a member now."),
    (Notice::Declined, "declined", "Declined."),
    (Notice::PasswordChanged, "password", "The password is changed. Every other session has ended."),
    (Notice::SessionEnded, "session", "That session has ended."),
    (Notice::LookChanged, "look", "Changed for this browser."),
    (Notice::RoleChanged, "role", "The role is changed."),
    (
        Notice::WorkspaceDeleted,
        "workspace",
        "The workspace is deleted. You can restore it below for a while.",
    ),
    (Notice::RunQueued, "queued", "A run is queued."),
    (Notice::Retried, "retried", "It is tried again. What becomes of it stands here in a moment."),
    (Notice::Paused, "paused", "Paused. What is kept stays searchable."),
    (Notice::Resumed, "resumed", "Resumed. A run is queued."),
    (Notice::Disconnected, "disconnected", "Disconnected. Its documents are out of search."),
    (Notice::Connected, "connected", "Connected."),
    (Notice::CredentialsReplaced, "credentials", "Replaced. A run tries them."),
    (Notice::Uploaded, "uploaded", "Uploaded. Nothing is written until you start it."),
    (Notice::Started, "started", "Started."),
    (Notice::Cancelled, "cancelled", "Cancelled. What was written so far stays."),
    (Notice::RollingBack, "back", "It is being rolled back."),
    (Notice::RunDeleted, "run", "The run is deleted. What it wrote stays."),
    (Notice::RecordsImported, "records", "Every row of the table is a record now."),
];
const TRASHED: &str = "trashed";
const CHANGED: &str = "changed";

impl Notice {
    /// The notice of the request's cookie; a forged cookie can only select one of these sentences.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let (code, items) = {
            let text = cookie_value(headers, COOKIE)?;
            text.split_once('.').unwrap_or((text, ""))
        };
        if code == CHANGED {
            return items.parse().ok().map(Self::Changed);
        }
        if code != TRASHED {
            return PLAIN.into_iter().find(|(_, of, _)| *of == code).map(|(notice, ..)| notice);
        }
        let items: Option<Vec<_>> = items.split('.').take(MAX_ITEMS).map(item).collect();
        items.map(Self::Trashed)
    }

    /// The sentence of the toast.
    pub(crate) fn sentence(&self) -> String {
        if let Self::Changed(changed) = self {
            return changed.sentence();
        }
        let Self::Trashed(items) = self else {
            return self.row().map(|(_, _, sentence)| sentence).unwrap_or_default().to_owned();
        };
        match items.len() {
            0 | 1 => "Moved to trash.".to_owned(),
            many => format!("{many} items moved to trash."),
        }
    }

    /// The cookie that carries it to the next page.
    pub(crate) fn cookie(&self) -> Option<HeaderValue> {
        if let Self::Changed(changed) = self {
            return written(&format!("{CHANGED}.{changed}"), SECONDS);
        }
        let Self::Trashed(items) = self else {
            return written(self.row().map(|(_, code, _)| code).unwrap_or_default(), SECONDS);
        };
        let ids = items.iter().take(MAX_ITEMS).map(|(kind, id)| format!(".{}{}", letter(*kind), id.simple()));
        written(&format!("{TRASHED}{}", ids.collect::<String>()), SECONDS)
    }

    /// The cookie that removes it: a notice is shown once.
    pub(crate) fn no_cookie() -> Option<HeaderValue> {
        written("", 0)
    }

    fn row(&self) -> Option<(Self, &'static str, &'static str)> {
        PLAIN.into_iter().find(|(of, ..)| of == self)
    }
}

fn written(text: &str, seconds: u32) -> Option<HeaderValue> {
    let cookie = format!("{COOKIE}={text}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax");
    HeaderValue::from_str(&cookie).ok()
}

const fn letter(kind: TrashKind) -> char {
    match kind {
        TrashKind::File => 'f',
        TrashKind::Folder => 'd',
        TrashKind::Database => 't',
        TrashKind::Record => 'r',
        TrashKind::Memory => 'm',
    }
}

fn item(text: &str) -> Option<(TrashKind, Uuid)> {
    let mut letters = text.chars();
    let first = letters.next()?;
    let kind = TrashKind::ALL.into_iter().find(|kind| letter(*kind) == first)?;
    Some((kind, Uuid::try_parse(letters.as_str()).ok()?))
}

#[cfg(test)]
mod tests {
    use http::header;

    use super::*;

    fn read(cookie: &str) -> Option<Notice> {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, cookie.parse().unwrap());
        Notice::of(&headers)
    }

    #[test]
    fn a_notice_comes_back_from_its_cookie() {
        let ids: Vec<_> =
            TrashKind::ALL.into_iter().zip(1_u128..).map(|(kind, id)| (kind, Uuid::from_u128(id))).collect();
        let changed = Changed::read(Change::Moved, 3, "1800000000000000.7").unwrap();
        let with_ids = [Notice::Trashed(ids), Notice::Changed(changed)];
        let all = PLAIN.into_iter().map(|(notice, ..)| notice).chain(with_ids);
        for notice in all {
            let cookie = notice.cookie().unwrap();
            let text = cookie.to_str().unwrap();
            assert!(text.contains("; HttpOnly; SameSite=Lax"), "{text}");
            assert_eq!(read(text.split(';').next().unwrap()), Some(notice.clone()), "{text}");
            assert!(notice.sentence().ends_with('.'), "{notice:?}");
        }
    }

    #[test]
    fn many_items_fit_and_nonsense_is_no_notice() {
        let many = Notice::Trashed(vec![(TrashKind::File, Uuid::from_u128(7)); 1000]);
        assert!(many.cookie().unwrap().len() < 4096);
        for nonsense in
            ["", "nothing", "saved.x.y", "trashed", "trashed.x", "trashed.f", "trashed.f1", "x.f", "changed"]
        {
            let found = read(&format!("cairn_notice={nonsense}"));
            assert!(matches!(found, None | Some(Notice::Saved)), "{nonsense}: {found:?}");
        }
    }
}
