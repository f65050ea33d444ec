//! The rules for connected sources (spec 2.4, 4.4; contract, "Connected sources").

mod check;
mod documents;
mod input;
mod retry;
mod runs;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Op;
use cairn_proto::domain::SourceMode;
use cairn_proto::ids::{SourceId, WorkspaceId};

pub(crate) use self::documents::{DocumentDetails, Fetched, StatusCounts};
pub(crate) use self::input::{Draft, Patch, Secret, shown_every};
use crate::checks::Checks;
use crate::live::Live;
use crate::model::{Run, Source, SourceDetails, Spending};
use crate::runs::{Runner, next, removal, segment};
use crate::scope::Caller;
use crate::usage::Accounts;
use crate::work::Work;
use crate::{Error, credentials, store};

/// Names the resource in scope errors: folder-scoped tokens cannot use it.
const SOURCES: &str = "connected sources";
/// The folder of ingested documents, a sibling of the sources' folders.
const INGESTED: &str = "ingested";

/// The rules, on top of a storage.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    runner: Runner,
    live: Live,
}

impl Sources {
    pub(crate) const fn new(runner: Runner, live: Live) -> Self {
        Self { runner, live }
    }

    /// The sources of the caller's workspace with their status, sorted by name.
    pub(crate) async fn list(&self, caller: &Caller) -> Result<Vec<SourceDetails>, Error> {
        caller.require_whole_workspace(SOURCES)?;
        let (db, workspace) = (self.db(), caller.workspace);
        let sources = store::sources::list(db, workspace).await?;
        if sources.is_empty() {
            return Ok(Vec::new());
        }
        self.learn_plan(caller).await?;
        let mut runs: Vec<Run> = store::source_runs::lasts(db, workspace).await?;
        let day = next::day(self.now());
        let used = store::provider_operations::used_of_all(db, workspace, day, Spending::Live).await?;
        let shown = sources.into_iter().map(|source| {
            let run =
                runs.iter().position(|run| run.source == source.id).map(|place| runs.swap_remove(place));
            let used_today = used.iter().find(|(id, _)| *id == source.id).map_or(0, |(_, used)| *used);
            SourceDetails { source, used_today, run }
        });
        Ok(shown.collect())
    }

    /// A source.
    pub(crate) async fn get(&self, caller: &Caller, id: &str) -> Result<SourceDetails, Error> {
        let source = self.find(caller, id).await?;
        self.show(source).await
    }

    /// Connects a source, and queues its first run.
    pub(crate) async fn connect(&self, caller: &Caller, draft: Draft) -> Result<SourceDetails, Error> {
        caller.require_whole_workspace(SOURCES)?;
        let checked = input::check(draft, self.runner.connect.as_ref(), true)?;
        self.learn_plan(caller).await?;
        let (id, now) = (self.runner.context.ids.next(), self.now());
        let ring = self.runner.keyring.as_deref();
        let entropy = self.runner.entropy.as_ref();
        let sealed = checked.credentials.as_ref().map(|given| credentials::seal(ring, id, given, entropy));
        let sealed = sealed.transpose()?;
        let mut source = Source {
            workspace: caller.workspace,
            id,
            folder: String::new(),
            name: checked.name,
            provider: checked.kind,
            mode: checked.mode,
            settings: checked.settings,
            credential_hint: checked.credentials.as_ref().and_then(credentials::hint),
            account: None,
            every: checked.every,
            daily_budget: checked.daily_budget,
            paused: checked.paused,
            needs_credentials: false,
            error: None,
            position: None,
            not_before: None,
            failures: 0,
            next_run_at: None,
            full_next: true,
            listed_at: None,
            last_synced_at: None,
            documents: 0,
            created_at: now,
            updated_at: now,
        };
        let mut work = Work::without_limits(&self.runner.context, caller.workspace).await?;
        lock_names(&mut work).await?;
        if store::sources::count(work.tx(), caller.workspace).await? >= input::MAX_SOURCES {
            return Err(input::too_many());
        }
        source.folder = free_folder(&mut work, &source).await?;
        if source.mode.has_runs() && !source.paused {
            source.next_run_at = Some(now);
        }
        store::sources::insert(work.tx(), &source, sealed.as_ref()).await?;
        work.commit().await?;
        if source.next_run_at.is_some() {
            self.runner.queue_now(&source, true).await?;
        }
        self.runner.wake();
        self.show(self.reload(&source).await?).await
    }

