//! How clients get at a deployment, whatever runs behind its address.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use crate::support::callers::ApiToken;
use crate::support::http::Http;
use crate::up::Owner;

/// Within so long a client sees that a connection has ended; until then it may send requests over it, also when whoever listens is
/// back.
pub(crate) const NOTICED: Duration = Duration::from_millis(200);

/// An address, and who calls there.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    pub(crate) base_url: String,
    pub(crate) owner: Owner,
    /// Odd while whoever listens there is away or hangs; it has another value after each such time.
    pub(crate) disturbed: Rc<Cell<u64>>,
    /// A folder that connected sources may read.
    pub(crate) shelf: PathBuf,
}

impl Access {
    pub(crate) fn token(&self) -> ApiToken {
        ApiToken { http: Http::new(&self.base_url), secret: self.owner.token.clone() }
    }

    /// Notes that whoever listens is about to be away, or is back.
    pub(crate) fn note_disturbance(&self) {
        self.disturbed.set(self.disturbed.get() + 1);
    }
}
