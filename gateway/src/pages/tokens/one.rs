//! `/w/{id}/tokens/{token}`: a token with its current reach, and links that view pages as it.

use cairn_chassis::status::{Problem, Reason};
use cairn_proto::ids::{TokenId, WorkspaceId};
use maud::html;
use serde_json::json;

use super::{address, last_use, permitted, reach, status_badge, token_actions};
use crate::answers::Token;
use crate::error::Error;
use crate::extract::PathIds;
use crate::operations::tokens::{self, UpdateToken};
use crate::operations::views::ViewTarget;
use crate::pages::form::{self, Form};
use crate::pages::frame::Page;
use crate::pages::notice::Notice;
use crate::pages::popover::{Popovers, Refused};
use crate::pages::visitor::Visitor;
use crate::pages::{Answer, folders, parts, questions};

/// The id of the rename form.
const RENAME: &str = "rename";

/// A token of the workspace, if it is visible to the visitor.
pub(super) async fn find(visitor: &Visitor, id: TokenId) -> Result<Token, Error> {
    let id = id.to_string();
    let listed = tokens::list(&visitor.person, visitor.here()?.id).await?;
    let token = listed.into_iter().find(|token| token.id == id);
    Ok(token.ok_or_else(|| Problem::not_found("there is no such token"))?)
}

pub(super) async fn show(visitor: Visitor, PathIds(_, id): PathIds<WorkspaceId, TokenId>) -> Answer {
    let token = find(&visitor, id).await?;
    show_page(&visitor, id, &token, None).await
}

/// `POST /w/{id}/tokens/{token}/rename`.
pub(super) async fn rename(
    visitor: Visitor,
    PathIds(workspace, id): PathIds<WorkspaceId, TokenId>,
    form: Form,
) -> Answer {
    let token = find(&visitor, id).await?;
    let renamed = match form::input::<UpdateToken>(json!({"name": form.trimmed("name")})) {
        Ok(input) => tokens::update(&visitor.person, workspace, id, input).await,
        Err(problem) => Err(problem),
    };
    match renamed {
        Ok(_) => Ok(visitor.done(&format!("{}/{id}", address(workspace)), &Notice::Renamed)),
        Err(problem) if problem.reason == Reason::ValidationError => {
            let refused = Refused { of: RENAME, form: &form, problem: &problem };
            show_page(&visitor, id, &token, Some(refused)).await
        }
        Err(problem) => Err(problem.into()),
    }
}

async fn show_page(visitor: &Visitor, id: TokenId, token: &Token, refused: Option<Refused<'_>>) -> Answer {
    let here = visitor.here()?;
    let reach = visitor.see(ViewTarget::Token(id)).await?.reach(&visitor.context()?).await?;
    let mut forms = Popovers::new(refused);
    forms.add(RENAME, "Rename", None, |filled| {
        html! {
            form method="post" action={ (address(here.id)) "/" (id) "/rename" } {
                (filled.field(parts::Field::text("name", "Name"), &token.name).render())
                button type="submit" { "Rename token" }
            }
        }
    });
    let body = html! {
        (parts::summary(refused.map(|refused| refused.problem), &[("name", "Name")]))
        (forms.open())
        p { (status_badge(token, visitor.now())) " " (reach::sentences(&reach)) }
        p {
            "See as this token: "
            a href={ "/w/" (here.id) "/search?as=" (id) } { "search" } ", "
            a href={ (folders::address(here.id, None)) "?as=" (id) } { "files" } ", "
            a href={ "/w/" (here.id) "/databases?as=" (id) } { "databases" } ", "
            a href={ "/w/" (here.id) "/memories?as=" (id) } { "memories" } "."
        }
        dl.facts {
            dt { "Ends with" } dd { code { "…" (token.last_four) } }
            dt { "May" } dd { (permitted(&token.permissions)) }
            @if !reach.folder_paths.is_empty() {
                dt { "Folders" }
                dd { (reach::folders(&reach)) }
            }
            dt { "Made" } dd { (parts::time(&token.created_at)) }
            dt { "Last used" } dd { (last_use(token)) }
            dt { "Ends" } dd { (parts::time_or(token.expires_at.as_deref(), "no end")) }
        }
        @if visitor.question_log_days().is_some() {
            p { a href={ (questions::address(here.id)) "?who=" (token.id) } { "What it asked, and what it was answered" } }
        }
    };
    let actions = html! { (forms.buttons()) (token_actions(visitor, here, token)) };
    let page = Page::new("Token").heading(html! { bdi { (token.name) } }).actions(actions);
    let page = if refused.is_some() { page.failed() } else { page };
    Ok(page.crumbs(vec![("Tokens".to_owned(), address(here.id))]).show(visitor, &body))
}
