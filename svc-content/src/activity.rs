//! The rules of the activity log (console.md, M3): who did what, the newest first. Writes insert entries in their own
//! transactions: see [`Change::note`](crate::change::Change::note).

mod plan;
mod undo;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Kind;
use cairn_chassis::jobs::Lease;
use cairn_chassis::paging::Sizes;
use cairn_proto::ids::FolderId;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::checks::Checks;
use crate::context::Context;
use crate::model::{ACTIVITY_RETENTION, ActivityEntry, ActivityId, Author};
use crate::scope::Caller;
use crate::{folders, store};

pub(crate) use self::plan::{Action, LeftAlone, Step};
pub(crate) use self::undo::{Selection, Undos};

/// The page sizes.
const SIZES: Sizes = Sizes { default: 50, most: 200 };
/// The batch size of a list with filters.
const READ_BATCH: usize = 500;
/// The maximum number of entries examined for a page: entries that the filters reject cost a read, too.
const MAX_EXAMINED: usize = 5_000;
/// The maximum number of listed principals; more are rare.
const MAX_ACTORS: i64 = 200;
const LEASE: &str = "activity-retention";
/// Longer than one step takes.
const TERM: Duration = Duration::from_secs(5 * 60);
const PERIOD: Duration = Duration::from_secs(60 * 60);
const DELETE_BATCH: i64 = 500;
const WORKSPACE_BATCH: i64 = 100;

/// The filters of a list; absent ones match everything.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActivityRequest {
    /// 0 for the default.
    pub(crate) page_size: u32,
    /// Empty for the first page.
    pub(crate) page_token: String,
    pub(crate) principal_id: Option<String>,
    pub(crate) kind: Option<Kind>,
    /// Including everything below it.
    pub(crate) folder_id: Option<String>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
}

/// A page of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActivityPage {
    pub(crate) entries: Vec<ActivityEntry>,
    /// Empty after the last page.
    pub(crate) next: String,
}

/// The parsed filters.
struct Filters {
    kind: Option<Kind>,
    folders: Option<HashSet<FolderId>>,
    since: Option<Timestamp>,
}

impl Filters {
    const fn leaves_out(&self) -> bool {
        self.kind.is_some() || self.folders.is_some()
    }

    fn matches(&self, entry: &ActivityEntry) -> bool {
        let is_of_kind = self.kind.is_none_or(|kind| entry.what.kind == kind);
        let is_inside = |folders: &HashSet<FolderId>| {
            entry.what.folder_id.is_some_and(|folder| folders.contains(&folder))
                || entry.what.item_id.parse().is_ok_and(|item: FolderId| folders.contains(&item))
        };
        is_of_kind && self.folders.as_ref().is_none_or(is_inside)
    }

    fn is_too_old(&self, entry: &ActivityEntry) -> bool {
        self.since.is_some_and(|since| entry.id.at < since)
    }
}

/// The rules of the activity log on a store.
#[derive(Debug, Clone)]
pub(crate) struct Activities {
    context: Context,
}

impl Activities {
    pub(crate) const fn new(context: Context) -> Self {
        Self { context }
    }

    /// Entries, the newest first.
    pub(crate) async fn list(&self, caller: &Caller, asked: ActivityRequest) -> Result<ActivityPage, Error> {
        require_whole(caller)?;
        let mut before = start(&asked)?;
        let size =
            if asked.page_size == 0 { SIZES.default } else { asked.page_size.min(SIZES.most) } as usize;
        let folders = match &asked.folder_id {
            None => None,
            Some(text) => Some(self.below(caller, text).await?),
        };
        let filters = Filters { kind: asked.kind, folders, since: asked.since };
        let principal = asked.principal_id.as_deref();
        if principal.is_some_and(|id| id.contains('\0')) {
            // No principal has NUL in its id, and PostgreSQL rejects it.
            return Ok(ActivityPage { entries: Vec::new(), next: String::new() });
        }
        let at_once = if filters.leaves_out() { READ_BATCH } else { size + 1 };
        let limit = i64::try_from(at_once).unwrap_or(i64::MAX);
        let (db, workspace) = (&self.context.db, caller.workspace);
        let _permit = db.read_permit(workspace).await?;
        let (mut entries, mut examined): (Vec<ActivityEntry>, usize) = (Vec::new(), 0);
        loop {
            let found = store::activity::list(db, workspace, principal, before, limit).await?;
            let is_last = found.len() < at_once;
            examined += found.len();
            for entry in found {
                if filters.is_too_old(&entry) {
                    return Ok(ActivityPage { entries, next: String::new() });
                }
                before = entry.id;
                if !filters.matches(&entry) {
                    continue;
                }
                if entries.len() == size {
                    let next = entries.last().map(|last| last.id.to_string()).unwrap_or_default();
                    return Ok(ActivityPage { entries, next });
                }
                entries.push(entry);
            }
            if is_last {
                return Ok(ActivityPage { entries, next: String::new() });
            }
            if examined >= MAX_EXAMINED {
                return Ok(ActivityPage { entries, next: before.to_string() });
            }
        }
    }

