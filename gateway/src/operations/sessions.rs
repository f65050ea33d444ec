//! Sessions of people: opened by password, invitation or the operator's identity provider (OIDC), and carried in a
//! cookie.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use cairn_chassis::ambient::Ambient;
use cairn_chassis::call::Call;
use cairn_chassis::clock::{Clock, Timestamp};
use cairn_chassis::status::Problem;
use cairn_proto::auth::v1 as proto;
use cairn_proto::ids::SessionId;
use http::request::Parts;
use http::{HeaderValue, header};
use tonic::{Code, Response, Status};

use super::answered;
use crate::answers::{OwnSession, Session};
use crate::app::App;
use crate::auth::{self, Authenticator};
use crate::origin::Origins;
use crate::rate_limit::Limits;
use crate::upstreams::Upstreams;

/// Longer user agents are truncated.
const MAX_AGENT_LENGTH: usize = 200;

/// Opens and ends sessions.
#[derive(Clone)]
pub(crate) struct Sessions {
    upstreams: Arc<Upstreams>,
    authenticator: Arc<Authenticator>,
    limits: Arc<Limits>,
    origins: Arc<Origins>,
    clock: Arc<dyn Clock>,
}

cairn_chassis::debug_fields!(Sessions);

impl FromRef<App> for Sessions {
    fn from_ref(app: &App) -> Self {
        Self {
            upstreams: FromRef::from_ref(app),
            authenticator: FromRef::from_ref(app),
            limits: FromRef::from_ref(app),
            origins: FromRef::from_ref(app),
            clock: Ambient::from_ref(app).clock,
        }
    }
}

impl Sessions {
    /// Opens a session with a password.
    pub(crate) async fn open(
        &self,
        parts: &Parts,
        email: String,
        password: String,
    ) -> Result<proto::CreateSessionResponse, Problem> {
        let opened = self.attempt(parts, |source_address| {
            let message =
                proto::CreateSessionRequest { email, password, source_address, agent: agent(parts) };
            let request = auth::call_of(parts).request(message);
            async move { self.upstreams.sessions().create_session(request).await }
        });
        opened.await
    }

    /// Accepts an invitation with an existing account or a new one. A wrong password counts as a failed sign-in: an
    /// invitation must not allow faster guessing.
    pub(crate) async fn accept_invitation(
        &self,
        parts: &Parts,
        message: proto::AcceptInvitationRequest,
    ) -> Result<proto::AcceptInvitationResponse, Problem> {
        let accepted = self.attempt(parts, |source_address| {
            let message = proto::AcceptInvitationRequest { source_address, agent: agent(parts), ..message };
            let request = auth::call_of(parts).request(message);
            async move { self.upstreams.invitations().accept_invitation(request).await }
        });
        accepted.await
    }

    /// Opens a session after the redirect back from the identity provider.
    pub(crate) async fn finish_sign_in(
        &self,
        parts: &Parts,
        message: proto::FinishSignInRequest,
    ) -> Result<proto::FinishSignInResponse, Problem> {
        let finished = self.attempt(parts, |source_address| {
            let message = proto::FinishSignInRequest { source_address, agent: agent(parts), ..message };
            let request = auth::call_of(parts).request(message);
            async move { self.upstreams.oidc().finish_sign_in(request).await }
        });
        finished.await
    }

    /// Runs a sign-in attempt; a failed one counts against the source address, here and in svc-auth.
    async fn attempt<T, A>(&self, parts: &Parts, ask: impl FnOnce(Option<String>) -> A) -> Result<T, Problem>
    where
        A: Future<Output = Result<Response<T>, Status>>,
    {
        let source = self.limits.source(parts);
        let attempt = self.limits.begin_sign_in(&parts.extensions, source).await?;
        let answer = ask(Some(source.to_string())).await;
        if !answer.as_ref().is_err_and(|status| status.code() == Code::Unauthenticated) {
            self.limits.refund_sign_in(attempt).await;
        }
        answered(answer)
    }

    /// Changes the password and ends the person's other sessions. A wrong old password counts as a failed sign-in: a
    /// stolen session must not allow guessing it.
    pub(crate) async fn change_password(
        &self,
        parts: &Parts,
        person: &Call,
        current_password: String,
        new_password: String,
    ) -> Result<(), Problem> {
        let source = self.limits.source(parts);
        let attempt = self.limits.begin_sign_in(&parts.extensions, source).await?;
        let message = person.request(proto::ChangePasswordRequest {
            current_password,
            new_password,
            session_secret: self.authenticator.session_secret(&parts.headers).map(ToOwned::to_owned),
            source_address: Some(source.to_string()),
        });
        let changed = answered(self.upstreams.sessions().change_password(message).await);
        let is_guess =
            |problem: &Problem| problem.violations.iter().any(|broken| broken.path == "currentPassword");
        if !changed.as_ref().is_err_and(is_guess) {
            self.limits.refund_sign_in(attempt).await;
        }
        changed.map(drop)
    }

