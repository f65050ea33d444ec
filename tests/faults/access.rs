//! The address of a deployment under test and its credentials.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::Instant;

use crate::support::callers::ApiToken;
use crate::support::http::Http;
use crate::up::Owner;

/// How long after an outage a client may still send requests over a closed connection. It normally notices at once, but
/// late on a busy machine.
const DETECTION_DELAY: Duration = Duration::from_secs(5);

/// An address, and credentials for it.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    pub(crate) base_url: String,
    pub(crate) owner: Owner,
    pub(crate) absences: Rc<Absences>,
    /// A folder that connected sources may read.
    pub(crate) shelf: PathBuf,
}

impl Access {
    pub(crate) fn token(&self) -> ApiToken {
        ApiToken { http: Http::new(&self.base_url), secret: self.owner.token.clone() }
    }
}

/// Records when the process behind the public address was down or suspended.
#[derive(Debug, Default)]
pub(crate) struct Absences {
    is_away: Cell<bool>,
    is_starting: Cell<bool>,
    last_end: Cell<Option<Instant>>,
}

impl Absences {
    /// Called right before it goes down.
    pub(crate) fn begin(&self) {
        self.is_away.set(true);
    }

    /// Called when it is started again or resumed.
    pub(crate) fn end(&self) {
        self.is_away.set(false);
        self.last_end.set(Some(Instant::now()));
    }

    /// Called at a start: until it listens it may exit by itself, with connections in the accept queue.
    pub(crate) fn start(&self) {
        self.is_starting.set(true);
    }

    /// Called when it listens.
    pub(crate) fn started(&self) {
        if self.is_starting.replace(false) {
            self.last_end.set(Some(Instant::now()));
        }
    }

    /// Whether a request that was sent at that time, and has ended by now, may have overlapped an outage.
    pub(crate) fn excuse(&self, sent: Instant) -> bool {
        let is_gone = self.is_away.get() || self.is_starting.get();
        is_gone || self.last_end.get().is_some_and(|end| sent < end + DETECTION_DELAY)
    }
}
