//! Runs scripts over the workspace, shown as a read-only file system (spec 4.5).
//!
//! Everything that is kept between scripts is a cache: trees, built from the owners' changes and brought up to date before every
//! script, and bodies by their hash.

mod bodies;
pub mod citation;
mod cite;
mod error;
mod fast_path;
mod past_workspace;
mod request;
mod run;
mod tree;
mod trigrams;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::call::Call;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::clock::Clock;
pub use cairn_chassis::fair_semaphore::Share;
use cairn_chassis::fair_semaphore::{Busy, FairSemaphore};
use cairn_chassis::identity::{Identity, ServiceIdentitySource};
use cairn_proto::ids::WorkspaceId;
use cairn_proto::retrieval::v1::{ExecuteScriptResponse, ScriptStats};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

pub use self::bodies::Memory;
use self::bodies::{Bodies, Reader};
pub use self::error::Error;
pub use self::past_workspace::{PastFile, PastWorkspace};
pub use self::request::{Moment, Script};
use self::run::{RunWatch, ScriptRun};
pub use self::tree::PastContainer;
use self::tree::{Content, Mounted, Outside, Past, Trees};

/// A script is stopped this long before its caller's deadline, so that the caller gets the output so far.
const MARGIN: Duration = Duration::from_millis(500);

/// Resource limits of scripts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Config {
    /// Limits of the caches.
    pub memory: Memory,
    /// How many run concurrently.
    pub share: Share,
}

/// The positions up to which the feeds of a workspace are indexed; `None` where unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Indexed {
    /// In content's feed.
    pub content: Option<u64>,
    /// In the feed of documents from outside.
    pub outside: Option<u64>,
}

/// Knows how far the search index is.
pub trait IndexPosition: Send + Sync + Debug {
    /// How far that workspace is indexed.
    fn position(&self, workspace: WorkspaceId) -> Indexed;
}

/// Runs scripts; cheap to clone.
#[derive(Debug, Clone)]
pub struct Browser {
    trees: Trees,
    bodies: Bodies,
    running: FairSemaphore,
    indexed: Arc<dyn IndexPosition>,
    clock: Arc<dyn Clock>,
}

impl Browser {
    /// A browser of what `content` and `ingest` own; `identity` is this service's own.
    pub fn new(
        config: Config,
        (content, ingest): (ServiceChannel, ServiceChannel),
        identity: ServiceIdentitySource,
        indexed: Arc<dyn IndexPosition>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let content = Content::new(content, identity.clone());
        let outside = Outside::new(ingest, identity, Arc::clone(&clock));
        let trees = Trees::new(content, outside, usize::try_from(config.memory.trees).unwrap_or(usize::MAX));
        let (bodies, running) = (Bodies::new(config.memory), FairSemaphore::new(config.share));
        Self { trees, bodies, running, indexed, clock }
    }

    /// Runs a script over the identity's workspace, as it is now or was at the script's moment, as far as the identity may see
    /// it.
    ///
    /// # Errors
    /// FORBIDDEN for an identity without a workspace; UNAVAILABLE when too many scripts are queued, or the owner does not answer;
    /// GONE for a moment before the retained history. Errors of the script itself are part of its output.
    pub async fn execute(
        &self,
        identity: &Identity,
        call: &Call,
        script: Script,
    ) -> Result<ExecuteScriptResponse, Error> {
        let workspace = identity.workspace_id()?;
        let permit = self.running.acquire(workspace).await.map_err(|Busy| Error::Busy)?;
        let view = match script.moment {
            None => self.trees.view(identity).await?,
            Some(moment) => self.trees.past(identity, call, moment).await?,
        };
        let cancelled = CancellationToken::new();
        let reader = Reader::new(
            self.bodies.clone(),
            self.trees.holder(&view),
            call.clone(),
            cancelled.clone(),
            Handle::current(),
        );
        // The position of the index does not apply to a past tree.
        let indexed = view.past().map_or_else(|| self.indexed.position(workspace), |_| Indexed::default());
        let mounted = Mounted::new(Arc::clone(&view), reader, indexed, script.link_base.clone());
        let budget = call.remaining().saturating_sub(MARGIN);
        let mut watched = RunWatch::begin(Arc::clone(&self.clock), budget, cancelled);
        if let Some(past) = view.past() {
            watched = watched.at(past.at);
        }
        if let Some(answer) = fast_path::run(&script, &mounted, &watched, answer) {
            return Ok(answer);
        }
        run::run(script, mounted, watched, permit, answer).await
    }

    /// The identity's workspace as it was, as far as the identity may see it now and would have seen it then. It holds a permit of
    /// scripts until it is dropped: its holder must not acquire another one meanwhile, which could deadlock (ADR 30).
    ///
    /// # Errors
    /// FORBIDDEN for an identity without a workspace; UNAVAILABLE when too many are queued, or the owner does not answer; GONE for a
    /// moment before the retained history.
    pub async fn past(
        &self,
        identity: &Identity,
        call: &Call,
        moment: Moment,
    ) -> Result<PastWorkspace, Error> {
        let workspace = identity.workspace_id()?;
        let turn = self.running.acquire(workspace).await.map_err(|Busy| Error::Busy)?;
        let view = self.trees.past(identity, call, moment).await?;
        let holder = self.trees.holder(&view);
        Ok(PastWorkspace::new(view, holder).in_turn(turn))
    }
}

fn answer(mounted: &Mounted, ran: ScriptRun) -> ExecuteScriptResponse {
    let ScriptRun { outcome, elapsed } = ran;
    let cited = cite::cite(mounted, &outcome.reads, |node| mounted.view().document(node));
    ExecuteScriptResponse {
        output: outcome.output,
        citations: cited.citations,
        failed: outcome.failed,
        truncated: outcome.truncated,
        stats: Some(ScriptStats {
            files_opened: outcome.stats.files_opened,
            bytes_read: outcome.stats.bytes_read,
            nodes_visited: outcome.stats.nodes_visited,
            elapsed: prost_types::Duration::try_from(elapsed).ok(),
        }),
        cwd: outcome.cwd,
        uncited: cited.uncited,
        coverage: mounted.view().past().map(Past::notes).unwrap_or_default(),
    }
}