    /// Ends the request's session, if it is valid.
    pub(crate) async fn close(&self, parts: &Parts) -> Result<(), Problem> {
        let live = self.authenticator.live_session(parts).await?;
        let secret = self.authenticator.session_secret(&parts.headers).filter(|_| live.is_some());
        let Some(secret) = secret else { return Ok(()) };
        let message = proto::DeleteSessionRequest { session_secret: secret.to_owned() };
        answered(self.upstreams.sessions().delete_session(auth::call_of(parts).request(message)).await)?;
        self.authenticator.tokens().invalidate_session(secret);
        Ok(())
    }

    /// Ends all sessions of the person.
    pub(crate) async fn close_all(&self, parts: &Parts, person: &Call) -> Result<(), Problem> {
        let message = person.request(proto::DeleteSessionsRequest {});
        answered(self.upstreams.sessions().delete_sessions(message).await)?;
        if let Some(secret) = self.authenticator.session_secret(&parts.headers) {
            self.authenticator.tokens().invalidate_session(secret);
        }
        Ok(())
    }

    /// The person's live sessions, newest first.
    pub(crate) async fn list(&self, parts: &Parts, person: &Call) -> Result<Vec<OwnSession>, Problem> {
        let session_secret = self.authenticator.session_secret(&parts.headers).map(ToOwned::to_owned);
        let message = person.request(proto::ListSessionsRequest { session_secret });
        let listed = answered(self.upstreams.sessions().list_sessions(message).await)?;
        Ok(listed.sessions.into_iter().map(Into::into).collect())
    }

    /// Ends one of the person's sessions.
    pub(crate) async fn end(&self, person: &Call, id: SessionId) -> Result<(), Problem> {
        let message = person.request(proto::EndSessionRequest { session_id: id.to_string() });
        answered(self.upstreams.sessions().end_session(message).await).map(drop)
    }

    /// The signed-in person with their workspaces and roles.
    pub(crate) async fn read(&self, person: &Call) -> Result<Session, Problem> {
        let message = person.request(proto::GetSessionRequest {});
        let session = answered(self.upstreams.sessions().get_session(message).await)?;
        Ok(Session::read(session.user, session.memberships, session.pending_invitations))
    }

    /// The display name of the identity provider; `None` if there is none. If it cannot be determined, the page
    /// omits the button: password sign-in still works.
    pub(crate) async fn provider(&self, call: &Call) -> Option<String> {
        let answer = self.upstreams.oidc().get_provider(call.request(proto::GetProviderRequest {})).await;
        answer.map_or(None, |answer| answer.into_inner().name)
    }

    /// The cookie of a new session with its expiry.
    pub(crate) fn cookie(
        &self,
        secret: &str,
        end: Option<&prost_types::Timestamp>,
    ) -> Result<HeaderValue, Problem> {
        self.authenticator.tokens().mark_session_known(secret);
        self.written(secret, self.lifetime(end))
    }

    /// The cookie that removes the session.
    pub(crate) fn no_cookie(&self) -> Result<HeaderValue, Problem> {
        self.written("", Duration::ZERO)
    }

    /// The time until `end`.
    pub(crate) fn lifetime(&self, end: Option<&prost_types::Timestamp>) -> Duration {
        end.map_or(Duration::ZERO, |at| Timestamp::from_proto(at).since(self.clock.now()))
    }

    fn written(&self, secret: &str, lifetime: Duration) -> Result<HeaderValue, Problem> {
        let needs_tls = self.origins.is_https() || !self.origins.is_loopback();
        let text = cookie_text(self.authenticator.session_cookie(), secret, lifetime, needs_tls);
        let mut value = HeaderValue::from_str(&text)
            .map_err(|_| Problem::internal("a session secret is no cookie value"))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// The user agent of the request.
fn agent(parts: &Parts) -> String {
    let named = parts.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    named.unwrap_or_default().chars().take(MAX_AGENT_LENGTH).collect()
}

/// Only on loopback may the cookie travel without TLS.
fn cookie_text(name: &str, secret: &str, lifetime: Duration, needs_tls: bool) -> String {
    let secure = if needs_tls { "; Secure" } else { "" };
    let seconds = lifetime.as_secs();
    format!("{name}={secret}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_loopback_the_cookie_needs_tls() {
        let text = cookie_text("name", "s", Duration::from_secs(9), true);
        assert_eq!(text, "name=s; Path=/; Max-Age=9; HttpOnly; SameSite=Lax; Secure");
    }
}
