//! The class of a route, set where it is registered ([`crate::routes`]): who may call it, its deadline, body limit
//! and cost. The services authorize again.

use std::time::Duration;

use cairn_chassis::call::Channel;
use cairn_chassis::identity::Permission;
use http::Extensions;

use crate::cost::Cost;

/// A form that a person fills in.
pub(crate) const FORM_BYTES: usize = 16 * 1024;
/// Searches, scripts, databases and records: JSON built by a program.
pub(crate) const ORDINARY_BYTES: usize = 1024 * 1024;
/// A file: 5 MiB of text, escaped by the most wasteful client.
pub(crate) const FILE_BYTES: usize = 16 * 1024 * 1024;

/// A directory: 24 MB of content, and JSON around it.
pub(crate) const MANIFEST_BYTES: usize = 32 * 1024 * 1024;

/// Enough for a list of a thousand records or the write of a 5 MiB body on a busy machine.
const ORDINARY_BUDGET: Duration = Duration::from_secs(15);
/// A search may wait 10 s for the index before it begins, and a script may scan for 10 s.
const PATIENT_BUDGET: Duration = Duration::from_secs(30);

/// The largest file over a slow connection.
const UPLOAD_BUDGET: Duration = Duration::from_secs(600);

/// Who may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// Anybody, without authentication.
    Anyone,
    /// A caller with an API token, holding this permission if one is given.
    Token(Option<Permission>),
    /// An anonymous caller, or one with a valid token.
    TokenIfSent,
    /// An agent. The MCP handler admits it, because its cost depends on the body.
    Agent,
    /// A signed-in person.
    Person,
    /// A member of the workspace that the path or the query names.
    Member,
    /// An owner or admin of that workspace; the text is the start of the refusal, such as "adding members".
    Manager(&'static str),
}

/// The part of the gateway that a route belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    /// The public REST API.
    Rest,
    /// The MCP endpoint.
    Mcp,
    /// The console's JSON API.
    Console,
    /// The console's HTML pages.
    Page,
    /// OAuth, documents, health.
    Open,
}

impl Surface {
    /// Whether responses carry rate-limit headers.
    pub(crate) const fn shows_limits(self) -> bool {
        matches!(self, Self::Rest | Self::Mcp | Self::Console)
    }

    /// Whether those fall back to the source address's window if there is no token.
    pub(crate) const fn counts_addresses(self) -> bool {
        matches!(self, Self::Rest | Self::Mcp)
    }

    /// Whether browsers attach a session cookie, also to cross-site requests.
    pub(crate) const fn takes_cookies(self) -> bool {
        matches!(self, Self::Console | Self::Page)
    }

    /// The channel reported to the services.
    pub(crate) const fn channel(self) -> Channel {
        match self {
            Self::Rest => Channel::Rest,
            Self::Mcp => Channel::Mcp,
            Self::Console | Self::Page | Self::Open => Channel::Console,
        }
    }
}

/// The class of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) surface: Surface,
    pub(crate) who: Who,
    /// The deadline.
    pub(crate) budget: Duration,
    /// The body limit.
    pub(crate) max_bytes: usize,
    /// What it costs of this process's capacity.
    pub(crate) cost: Cost,
    /// Whether responses may hold a secret; those are never compressed.
    pub(crate) has_secrets: bool,
}

impl Class {
    /// The class of an unknown address (404).
    pub(crate) const UNKNOWN: Self = Self::new(Surface::Open, Who::Anyone);

    pub(crate) const fn new(surface: Surface, who: Who) -> Self {
        let cost = match surface {
            Surface::Rest | Surface::Mcp | Surface::Open => Cost::POINT,
            Surface::Console => Cost::LIST,
            Surface::Page => Cost::PAGE,
        };
        Self { surface, who, budget: ORDINARY_BUDGET, max_bytes: ORDINARY_BYTES, cost, has_secrets: false }
    }

    /// An operation of `/api/v1` that requires the permission.
    pub(crate) const fn rest(needed: Permission) -> Self {
        Self::new(Surface::Rest, Who::Token(Some(needed)))
    }

    pub(crate) const fn costing(self, cost: Cost) -> Self {
        Self { cost, ..self }
    }

    /// With a longer deadline, for waiting on the index or a script.
    pub(crate) const fn patient(self) -> Self {
        Self { budget: PATIENT_BUDGET, ..self }
    }

    /// With the deadline of uploads.
    pub(crate) const fn with_upload(self) -> Self {
        Self { budget: UPLOAD_BUDGET, ..self }
    }

    pub(crate) const fn up_to(self, max_bytes: usize) -> Self {
        Self { max_bytes, ..self }
    }

    pub(crate) const fn with_secrets(self) -> Self {
        Self { has_secrets: true, ..self }
    }

    /// The class of a method that the route does not support: a token is still authenticated and counted.
    pub(crate) const fn of_other_methods(self) -> Self {
        let who = match self.surface {
            Surface::Rest => Who::TokenIfSent,
            Surface::Mcp | Surface::Console | Surface::Page | Surface::Open => Who::Anyone,
        };
        Self { who, ..self }
    }

    /// The class of the matched route, as the edge recorded it.
    pub(crate) fn of(request: &Extensions) -> Self {
        request.get().copied().unwrap_or(Self::UNKNOWN)
    }
}
