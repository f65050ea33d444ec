//! `/w/{id}/apps`: the OAuth grants of agents.

use cairn_proto::domain::Permission;
use cairn_proto::ids::{GrantId, WorkspaceId};
use maud::{Markup, html};

use super::frame::Page;
use super::notice::Notice;
use super::parts;
use super::visitor::{Here, Visitor};
use super::{Answer, MEMBER};
use crate::answers::{Grant, optional_time};
use crate::extract::PathIds;
use crate::operations::grants;
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::default().get(MEMBER, "/w/{id}/apps", show).post(MEMBER, "/w/{id}/apps/{grant}/end", end)
}

async fn show(visitor: Visitor) -> Answer {
    let here = visitor.here()?;
    let listed = grants::list(&visitor.person, here.id).await?;
    let body = html! {
        @if listed.is_empty() {
            (parts::empty("No app has signed in here.", &html! { p { a href={ "/w/" (here.id) "/connect" } { "Connect an agent" } } }))
        } @else {
            (table(here, &listed))
        }
    };
    Ok(Page::new("Apps").show(&visitor, &body))
}

async fn end(visitor: Visitor, PathIds(workspace, grant): PathIds<WorkspaceId, GrantId>) -> Answer {
    grants::revoke(&visitor.person, workspace, grant).await?;
    Ok(visitor.done(&format!("/w/{workspace}/apps"), &Notice::Ended))
}

fn table(here: &Here, listed: &[Grant]) -> Markup {
    let rows = html! {
        @for grant in listed {
            @let dialog = format!("end-{}", grant.id);
            @let told = html! { p { bdi { (grant.client_name) } " opens nothing from now on. It can ask " (grant.user_email) " again." } };
            tr {
                th scope="row" { bdi { (grant.client_name) } span.hint { (grant.redirect_host) } }
                td { (grant.user_email) }
                td { (permitted(grant)) }
                td { (parts::time_or(optional_time(grant.last_used_at.as_ref()).as_deref(), "never")) }
                td { (parts::time_or(optional_time(grant.expires_at.as_ref()).as_deref(), "no end")) }
                td {
                    div.buttons {
                        (parts::opens(&dialog, "End", &grant.client_name))
                        (parts::dialog(&dialog, "End this app's access?", &told, &format!("/w/{}/apps/{}/end", here.id, grant.id), "End access", &html! {}))
                    }
                }
            }
        }
    };
    parts::table("Apps", &["App", "Allowed by", "May", "Last used", "Ends", ""], &rows)
}

fn permitted(grant: &Grant) -> String {
    let words = grant
        .permissions
        .iter()
        .filter_map(|number| Permission::from_number(*number))
        .map(Permission::as_str);
    words.collect::<Vec<_>>().join(", ")
}
