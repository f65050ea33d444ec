//! How clients get at a deployment, whatever runs behind its address.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::Instant;

use crate::support::callers::ApiToken;
use crate::support::http::Http;
use crate::up::Owner;

/// So long after whoever listens was away a client may still send requests over a connection that has ended. It sees that at once;
/// but on a machine that is busy it gets to it late.
const NOTICED: Duration = Duration::from_secs(5);

/// An address, and who calls there.
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

/// When whoever listens at an address is away or hangs.
#[derive(Debug, Default)]
pub(crate) struct Absences {
    is_away: Cell<bool>,
    is_starting: Cell<bool>,
    last_end: Cell<Option<Instant>>,
}

impl Absences {
    /// Whoever listens is about to be away.
    pub(crate) fn begin(&self) {
        self.is_away.set(true);
    }

    /// It is started again, or goes on.
    pub(crate) fn end(&self) {
        self.is_away.set(false);
        self.last_end.set(Some(Instant::now()));
    }

    /// It is started, and has not said that it listens: until then it may end by itself, with connections that wait to be accepted.
    pub(crate) fn start(&self) {
        self.is_starting.set(true);
    }

    /// It has said that it listens.
    pub(crate) fn started(&self) {
        if self.is_starting.replace(false) {
            self.last_end.set(Some(Instant::now()));
        }
    }

    /// Whether a request that was sent then, and has ended by now, may have met one.
    pub(crate) fn excuse(&self, sent: Instant) -> bool {
        let is_gone = self.is_away.get() || self.is_starting.get();
        is_gone || self.last_end.get().is_some_and(|end| sent < end + NOTICED)
    }
}
