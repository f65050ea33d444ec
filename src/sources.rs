//! `cairn sources`: connected sources, for the operator of the deployment.

use std::io::Write as _;
use std::sync::Arc;

use anyhow::bail;
use cairn_chassis::clock::{Clock as _, SystemClock};
use cairn_chassis::outbound::Guard;
use cairn_ingest::{SourceSummary, SyncRequested};
use cairn_providers::Reach;

use crate::cli::{CheckSourceOptions, Role, SourcesCommand, StoredOptions, SyncSourceOptions};
use crate::{secret_keys, storages};

const NO_SOURCE: &str = "there is no such source here; `cairn sources list` shows those that there are";

/// Runs a command about sources.
pub(crate) async fn run(command: SourcesCommand) -> anyhow::Result<()> {
    match command {
        SourcesCommand::List(options) => list(&options).await,
        SourcesCommand::Check(options) => check(&options).await,
        SourcesCommand::Sync(options) => sync(&options).await,
    }
}

async fn list(options: &StoredOptions) -> anyhow::Result<()> {
    let mut is_anything_here = false;
    for storage in storages::of(Role::Ingest, &options.data, options.database.as_deref())? {
        let Some(sources) = cairn_ingest::sources(&storage, SystemClock.now()).await? else { continue };
        is_anything_here = true;
        for source in sources {
            say(&shown(&source))?;
        }
    }
    if is_anything_here { Ok(()) } else { bail!(storages::NONE_HERE) }
}

fn shown(source: &SourceSummary) -> String {
    let synced = source.last_synced_at.map_or_else(|| "never".to_owned(), |at| at.to_rfc3339());
    let error = source.error.as_ref().map(|error| format!("  ({error})")).unwrap_or_default();
    format!(
        "{}  {}  {:12}  {:17}  {:8}  {synced}  {}{error}",
        source.workspace, source.id, source.provider, source.status, source.documents, source.name
    )
}

async fn sync(options: &SyncSourceOptions) -> anyhow::Result<()> {
    for storage in storages::of(Role::Ingest, &options.stored.data, options.stored.database.as_deref())? {
        let now = SystemClock.now();
        match cairn_ingest::sync_source(&storage, options.source, options.full, now).await? {
            SyncRequested::Absent => {}
            SyncRequested::Live => {
                bail!("this source is live: its provider is asked each time, and nothing of it is kept")
            }
            SyncRequested::Due => {
                return say(
                    "The source will be read: at once by a running Cairn, else after its next start, unless it is paused \
                     or needs credentials.\n`cairn sources list` shows how it stands.",
                );
            }
        }
    }
    bail!(NO_SOURCE)
}

async fn check(options: &CheckSourceOptions) -> anyhow::Result<()> {
    let data = &options.stored.data;
    let ring = secret_keys::find(&options.secret_key, data)?;
    let guard = Guard::new(&options.outbound.outbound_allow)?;
    let reach = Reach::new(guard, &options.sources.source_roots);
    for storage in storages::of(Role::Ingest, data, options.stored.database.as_deref())? {
        let (ring, clock) = (ring.as_ref(), Arc::new(SystemClock));
        match cairn_ingest::check_source(&storage, options.source, &reach, ring, clock).await? {
            None => {}
            Some(Ok(message)) => return say(&format!("OK: {message}")),
            Some(Err(message)) => bail!(message),
        }
    }
    bail!(NO_SOURCE)
}

fn say(text: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout().lock(), "{text}")?)
}
