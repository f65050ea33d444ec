//! `/account`: the person's password, sessions, and display preferences of this browser.

use axum::extract::State;
use axum::response::Response;
use cairn_chassis::status::{Problem, Reason, Violation};
use cairn_proto::ids::SessionId;
use http::header;
use http::request::Parts;
use maud::{Markup, html};

use super::form::Form;
use super::frame::Page;
use super::look::{Density, Keys, Look, Theme};
use super::notice::Notice;
use super::parts::{self, Choice, Field, Tone};
use super::sign_in::with_cookie;
use super::visitor::{Visitor, see_other};
use super::{Answer, PERSON, own_sessions};
use crate::answers::OwnSession;
use crate::cost::Cost;
use crate::extract::PathId;
use crate::operations::sessions::Sessions;
use crate::routes::Routes;

const PAGE: &str = "/account";
const CURRENT: &str = "currentPassword";
const NEW: &str = "newPassword";

pub(super) fn routes() -> Routes {
    let form = PERSON.with_secrets();
    Routes::default()
        .get(form, PAGE, show)
        .post(form.costing(Cost::PASSWORD), "/account/password", change_password)
        .post(form, "/account/look", change_look)
        .post(form, "/account/sessions/{session}/end", end_session)
        .post(form, "/account/sign-out-everywhere", sign_out_everywhere)
}

async fn show(State(sessions): State<Sessions>, visitor: Visitor, parts: Parts) -> Response {
    show_page(&sessions, &visitor, &parts, None).await
}

async fn show_page(
    sessions: &Sessions,
    visitor: &Visitor,
    parts: &Parts,
    problem: Option<&Problem>,
) -> Response {
    let listed = sessions.list(parts, &visitor.person.call).await;
    let page = Page::new("Account");
    let page = if problem.is_some() { page.failed() } else { page };
    page.show(visitor, &body(visitor, &listed, problem))
}

async fn end_session(
    State(sessions): State<Sessions>,
    visitor: Visitor,
    PathId(id): PathId<SessionId>,
) -> Answer {
    sessions.end(&visitor.person.call, id).await?;
    Ok(visitor.done(PAGE, &Notice::SessionEnded))
}

async fn change_password(
    State(sessions): State<Sessions>,
    visitor: Visitor,
    parts: Parts,
    form: Form,
) -> Answer {
    let changed = match required(&form) {
        Some(problem) => Err(problem),
        None => {
            let (current, new) = (form.text(CURRENT).to_owned(), form.text(NEW).to_owned());
            sessions.change_password(&parts, &visitor.person.call, current, new).await
        }
    };
    match changed {
        Ok(()) => Ok(visitor.done(PAGE, &Notice::PasswordChanged)),
        Err(problem) if problem.reason == Reason::ValidationError => {
            Ok(show_page(&sessions, &visitor, &parts, Some(&problem)).await)
        }
        Err(problem) => Err(problem.into()),
    }
}

/// Empty fields are rejected here: to svc-auth an empty password is a wrong one, and counts as a guess.
fn required(form: &Form) -> Option<Problem> {
    let empty = [CURRENT, NEW].into_iter().filter(|name| form.text(name).is_empty());
    let broken: Vec<_> = empty.map(|name| Violation::new(name, "required", "is required")).collect();
    (!broken.is_empty()).then(|| Problem::validation(broken))
}

async fn change_look(visitor: Visitor, form: Form) -> Response {
    let look = Look {
        theme: Theme::named(form.text("theme")),
        density: Density::named(form.text("density")),
        keys: Keys::named(if form.has("keys") { "on" } else { "off" }),
    };
    let mut response = visitor.done(PAGE, &Notice::LookChanged);
    if let Some(cookie) = look.cookie() {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

async fn sign_out_everywhere(State(sessions): State<Sessions>, visitor: Visitor, parts: Parts) -> Answer {
    sessions.close_all(&parts, &visitor.person.call).await?;
    Ok(with_cookie(see_other("/sign-in"), sessions.no_cookie()?))
}

fn body(visitor: &Visitor, listed: &Result<Vec<OwnSession>, Problem>, problem: Option<&Problem>) -> Markup {
    let user = &visitor.user;
    html! {
        (parts::summary(problem, &[(CURRENT, "Current password"), (NEW, "New password")]))
        section.card aria-labelledby="who" {
            h2 #who { "You" }
            dl.facts {
                dt { "Name" } dd { bdi { (user.name) } }
                dt { "Email" }
                dd {
                    (user.email) " "
                    @if user.email_verified { (parts::badge(Tone::Ok, "Verified")) } @else { (parts::badge(Tone::Plain, "Not verified")) }
                }
            }
        }
        section.card aria-labelledby="password-title" {
            h2 #password-title { "Password" }
            form.fields method="post" action="/account/password" {
                input type="hidden" name="username" value=(user.email) autocomplete="username";
                (Field::password(CURRENT, "Current password", "current-password").problem(problem).render())
                (Field::password(NEW, "New password", "new-password").hint("At least 8 characters.").problem(problem).render())
                div.buttons { button.primary type="submit" { "Change password" } }
            }
        }
        (look(visitor.look))
        section.card aria-labelledby="sessions" {
            h2 #sessions { "Sessions" }
            (own_sessions::list(listed))
            p { "Signing out everywhere ends every session of yours, this one too. Tokens and apps keep working." }
            div.buttons {
                (parts::action("/sign-out", "Sign out", "", &[]))
                (parts::action("/account/sign-out-everywhere", "Sign out everywhere", "", &[]))
            }
        }
    }
}

fn look(look: Look) -> Markup {
    let themes = Theme::ALL.iter().map(|(theme, word)| Choice {
        value: word,
        label: match theme {
            Theme::System => "As the system",
            Theme::Light => "Light",
            Theme::Dark => "Dark",
        },
        is_chosen: *theme == look.theme,
    });
    let densities = Density::ALL.iter().map(|(density, word)| Choice {
        value: word,
        label: match density {
            Density::Comfortable => "Comfortable",
            Density::Dense => "Dense",
        },
        is_chosen: *density == look.density,
    });
    html! {
        section.card aria-labelledby="look" {
            h2 #look { "This browser" }
            form.fields method="post" action="/account/look" {
                (parts::choices("theme", "Theme", themes))
                (parts::choices("density", "Rows", densities))
                div.option {
                    input #keys-on type="checkbox" name="keys" value="on" checked[look.keys == Keys::On];
                    label for="keys-on" { "Single keys" span.hint { "Letters without Ctrl do things: ? lists them." } }
                }
                div.buttons { button type="submit" { "Save" } }
            }
        }
    }
}
