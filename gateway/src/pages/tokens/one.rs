//! `/w/{id}/tokens/{token}`: one token, with what it reaches now.

use cairn_chassis::status::Problem;
use cairn_proto::ids::{TokenId, WorkspaceId};
use maud::html;

use super::reach::Reach;
use super::{address, deeds, permitted, standing};
use crate::extract::PathIds;
use crate::operations::tokens;
use crate::pages::frame::Page;
use crate::pages::visitor::Visitor;
use crate::pages::{Answer, parts};

pub(super) async fn show(visitor: Visitor, PathIds(_, id): PathIds<WorkspaceId, TokenId>) -> Answer {
    let here = visitor.here()?;
    let id = id.to_string();
    let listed = tokens::list(&visitor.person, here.id).await?;
    let token = listed.into_iter().find(|token| token.id == id);
    let token = token.ok_or_else(|| Problem::not_found("there is no such token"))?;
    let folders = token.scope.folder_ids.as_deref().unwrap_or_default();
    let reach = Reach::of(&visitor.context()?, folders).await?;
    let body = html! {
        p { (standing(&token, visitor.now())) " " (reach.sentence()) }
        dl.facts {
            dt { "Ends with" } dd { code { "…" (token.last_four) } }
            dt { "May" } dd { (permitted(&token.permissions)) }
            @if !reach.folders.is_empty() {
                dt { "Folders" }
                dd { ul { @for path in &reach.folders { li { bdi { (path) } } } } }
            }
            dt { "Made" } dd { (parts::time(&token.created_at)) }
            dt { "Last used" } dd { (parts::time_or(token.last_used_at.as_deref(), "never")) }
            dt { "Ends" } dd { (parts::time_or(token.expires_at.as_deref(), "no end")) }
        }
    };
    let page = Page::new("Token").heading(html! { bdi { (token.name) } }).actions(deeds(here, &token));
    Ok(page.crumbs(vec![("Tokens".to_owned(), address(here.id))]).show(&visitor, &body))
}
