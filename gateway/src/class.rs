//! What a route is, said where it is registered ([`crate::routes`]): who may call it, how long it may take, how much it may
//! be sent, and what it costs. The services judge again who may.

use std::time::Duration;

use cairn_chassis::call::Channel;
use cairn_chassis::identity::Permission;
use http::Extensions;

use crate::cost::Cost;

/// A form that a person fills in.
pub(crate) const FORM_BYTES: usize = 16 * 1024;
/// Searches, scripts, databases and records: JSON that a program puts together.
pub(crate) const ORDINARY_BYTES: usize = 1024 * 1024;
/// A file: 5 MiB of text, escaped by the most wasteful client.
pub(crate) const FILE_BYTES: usize = 16 * 1024 * 1024;

/// A directory: 24 MB of content, and JSON around it.
pub(crate) const MANIFEST_BYTES: usize = 32 * 1024 * 1024;

/// Enough for a list of a thousand records or the write of a 5 MiB body on a busy machine.
const ORDINARY_BUDGET: Duration = Duration::from_secs(15);
/// A search may wait 10 s for the index before it begins, and a script may scan for 10 s.
const PATIENT_BUDGET: Duration = Duration::from_secs(30);

/// The largest file over a slow line.
const UPLOAD_BUDGET: Duration = Duration::from_secs(600);

/// Who may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// Whoever comes.
    Anyone,
    /// A caller with an API token, which holds the permission where one is named.
    Token(Option<Permission>),
    /// Whoever sends no token, or one that opens something.
    TokenIfSent,
    /// An agent. The handler lets it in: what its request counts stands in the body.
    Agent,
    /// A signed-in person.
    Person,
    /// A member of the workspace that the path or the query names.
    Member,
    /// An owner or admin of that workspace; the text begins the refusal, such as "adding members".
    Manager(&'static str),
}

/// Which part of the gateway a route belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    /// The API of programs.
    Rest,
    /// Agents.
    Mcp,
    /// The console's JSON API.
    Console,
    /// Pages of the console's people.
    Page,
    /// OAuth, documents, health.
    Open,
}

impl Surface {
    /// Whether answers say how the caller's rate-limit windows stand.
    pub(crate) const fn shows_limits(self) -> bool {
        matches!(self, Self::Rest | Self::Mcp | Self::Console)
    }

    /// Whether they say it of the source address where no token is known.
    pub(crate) const fn counts_addresses(self) -> bool {
        matches!(self, Self::Rest | Self::Mcp)
    }

    /// Whether browsers bring a session cookie, also with requests that another site's page makes.
    pub(crate) const fn takes_cookies(self) -> bool {
        matches!(self, Self::Console | Self::Page)
    }

    /// What the services are told of it.
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
    /// After it the request is answered with an error.
    pub(crate) budget: Duration,
    /// A larger body is refused.
    pub(crate) most_bytes: usize,
    /// What it takes of this process's capacity.
    pub(crate) cost: Cost,
    /// Whether answers may hold a secret, so that they are never compressed.
    pub(crate) has_secrets: bool,
}

impl Class {
    /// What is neither registered nor below a part of the gateway: the 404 of an unknown address.
    pub(crate) const UNKNOWN: Self = Self::new(Surface::Open, Who::Anyone);

    pub(crate) const fn new(surface: Surface, who: Who) -> Self {
        let cost = match surface {
            Surface::Rest | Surface::Mcp | Surface::Open => Cost::POINT,
            Surface::Console => Cost::LIST,
            Surface::Page => Cost::PAGE,
        };
        Self { surface, who, budget: ORDINARY_BUDGET, most_bytes: ORDINARY_BYTES, cost, has_secrets: false }
    }

    /// An operation of `/api/v1` that takes that permission.
    pub(crate) const fn rest(needed: Permission) -> Self {
        Self::new(Surface::Rest, Who::Token(Some(needed)))
    }

    pub(crate) const fn costing(self, cost: Cost) -> Self {
        Self { cost, ..self }
    }

    /// It may wait, for the index or for a script.
    pub(crate) const fn patient(self) -> Self {
        Self { budget: PATIENT_BUDGET, ..self }
    }

    /// It takes files as they come.
    pub(crate) const fn with_upload(self) -> Self {
        Self { budget: UPLOAD_BUDGET, ..self }
    }

    pub(crate) const fn up_to(self, most_bytes: usize) -> Self {
        Self { most_bytes, ..self }
    }

    pub(crate) const fn with_secrets(self) -> Self {
        Self { has_secrets: true, ..self }
    }

    /// The class of a method that the route does not take: whoever sends a token is known all the same, and counted.
    pub(crate) const fn of_other_methods(self) -> Self {
        let who = match self.surface {
            Surface::Rest => Who::TokenIfSent,
            Surface::Mcp | Surface::Console | Surface::Page | Surface::Open => Who::Anyone,
        };
        Self { who, ..self }
    }

    /// The class of the route that a request has reached, as the edge noted it.
    pub(crate) fn of(request: &Extensions) -> Self {
        request.get().copied().unwrap_or(Self::UNKNOWN)
    }
}
