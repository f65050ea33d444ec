//! `GET /w/{id}/sources`.

use cairn_proto::domain::SourceMode;
use cairn_proto::ids::WorkspaceId;
use maud::{Markup, html};

use super::{address, all, budget, mode_word, status_badge};
use crate::answers::{ConnectedSource, optional_time};
use crate::operations::sources;
use crate::pages::frame::Page;
use crate::pages::visitor::Visitor;
use crate::pages::{Answer, parts as part, words};

pub(super) async fn show(visitor: Visitor) -> Answer {
    let here = visitor.here()?;
    let listed = sources::list_connected(&visitor.person).await?;
    let body = html! {
        @if listed.is_empty() {
            (part::empty("A source is a system outside, such as a wiki or a repository, whose documents are searched here.", &html! {
                p { a href="/docs/guides/connecting-a-source" { "What can be connected, and what it costs" } }
            }))
        } @else {
            div #sources data-live="run" data-poll="" { (table(here.id, &listed)) }
        }
        @if !visitor.manages() { (part::not_in_role(here)) }
    };
    let actions = html! {
        @if visitor.manages() { a.button.primary href={ (all(here.id)) "/new" } data-key="n" { "Connect a source" } }
    };
    Ok(Page::new("Sources").live().actions(actions).show(&visitor, &body))
}

fn table(workspace: WorkspaceId, sources: &[ConnectedSource]) -> Markup {
    let rows = html! {
        @for connected in sources {
            @let source = &connected.source;
            tr {
                th scope="row" {
                    a href=(address(workspace, &source.id)) { bdi { (source.name) } }
                    span.hint { (source.provider) }
                }
                td {
                    (status_badge(&source.status))
                    @if let Some(error) = &source.error { span.hint { bdi { (words::sentence(error)) } } }
                }
                td { (SourceMode::from_number(source.mode).map_or("", mode_word)) }
                td.number { (words::grouped(source.document_count)) }
                td { (part::time_or(optional_time(source.last_synced_at.as_ref()).as_deref(), "never")) }
                td { (budget(&connected.budget)) }
            }
        }
    };
    part::table("Sources", &["Name", "Status", "Mode", "Documents", "Last synced", "Questions"], &rows)
}
