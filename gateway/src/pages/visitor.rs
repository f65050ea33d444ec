//! The visitor of a page: a signed-in person, with their role if the URL names a workspace.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{FromRef, FromRequestParts};
use cairn_chassis::ambient::Ambient;
use cairn_chassis::clock::{Clock, Timestamp};
use cairn_chassis::status::Problem;
use cairn_proto::auth::v1::User;
use cairn_proto::domain::{Permission, Role};
use cairn_proto::ids::WorkspaceId;
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};

use axum::response::{IntoResponse as _, Response};

use super::look::Look;
use super::notice::Notice;
use crate::answers::{PendingInvitation, Token, Workspace};
use crate::app::App;
use crate::auth::{Authenticator, CallerIdentity, Member, SignedIn, call_of, cookie_value, no_workspace};
use crate::error::Error;
use crate::operations::Context;
use crate::operations::person::Person;
use crate::operations::sessions::Sessions;
use crate::operations::views::{TokenViews, View, ViewTarget};
use crate::own_writes::OwnWrites;

/// The cookie with the workspace visited last.
const LAST_COOKIE: &str = "cairn_last";
/// The header of a request that only takes one element of the page.
pub(super) const PART: &str = "x-cairn-part";
const LAST_SECONDS: u32 = 365 * 24 * 3600;

/// A signed-in person visiting a page.
#[derive(Clone)]
pub(crate) struct Visitor {
    pub(crate) person: Person,
    pub(crate) user: User,
    /// The person's workspaces, by name.
    pub(crate) workspaces: Arc<Vec<Workspace>>,
    /// Pending invitations of the person.
    pub(crate) invitations: Arc<Vec<PendingInvitation>>,
    /// The notice of the last form.
    pub(crate) notice: Option<Notice>,
    pub(crate) look: Look,
    /// The page's own URL, with its query.
    pub(crate) address: String,
    /// Whether a script takes a fragment of the page; errors are then shown in it.
    pub(crate) takes_part: bool,
    here: Option<Here>,
    seen_as: Option<ViewedAs>,
    last: Option<WorkspaceId>,
    secret: String,
    authenticator: Arc<Authenticator>,
    own_writes: Arc<OwnWrites>,
    clock: Arc<dyn Clock>,
}

// Without the session secret.
cairn_chassis::debug_fields!(Visitor { address, here });

/// The workspace of a page, and the visitor's role in it.
#[derive(Debug, Clone)]
pub(crate) struct Here {
    pub(crate) id: WorkspaceId,
    pub(crate) name: String,
    pub(crate) plan: String,
    pub(crate) role: Role,
    identity: Arc<CallerIdentity>,
}

/// The token that a visitor views the page as.
#[derive(Debug, Clone)]
pub(crate) struct ViewedAs {
    pub(crate) id: String,
    pub(crate) name: String,
}

impl FromRequestParts<App> for Visitor {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let (call, identity) = match parts.extensions.get::<Member>() {
            Some(member) => (member.call.clone(), Some(Arc::clone(&member.identity))),
            None => (SignedIn::from_request_parts(parts, app).await?.call, None),
        };
        let session = Sessions::from_ref(app).read(&call).await?;
        let authenticator = Arc::<Authenticator>::from_ref(app);
        let visitor = Self {
            person: Person { upstreams: FromRef::from_ref(app), links: FromRef::from_ref(app), call },
            user: session.user,
            workspaces: Arc::new(session.workspaces),
            invitations: Arc::new(session.pending_invitations),
            notice: Notice::of(&parts.headers),
            look: Look::of(&parts.headers),
            address: address_of(parts),
            takes_part: parts.headers.contains_key(PART),
            here: None,
            seen_as: None,
            last: last(parts),
            secret: authenticator.session_secret(&parts.headers).unwrap_or_default().to_owned(),
            authenticator,
            own_writes: FromRef::from_ref(app),
            clock: Ambient::from_ref(app).clock,
        };
        let visitor = match identity {
            Some(identity) => visitor.seated(identity)?,
            None => visitor,
        };
        if let Some(seen) = parts.extensions.get::<VisitorSlot>() {
            seen.note(&visitor);
        }
        Ok(visitor)
    }
}

