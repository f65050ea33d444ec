//! `GET /w/{id}/webhooks`.

use maud::{Markup, html};

use super::{address, all, kind_word, require_manager, status_badge};
use crate::answers::Webhook;
use crate::operations::webhooks;
use crate::pages::frame::Page;
use crate::pages::visitor::{Here, Visitor};
use crate::pages::{Answer, parts as part, words};

pub(super) async fn show(visitor: Visitor) -> Answer {
    require_manager(&visitor)?;
    let here = visitor.here()?;
    let listed = webhooks::list(&visitor.person).await?;
    let body = html! {
        @if listed.is_empty() {
            (part::empty("A webhook is an address of yours that is told what changes here: which items, never their texts. Each message is signed.", &html! {}))
        } @else {
            (table(here, &listed))
        }
    };
    let actions = html! { a.button.primary href={ (all(here.id)) "/new" } data-key="n" { "New webhook" } };
    Ok(Page::new("Webhooks").actions(actions).show(&visitor, &body))
}

fn table(here: &Here, webhooks: &[Webhook]) -> Markup {
    let rows = html! {
        @for webhook in webhooks {
            tr {
                th scope="row" {
                    a href=(address(here.id, &webhook.id)) { bdi { (webhook.name) } }
                    span.hint { bdi { (webhook.url) } }
                }
                td {
                    (status_badge(webhook.status))
                    @if let Some(reason) = webhook.disabled_reason.as_ref().or(webhook.last_error.as_ref()) {
                        span.hint { bdi { (words::sentence(reason)) } }
                    }
                }
                td { (filters_in_words(webhook)) }
                td { (part::time_or(webhook.last_delivered_at.as_deref(), "never")) }
                td.number { (words::grouped(webhook.dead_letters)) }
            }
        }
    };
    part::table("Webhooks", &["Name", "Status", "Changes of", "Last delivered", "Dead letters"], &rows)
}

/// The event filters in words.
pub(super) fn filters_in_words(webhook: &Webhook) -> Markup {
    html! {
        @if webhook.kinds.is_empty() { "Everything" }
        @for (at, kind) in webhook.kinds.iter().enumerate() {
            @if at > 0 { ", " }
            (kind_word(*kind))
        }
        @if !webhook.folder_ids.is_empty() {
            span.hint { "in " (words::count(webhook.folder_ids.len() as u64, "folder", "folders")) }
        }
    }
}
