//! Replacing a token whose secret has leaked: a copy is created and shown, then the old one is disabled.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use cairn_chassis::status::Problem;
use cairn_proto::ids::{TokenId, WorkspaceId};
use http::HeaderMap;
use maud::{Markup, html};
use serde_json::json;

use super::create::{self, FormInput, RENDERED_AT};
use super::{address, lives, one};
use crate::answers::Token;
use crate::extract::PathIds;
use crate::operations::tokens::{self, UpdateToken};
use crate::origin::Origins;
use crate::pages::form::{self, Form};
use crate::pages::frame::Page;
use crate::pages::visitor::{Here, Visitor};
use crate::pages::{Answer, parts};

/// Whether the action is offered: only to the token's owner, and not for expired tokens.
fn is_offered(visitor: &Visitor, token: &Token) -> bool {
    token.owner_id == visitor.user.id && lives(token, visitor.now())
}

/// The button with its confirmation.
pub(super) fn button(visitor: &Visitor, here: &Here, token: &Token) -> Markup {
    let dialog = format!("replace-{}", token.id);
    let told = html! { p { "A new token like " bdi { (token.name) } " is made, and its secret is shown once. The old one is switched off: what uses it is refused from now on." } };
    let number = html! { input type="hidden" name=(RENDERED_AT) value=(visitor.now().as_micros()); };
    let path = format!("{}/{}/replace", address(here.id), token.id);
    html! {
        @if is_offered(visitor, token) {
            (parts::opens(&dialog, "Replace", &token.name))
            (parts::dialog(&dialog, "Replace this token?", &told, &path, "Replace token", &number))
        }
    }
}

/// `POST /w/{id}/tokens/{token}/replace`. Resubmitting it creates nothing.
pub(super) async fn replace(
    State(origins): State<Arc<Origins>>,
    headers: HeaderMap,
    visitor: Visitor,
    PathIds(_, id): PathIds<WorkspaceId, TokenId>,
    form: Form,
) -> Answer {
    let here = visitor.here()?;
    let old = one::find(&visitor, id).await?;
    if old.owner_id != visitor.user.id {
        return Err(Problem::forbidden("a token is replaced by whoever made it").into());
    }
    let typed = FormInput::like(&old, &form, &visitor);
    if create::is_made(&visitor, here, &typed, Some(&old.id)).await? {
        return Ok(create::already_created(&visitor, here, &typed.name));
    }
    let made = tokens::create(&visitor.person, here.id, typed.input()?).await?;
    let input: UpdateToken = form::input(json!({"active": false}))?;
    // The new token exists whatever happens to the old one, and its secret can only be shown now.
    let is_off = tokens::update(&visitor.person, here.id, id, input).await.is_ok();
    Ok(show_page(&visitor, here, &made, (is_off, origins.base_url(&headers).as_deref())))
}

fn show_page(
    visitor: &Visitor,
    here: &Here,
    token: &Token,
    (is_off, base): (bool, Option<&str>),
) -> Response {
    let body = html! {
        (create::secret(here, token, base))
        @if is_off { p { "The old one is switched off. Delete it when nothing asks for it any more." } }
        @else { p.notice { "The old one could not be switched off, and still works: switch it off in the list." } }
        div.buttons { a.button href=(address(here.id)) { "Done" } }
    };
    Page::new("Token replaced").crumbs(vec![("Tokens".to_owned(), address(here.id))]).show(visitor, &body)
}