    /// Applies a patch.
    pub(crate) async fn update(
        &self,
        caller: &Caller,
        id: &str,
        patch: Patch,
    ) -> Result<SourceDetails, Error> {
        let before = self.find(caller, id).await?;
        let change = self.checked(&before, patch).await?;
        self.learn_plan(caller).await?;
        let mut work = Work::without_limits(&self.runner.context, caller.workspace).await?;
        lock_names(&mut work).await?;
        let held = store::sources::get_for_update(work.tx(), caller.workspace, before.id).await?;
        let mut source = held.ok_or_else(|| Error::NoSource(id.to_owned()))?;
        let renamed = change.name.as_ref().is_some_and(|name| *name != source.name);
        source.name = change.name.unwrap_or(source.name);
        if renamed {
            source.folder = free_folder(&mut work, &source).await?;
        }
        let goes_on = source.paused && change.paused == Some(false);
        let stops = !source.paused && change.paused == Some(true);
        source.paused = change.paused.unwrap_or(source.paused);
        source.every = change.every.unwrap_or(source.every);
        source.daily_budget = change.daily_budget.unwrap_or(source.daily_budget);
        source.updated_at = work.now();
        let is_other = change.settings.as_ref().is_some_and(|settings| *settings != source.settings);
        let old_mode = source.mode;
        source.mode = change.mode.unwrap_or(old_mode);
        if let Some(settings) = change.settings {
            source.settings = settings;
        }
        if let Some((sealed, hint)) = change.credentials {
            source.credential_hint = hint;
            source.needs_credentials = false;
            source.account = None;
            source.error = None;
            // The rate limit applied to the old credentials.
            source.not_before = None;
            store::sources::set_credentials(work.tx(), &source, sealed.as_ref()).await?;
        }
        let is_new = is_other || source.mode != old_mode;
        if is_new {
            // The position belongs to the previous settings.
            source.position = None;
            source.full_next = true;
            source.error = None;
        }
        let runs = source.mode.has_runs() && !source.paused && !source.needs_credentials;
        let now = source.updated_at;
        let wants_run = runs && (is_new || goes_on || change.is_reconnected);
        if is_new || wants_run {
            // The current run uses the previous settings; the queued one continues where it stopped.
            store::source_runs::end_open(work.tx(), source.workspace, source.id, now).await?;
        } else if stops {
            self.cancel_open(&mut work, &source).await?;
        }
        source.next_run_at = match (runs, wants_run) {
            (false, _) => None,
            (true, true) => Some(now),
            (true, false) if change.every.is_some() => {
                Some(self.runner.next_at(&source, source.last_synced_at.unwrap_or(now)).max(now))
            }
            (true, false) => source.next_run_at,
        };
        store::sources::change(work.tx(), &source).await?;
        if old_mode == SourceMode::Indexed && source.mode == SourceMode::Catalog {
            let hashes =
                store::source_documents::remove_texts(work.tx(), source.workspace, source.id, now).await?;
            work.sweep_texts(&hashes).await?;
        }
        if renamed || (source.mode != old_mode && source.mode == SourceMode::Catalog) {
            removal::publish_all(&mut work, source.id, Op::Upsert).await?;
        }
        work.commit().await?;
        self.live.invalidate(source.id);
        if wants_run {
            self.runner.queue_now(&source, is_new).await?;
        }
        self.runner.wake();
        self.show(self.reload(&source).await?).await
    }

    /// Disconnects a source: ends its run and hides its documents at once; a background task removes them. Returns the feed position.
    pub(crate) async fn disconnect(&self, caller: &Caller, id: &str) -> Result<u64, Error> {
        let source = self.find(caller, id).await?;
        let mut work = Work::without_limits(&self.runner.context, caller.workspace).await?;
        let held = store::sources::get_for_update(work.tx(), source.workspace, source.id).await?;
        held.ok_or_else(|| Error::NoSource(id.to_owned()))?;
        let now = work.now();
        store::source_runs::end_open(work.tx(), source.workspace, source.id, now).await?;
        store::sources::disconnect(work.tx(), source.workspace, source.id, now).await?;
        let position = work.commit().await?.last;
        self.live.invalidate(source.id);
        self.runner.wake();
        Ok(position)
    }

    /// Stores the plan for runs, which have no caller.
    async fn learn_plan(&self, caller: &Caller) -> Result<(), Error> {
        Accounts::new(self.runner.context.clone()).learn_plan(caller).await
    }

    async fn find(&self, caller: &Caller, id: &str) -> Result<Source, Error> {
        caller.require_whole_workspace(SOURCES)?;
        let id: SourceId = parse_id(id)?;
        let found = store::sources::get(self.db(), caller.workspace, id).await?;
        found.ok_or_else(|| Error::NoSource(id.to_string()))
    }

    async fn reload(&self, source: &Source) -> Result<Source, Error> {
        let found = store::sources::get(self.db(), source.workspace, source.id).await?;
        found.ok_or_else(|| Error::NoSource(source.id.to_string()))
    }

