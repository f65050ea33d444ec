//! The pages of the consent flow: plain HTML without scripts. The templates escape all values.

use axum::response::Response;
use cairn_proto::auth::v1 as proto;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use maud::{Markup, html};

use super::refusal::{Refusal, not_kept};
use crate::pages::document::Document;
use crate::pages::sign_in::SignInForm;

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// The permissions with their scope names and descriptions.
const PERMISSIONS: [(proto::Permission, &str, &str, &str); 3] = [
    (
        proto::Permission::Read,
        "read",
        "Read",
        "Search and read files, memories, databases and connected sources.",
    ),
    (proto::Permission::Write, "write", "Write", "Create and change files, folders, memories and records."),
    (proto::Permission::Delete, "delete", "Delete", "Move things to trash, and remove members of memories."),
];

/// The scope name of a permission.
pub(super) fn scope_name(permission: proto::Permission) -> Option<&'static str> {
    PERMISSIONS.into_iter().find(|(of, ..)| *of == permission).map(|(_, name, ..)| name)
}

/// The permission of a scope name.
pub(super) fn permission_of(name: &str) -> Option<proto::Permission> {
    PERMISSIONS.into_iter().find(|(_, of, ..)| *of == name).map(|(permission, ..)| permission)
}

/// The sign-in page.
#[derive(Debug, Default)]
pub(super) struct SignInPage {
    /// The pending authorization request.
    pub(super) request: String,
    /// The client's name, host and redirect URI, once known.
    pub(super) client: Option<(String, String, String)>,
    pub(super) email: String,
    pub(super) problem: Option<String>,
    /// The name of the identity provider, if people may sign in by it.
    pub(super) provider: Option<String>,
}

impl SignInPage {
    pub(super) fn render(&self) -> Response {
        let lead = html! {
            @if let Some((name, host, _)) = &self.client {
                p { strong { bdi { (name) } } " (" (host) ") asks for access to a workspace of yours. Sign in to decide." }
            } @else {
                p { "An app asks for access to a workspace of yours. Sign in to see which, and to decide." }
            }
        };
        let back = format!("/oauth/authorize?{}", self.request);
        let form = SignInForm {
            action: "/oauth/sign-in",
            carried: ("request", &self.request),
            lead,
            email: &self.email,
            problem: self.problem.as_deref(),
            provider: self.provider.as_deref().map(|provider| (provider, back.as_str())),
        };
        let status = if self.problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        let target = self.client.as_ref().map(|(_, _, uri)| form_target(uri));
        page(status, "Sign in", self.problem.is_some(), &form.render(), target.as_deref())
    }
}

/// A workspace that can be chosen.
#[derive(Debug)]
pub(super) struct Choice {
    id: String,
    name: String,
    role: &'static str,
    is_chosen: bool,
}

impl Choice {
    pub(super) fn read(membership: proto::Membership, chosen: Option<&str>) -> Option<Self> {
        let role = match membership.role() {
            proto::Role::Owner => "owner: read, write, delete",
            proto::Role::Admin => "admin: read, write, delete",
            proto::Role::Editor => "editor: read, write, delete",
            proto::Role::Contributor => "contributor: read, write",
            proto::Role::Viewer => "viewer: read",
            proto::Role::Unspecified => "member",
        };
        let workspace = membership.workspace?;
        let is_chosen = chosen == Some(workspace.id.as_str());
        Some(Self { id: workspace.id, name: workspace.name, role, is_chosen })
    }
}

/// The consent page.
#[derive(Debug)]
pub(super) struct ConsentPage {
    pub(super) request: String,
    pub(super) csrf: String,
    pub(super) email: String,
    pub(super) client: String,
    pub(super) redirect_uri: String,
    pub(super) redirect_host: String,
    pub(super) is_loopback: bool,
    pub(super) workspaces: Vec<Choice>,
    /// The requested permissions, and whether each is selected.
    pub(super) permissions: Vec<(proto::Permission, bool)>,
    /// The field to correct, and how.
    pub(super) problem: Option<(&'static str, String)>,
}

impl ConsentPage {
    pub(super) fn render(&self) -> Response {
        let problem = self.problem.as_ref().map(|(field, message)| (*field, message.as_str()));
        let body = html! {
            h1 { "Allow " bdi { (self.client) } " to use Cairn?" }
            form.account method="post" action="/oauth/sign-out" {
                input type="hidden" name="request" value=(self.request);
                span { "Signed in as " (self.email) }
                button.link type="submit" { "Use another account" }
            }
            dl {
                dt { "App" }
                dd { bdi { (self.client) } }
                dt { "Your answer goes to" }
                dd { (self.redirect_host) }
            }
            @if self.is_loopback {
                p.notice {
                    "This app runs on your own computer, where any program may call itself by this name. "
                    "Go on only if you started it yourself just now."
                }
            }
            (problem_summary(problem))
            form method="post" action="/oauth/authorize" {
                input type="hidden" name="request" value=(self.request);
                input type="hidden" name="csrf" value=(self.csrf);
                @if self.workspaces.is_empty() {
                    p.notice { "You belong to no workspace, so there is nothing that you could allow." }
                } @else {
                    (self.choices(problem))
                }
                div.buttons {
                    @if !self.workspaces.is_empty() {
                        button.primary type="submit" name="decision" value="allow" { "Allow" }
                    }
                    button type="submit" name="decision" value="deny" formnovalidate { "Deny" }
                }
            }
        };
        let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        page(status, "Allow access", problem.is_some(), &body, Some(&form_target(&self.redirect_uri)))
    }