impl Visitor {
    /// The workspace that the URL names, or that was entered.
    pub(crate) fn here(&self) -> Result<&Here, Error> {
        self.here.as_ref().ok_or_else(|| no_workspace().into())
    }

    /// The same for pages that may have none.
    pub(crate) const fn here_if_any(&self) -> Option<&Here> {
        self.here.as_ref()
    }

    /// The same visitor in that workspace with the role there, for URLs that name an item but no workspace.
    pub(crate) async fn enter(self, parts: &Parts, workspace: WorkspaceId) -> Result<Self, Error> {
        let identity =
            self.authenticator.tokens().session_in(&self.secret, workspace, &call_of(parts)).await?;
        let call = self.person.call.clone().with_identity(&identity.signed);
        let visitor = Self { person: Person { call, ..self.person.clone() }, ..self };
        let visitor = visitor.seated(Arc::new(identity))?;
        if let Some(seen) = parts.extensions.get::<VisitorSlot>() {
            seen.note(&visitor);
        }
        Ok(visitor)
    }

    fn seated(self, identity: Arc<CallerIdentity>) -> Result<Self, Problem> {
        let id = identity.claims.workspace_id()?;
        let text = id.to_string();
        let workspace = self.workspaces.iter().find(|one| one.id == text);
        let (Some(workspace), Some(role)) = (workspace, identity.claims.role) else {
            return Err(no_workspace());
        };
        let here = Here { id, name: workspace.name.clone(), plan: workspace.plan.clone(), role, identity };
        Ok(Self { here: Some(here), ..self })
    }

    /// The context for operations shared with agents.
    pub(crate) fn context(&self) -> Result<Context, Error> {
        Ok(Context {
            upstreams: Arc::clone(&self.person.upstreams),
            links: Arc::clone(&self.person.links),
            own_writes: Arc::clone(&self.own_writes),
            call: self.person.call.clone(),
            identity: Arc::clone(&self.here()?.identity),
            step_up: None,
            writer: None,
            seen_contents: None,
            events: None,
        })
    }

    /// The workspace as a token sees it, or would see it.
    pub(crate) async fn see(&self, target: ViewTarget) -> Result<View, Error> {
        let token_views = TokenViews {
            authenticator: Arc::clone(&self.authenticator),
            upstreams: Arc::clone(&self.person.upstreams),
            links: Arc::clone(&self.person.links),
            own_writes: Arc::clone(&self.own_writes),
        };
        Ok(token_views.see(&self.person.call, self.here()?.id, target).await?)
    }

    /// The same visitor with the token's read rights, and no write rights.
    pub(crate) async fn looking_as(&self, token: &Token) -> Result<Self, Error> {
        let id = token.id.parse().map_err(|_| Problem::not_found("there is no such token"))?;
        let view = self.see(ViewTarget::Token(id)).await?.context;
        let here = Here { identity: view.identity, ..self.here()?.clone() };
        let person = Person { call: view.call, ..self.person.clone() };
        let seen_as = Some(ViewedAs { id: token.id.clone(), name: token.name.clone() });
        Ok(Self { person, here: Some(here), seen_as, ..self.clone() })
    }

    /// The token that the page is viewed as, if any.
    pub(crate) const fn seen_as(&self) -> Option<&ViewedAs> {
        self.seen_as.as_ref()
    }

    /// A URL that keeps the token of the current view.
    pub(crate) fn onward(&self, address: impl Into<String>) -> String {
        let address = address.into();
        match &self.seen_as {
            Some(seen) => with_eyes(&address, &seen.id),
            None => address,
        }
    }