    async fn show(&self, source: Source) -> Result<SourceDetails, Error> {
        let run = store::source_runs::last(self.db(), source.workspace, source.id).await?;
        let used_today = self.used_today(&source).await?;
        Ok(SourceDetails { source, used_today, run })
    }

    async fn used_today(&self, source: &Source) -> Result<u32, Error> {
        let day = next::day(self.now());
        let used =
            store::provider_operations::used(self.db(), source.workspace, source.id, day, Spending::Live);
        Ok(used.await?)
    }

    async fn cancel_open(&self, work: &mut Work, source: &Source) -> Result<(), Error> {
        let now = work.now();
        let open = store::source_runs::open(work.tx(), source.workspace, source.id).await?;
        if let Some(run) = open {
            store::source_runs::cancel(work.tx(), &run, now).await?;
        }
        Ok(())
    }

    /// Validates a patch against the current source.
    async fn checked(&self, source: &Source, patch: Patch) -> Result<Change, Error> {
        let mut checks = Checks::default();
        for unknown in &patch.unknown_fields {
            checks.violation("updateMask", "invalid", unknown.as_str());
        }
        if let Some(name) = &patch.name {
            input::name(&mut checks, name);
        }
        if patch.provider.as_deref().is_some_and(|provider| provider != source.provider.as_str()) {
            checks.violation("provider", "immutable", "a source keeps its provider: connect another source");
        }
        let resets_every = patch.every == Some(None);
        let every = patch.every.flatten().and_then(|text| input::every(&mut checks, &text));
        let daily_budget = patch.daily_budget.map(|given| input::budget(&mut checks, given));
        let settings = patch.settings.and_then(|text| input::object(&mut checks, "settings", &text, true));
        let given = patch.credentials.map(|text| input::object(&mut checks, "credentials", &text.0, false));
        let connect = self.runner.connect.as_ref();
        let mode =
            patch.mode.and_then(|mode| mode.or_else(|| connect.modes(source.provider).first().copied()));
        let is_reconnected = settings.is_some() || given.is_some() || mode.is_some();
        if is_reconnected {
            let stored = match &given {
                Some(given) => given.clone(),
                None => self.runner.opened(source).await?,
            };
            let settings = settings.as_ref().unwrap_or(&source.settings);
            let mode = Some(mode.unwrap_or(source.mode));
            input::made(&mut checks, connect.connect(source.provider, settings, stored.as_ref(), mode));
        }
        checks.finish()?;
        let every = match resets_every {
            true => Some(self.runner.provider(source).await?.traits().every),
            false => every,
        };
        let credentials = match given {
            None => None,
            Some(None) => Some((None, None)),
            Some(Some(given)) => {
                let (ring, entropy) = (self.runner.keyring.as_deref(), self.runner.entropy.as_ref());
                let sealed = credentials::seal(ring, source.id, &given, entropy)?;
                Some((Some(sealed), credentials::hint(&given)))
            }
        };
        let is_reconnected = credentials.is_some();
        let (name, paused) = (patch.name, patch.paused);
        Ok(Change { name, mode, settings, credentials, every, daily_budget, paused, is_reconnected })
    }

    fn db(&self) -> &cairn_chassis::sql::Db {
        &self.runner.context.db
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.runner.context.clock.now()
    }
}

/// A validated patch.
struct Change {
    name: Option<String>,
    mode: Option<SourceMode>,
    settings: Option<serde_json::Value>,
    /// Sealed, with their hint; the inner `None` removes them.
    credentials: Option<(Option<crate::model::SealedCredentials>, Option<String>)>,
    every: Option<std::time::Duration>,
    daily_budget: Option<u32>,
    paused: Option<bool>,
    is_reconnected: bool,
}

fn parse_id<T: std::str::FromStr>(text: &str) -> Result<T, Error> {
    let message = "must be the id of a connected source: a UUID";
    text.parse().map_err(|_| Error::invalid("sourceId", "invalid_id", message))
}

/// Serializes the assignment of names in a workspace.
async fn lock_names(work: &mut Work) -> Result<(), Error> {
    let workspace: WorkspaceId = work.workspace();
    Ok(work.tx().lock_name(&format!("ingest-sources-{workspace}")).await?)
}

/// A folder name for a source, made unique in the workspace.
async fn free_folder(work: &mut Work, source: &Source) -> Result<String, Error> {
    let wanted = segment(&source.name);
    let wanted = if wanted.is_empty() { "source".to_owned() } else { wanted };
    let mut folder = wanted.clone();
    let mut number = 1_u64;
    while folder == INGESTED
        || store::sources::is_folder_taken(work.tx(), source.workspace, &folder, source.id).await?
    {
        number += 1;
        folder = format!("{wanted} {number}");
    }
    Ok(folder)
}
