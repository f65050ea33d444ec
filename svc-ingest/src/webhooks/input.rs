//! What people say of a webhook, read and checked: everything that is wrong is said at once.

use cairn_chassis::outbound::Guard;
use cairn_chassis::status::Violation;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::domain::{ChangeKind, limits};
use cairn_proto::ids::FolderId;

use crate::Error;
use crate::checks::Checks;

const MAX_URL_BYTES: usize = 2_000;
/// How many a workspace may have.
pub(crate) const MAX_WEBHOOKS: u64 = 20;

/// What a webhook is to be, as it comes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Draft {
    pub(crate) name: String,
    pub(crate) url: String,
    /// `None` stands for a kind that is unknown.
    pub(crate) kinds: Vec<Option<ChangeKind>>,
    pub(crate) folders: Vec<String>,
    pub(crate) enabled: bool,
}

/// What is to be changed of one; what is absent stays.
#[derive(Debug, Clone, Default)]
pub(crate) struct Patch {
    pub(crate) name: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) kinds: Option<Vec<Option<ChangeKind>>>,
    /// A webhook keeps its folders; saying them again changes nothing.
    pub(crate) folders: Option<Vec<String>>,
    pub(crate) enabled: Option<bool>,
    /// What is to be said of fields that cannot be changed.
    pub(crate) unknown_fields: Vec<String>,
}

/// A draft that holds.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) name: String,
    pub(crate) url: String,
    pub(crate) kinds: Vec<ChangeKind>,
    pub(crate) folders: Vec<FolderId>,
    pub(crate) enabled: bool,
}

/// Reads a draft.
pub(crate) fn check(draft: Draft, guard: &Guard) -> Result<Checked, Error> {
    let mut checks = Checks::default();
    checks.line("name", &draft.name, limits::LABEL_CHARS);
    url(&mut checks, &draft.url, guard);
    let kinds = kinds(&mut checks, &draft.kinds);
    let folders = folders(&mut checks, &draft.folders);
    checks.finish()?;
    Ok(Checked { name: draft.name, url: draft.url, kinds, folders, enabled: draft.enabled })
}

/// An address that we go to; where its name leads, the guard looks at each time.
pub(crate) fn url(checks: &mut Checks, url: &str, guard: &Guard) {
    if url.is_empty() {
        return checks.violation("url", "required", wording::EMPTY);
    }
    if url.len() > MAX_URL_BYTES {
        return checks.violation("url", "too_long", wording::at_most(MAX_URL_BYTES, Unit::Bytes));
    }
    if let Err(refused) = guard.check(url) {
        checks.violation("url", "invalid_address", refused.to_string());
    }
}

/// Each kind once, in one order.
pub(crate) fn kinds(checks: &mut Checks, given: &[Option<ChangeKind>]) -> Vec<ChangeKind> {
    if given.iter().any(Option::is_none) {
        checks.violation("kinds", "invalid_value", wording::one_of(&ChangeKind::NAMES));
    }
    let mut kinds: Vec<ChangeKind> = given.iter().copied().flatten().collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

fn folders(checks: &mut Checks, given: &[String]) -> Vec<FolderId> {
    if given.len() > limits::SCOPE_FOLDERS {
        checks.violation("folderIds", "too_many", wording::at_most(limits::SCOPE_FOLDERS, Unit::Folders));
    }
    let mut folders: Vec<FolderId> = Vec::new();
    for (place, text) in given.iter().enumerate() {
        match text.parse::<FolderId>() {
            Ok(folder) if folders.contains(&folder) => {}
            Ok(folder) => folders.push(folder),
            Err(_) => checks.violation(&format!("folderIds[{place}]"), "invalid", wording::ID),
        }
    }
    folders
}

/// What is said when a workspace has as many as it may.
pub(crate) fn too_many() -> Error {
    let most = usize::try_from(MAX_WEBHOOKS).unwrap_or(usize::MAX);
    let message = format!("a workspace has {}: delete one first", wording::at_most(most, Unit::Webhooks));
    Error::LimitExceeded(vec![Violation::new("webhooks", "limit_exceeded", message)])
}