    /// Whether the role allows it: what is not allowed is not shown. The services authorize again.
    pub(crate) fn may(&self, permission: Permission) -> bool {
        let permissions = self.here.as_ref().map(|here| here.identity.claims.permissions);
        permissions.is_some_and(|permissions| permissions.contains(permission))
    }

    /// Whether the role allows everything an undo may do.
    pub(crate) fn may_undo(&self) -> bool {
        self.may(Permission::Write) && self.may(Permission::Delete)
    }

    /// Whether the visitor may make memories public here.
    pub(crate) fn publishes(&self) -> bool {
        self.here.as_ref().is_some_and(|here| here.identity.claims.may_publish)
    }

    /// The retention of the question log in days; `None` if it is off.
    pub(crate) fn question_log_days(&self) -> Option<u32> {
        self.here.as_ref().and_then(|here| here.identity.claims.question_log_days)
    }

    /// Whether the visitor is an owner or admin here.
    pub(crate) fn manages(&self) -> bool {
        self.here.as_ref().is_some_and(|here| here.role.is_manager())
    }

    /// Whether the visitor is an owner here.
    pub(crate) fn owns(&self) -> bool {
        self.here.as_ref().is_some_and(|here| here.role == Role::Owner)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The target of `/`: the workspace visited last, or the first, or the list if there is none.
    pub(crate) fn home(&self) -> String {
        let last = self.last.map(|id| id.to_string());
        let known = self.workspaces.iter().find(|one| Some(&one.id) == last.as_ref());
        known
            .or_else(|| self.workspaces.first())
            .map_or_else(|| "/workspaces".to_owned(), |one| format!("/w/{}", one.id))
    }

    /// The same visitor without the notice of the last form.
    pub(crate) fn without_notice(self) -> Self {
        Self { notice: None, ..self }
    }

    /// The cookie of the current workspace, if it differs from the last.
    pub(crate) fn last_cookie(&self) -> Option<HeaderValue> {
        let here = self.here.as_ref().map(|here| here.id).filter(|id| Some(*id) != self.last)?;
        let text = format!("{LAST_COOKIE}={here}; Path=/; Max-Age={LAST_SECONDS}; HttpOnly; SameSite=Lax");
        HeaderValue::from_str(&text).ok()
    }

    /// The response to a successful form: a redirect with a notice.
    pub(crate) fn done(&self, to: &str, notice: &Notice) -> Response {
        let mut response = see_other(to);
        if let Some(cookie) = notice.cookie() {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        response
    }
}

/// Adds the token of the view to a URL: after its query, before its fragment.
fn with_eyes(address: &str, token: &str) -> String {
    let (page, fragment) = address.split_at(address.find('#').unwrap_or(address.len()));
    let joint = if page.contains('?') { '&' } else { '?' };
    format!("{page}{joint}as={token}{fragment}")
}

fn last(parts: &Parts) -> Option<WorkspaceId> {
    cookie_value(&parts.headers, LAST_COOKIE)?.parse().ok()
}

pub(super) fn address_of(parts: &Parts) -> String {
    parts.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string)
}

/// 303: continues with GET, on our own origin.
pub(crate) fn see_other(to: &str) -> Response {
    let location = HeaderValue::from_str(to).unwrap_or_else(|_| HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response()
}

/// The visitor found for a request, for use on the error page.
#[derive(Debug, Clone, Default)]
pub(crate) struct VisitorSlot(Arc<Mutex<Option<Visitor>>>);

impl VisitorSlot {
    pub(super) fn note(&self, visitor: &Visitor) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(visitor.clone());
    }

    pub(super) fn visitor(&self) -> Option<Visitor> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eyes_go_along_in_the_query() {
        for (address, expected) in [
            ("/file/1", "/file/1?as=t"),
            ("/file/1?view=source", "/file/1?view=source&as=t"),
            ("/file/1?lines=1-2#L1", "/file/1?lines=1-2&as=t#L1"),
            ("/file/1#L1", "/file/1?as=t#L1"),
        ] {
            assert_eq!(with_eyes(address, "t"), expected);
        }
    }
}