    /// The principals with entries, by id.
    pub(crate) async fn actors(&self, caller: &Caller) -> Result<Vec<Author>, Error> {
        require_whole(caller)?;
        let db = &self.context.db;
        let _permit = db.read_permit(caller.workspace).await?;
        Ok(store::activity::actors(db, caller.workspace, MAX_ACTORS).await?)
    }

    async fn below(&self, caller: &Caller, text: &str) -> Result<HashSet<FolderId>, Error> {
        let db = &self.context.db;
        let folder = folders::readable(db, caller, "folderId", text).await?;
        Ok(store::folders::ids_below(db.engine(), caller.workspace, &[folder]).await?.into_iter().collect())
    }

    /// Deletes a batch of expired entries; returns how many.
    pub(crate) async fn sweep(&self, lease: &Lease) -> Result<u64, Error> {
        let kept = i64::try_from(ACTIVITY_RETENTION.as_micros()).unwrap_or(i64::MAX);
        let limit = Timestamp::from_micros(self.context.clock.now().as_micros().saturating_sub(kept));
        let (db, mut after, mut forgotten) = (&self.context.db, String::new(), 0);
        loop {
            let some = store::activity::workspaces(db, &after, WORKSPACE_BATCH).await?;
            let Some(last) = some.last() else {
                lease.release().await?;
                return Ok(forgotten);
            };
            after = last.to_string();
            for workspace in some {
                loop {
                    if !lease.claim().await? {
                        return Ok(forgotten);
                    }
                    let now = store::activity::delete_before(db, workspace, limit, DELETE_BATCH).await?;
                    forgotten += now;
                    if now == 0 {
                        break;
                    }
                }
            }
        }
    }
}

/// Deletes expired entries at the start and every hour, until the shutdown.
pub(crate) async fn run_retention(context: &Context, shutdown: &CancellationToken) {
    let activities = Activities::new(context.clone());
    let lease = Lease::new(context.db.clone(), Arc::clone(&context.clock), &context.ids, LEASE, TERM);
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !shutdown.is_cancelled() {
        ticks.tick().await;
        match activities.sweep(&lease).await {
            Ok(0) => {}
            Ok(entries) => tracing::info!(entries, "forgot activity that is too old"),
            Err(error) => tracing::warn!(%error, "old activity is kept; the next try is in an hour"),
        }
    }
}

/// The position after which the page starts.
fn start(asked: &ActivityRequest) -> Result<ActivityId, Error> {
    let mut checks = Checks::default();
    let until = ActivityId::before(asked.until.unwrap_or(Timestamp::from_micros(i64::MAX)));
    let token = match asked.page_token.as_str() {
        "" => None,
        text => match text.parse::<ActivityId>() {
            Ok(id) => Some(id),
            Err(_) => {
                checks.violation("pageToken", "invalid", "send the token of the previous page as it came");
                None
            }
        },
    };
    checks.finish()?;
    Ok(token.map_or(until, |token| token.min(until)))
}

/// The former containers may be removed, so it is unknown whether a folder scope covered the entries.
pub(crate) fn require_whole(caller: &Caller) -> Result<(), Error> {
    match caller.listed() {
        None => Ok(()),
        Some(_) => Err(Error::OutOfScope("the list of activity needs a workspace-wide token".into())),
    }
}