    fn choices(&self, problem: Option<(&str, &str)>) -> Markup {
        let marks = |field| problem.filter(|(of, _)| *of == field).map(|_| "problem");
        html! {
            label.label for="workspace" { "Workspace" }
            select #workspace name="workspace" required aria-describedby=[marks("workspace")] {
                @for choice in &self.workspaces {
                    option value=(choice.id) selected[choice.is_chosen] { (choice.name) " (" (choice.role) ")" }
                }
            }
            fieldset #permissions aria-describedby=[marks("permissions")] {
                legend { "It may" }
                @for (name, title, explained, is_chosen) in self.options() {
                    div.option {
                        input id={ "permission-" (name) } type="checkbox" name="permission" value=(name)
                            checked[is_chosen] aria-describedby={ "about-" (name) };
                        div {
                            label for={ "permission-" (name) } { (title) }
                            span.hint id={ "about-" (name) } { (explained) }
                        }
                    }
                }
            }
            p.hint {
                "It can never do more than your own role in the workspace allows, now or later. "
                "You can end this in the console at any time."
            }
        }
    }

    fn options(&self) -> impl Iterator<Item = (&'static str, &'static str, &'static str, bool)> {
        PERMISSIONS.into_iter().filter_map(|(permission, name, title, explained)| {
            let wanted = self.permissions.iter().find(|(of, _)| *of == permission);
            wanted.map(|(_, is_chosen)| (name, title, explained, *is_chosen))
        })
    }
}

/// An error that must not be redirected, because the client or its redirect URI is in doubt.
pub(super) fn failure(refusal: &Refusal) -> Response {
    let body = html! {
        h1 { "This request cannot be answered" }
        div.problem role="alert" { p { (refusal.description) } }
        p { "Nothing was allowed. Go back to the app that sent you here and connect it again." }
        p.hint { "Error: " (refusal.error) }
    };
    // 401 would make the browser ask for a password.
    let status =
        if refusal.status == StatusCode::UNAUTHORIZED { StatusCode::BAD_REQUEST } else { refusal.status };
    page(status, "This request cannot be answered", true, &body, None)
}

/// Sign-in by the identity provider failed, and why.
pub(super) fn not_signed_in(status: StatusCode, message: &str) -> Response {
    let body = html! {
        h1 { "You are not signed in" }
        div.problem role="alert" { p { (message) } }
        p { "To try again, or to sign in with a password, go back to the page where you began." }
    };
    page(status, "You are not signed in", true, &body, None)
}

fn problem_summary(problem: Option<(&str, &str)>) -> Markup {
    html! {
        @if let Some((field, message)) = problem {
            div #problem .problem role="alert" { p { a href={ "#" (field) } { (message) } } }
        }
    }
}

fn page(
    status: StatusCode,
    title: &str,
    is_problem: bool,
    body: &Markup,
    form_target: Option<&str>,
) -> Response {
    let title = if is_problem { format!("Error: {title}") } else { title.to_owned() };
    let document = Document { title: &title, class: "alone", ..Document::default() };
    let mut response = document.around(status, &html! { main { (body) } });
    guard(response.headers_mut(), form_target);
    response
}

/// Only the style is loaded, framing and caching are forbidden.
fn guard(headers: &mut HeaderMap, form_target: Option<&str>) {
    not_kept(headers);
    // Browsers apply the page's `form-action` to redirects after its form, too.
    let policy = format!(
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self' {}; frame-ancestors 'none'; \
         base-uri 'none'",
        form_target.unwrap_or_default()
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    // With `no-referrer`, browsers send `Origin: null` with our own forms, which we reject.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    // Clients open the page in a popup and wait for it to return to them.
    headers.insert(OPENER_POLICY, HeaderValue::from_static("unsafe-none"));
}

/// The `form-action` source of a redirect URI: browsers apply the policy to redirects.
pub(super) fn form_target(uri: &str) -> String {
    let scheme = uri.split(':').next().unwrap_or_default();
    if !matches!(scheme, "https" | "http") {
        return format!("{scheme}:");
    }
    let after_scheme = uri.get(scheme.len() + 3..).unwrap_or_default();
    let authority = after_scheme.split(['/', '?']).next().unwrap_or_default();
    // CSP has no syntax for IPv6 addresses.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':');
    if !authority.is_empty() && authority.bytes().all(is_plain) {
        return format!("{scheme}://{authority}");
    }
    format!("{scheme}:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_may_lead_to_the_client_and_nowhere_else() {
        for (uri, expected) in [
            ("https://tools.example/cb?a=1", "https://tools.example"),
            ("http://127.0.0.1:33418/", "http://127.0.0.1:33418"),
            ("http://[::1]:33418/", "http:"),
            ("cursor://anysphere.cursor-mcp/oauth/callback", "cursor:"),
            ("com.example.app:/callback", "com.example.app:"),
            ("https://a;b/", "https:"),
        ] {
            assert_eq!(form_target(uri), expected);
        }
    }
}
