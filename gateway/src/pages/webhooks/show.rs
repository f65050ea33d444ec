//! `GET /w/{id}/webhooks/{webhook}`: the state of a webhook, its deliveries, and dead letters.

use cairn_proto::domain::{WebhookDeliveryState, WebhookStatus};
use cairn_proto::ids::{WebhookId, WorkspaceId};
use http::request::Parts;
use maud::{Markup, html};

use super::list::filters_in_words;
use super::{RENDERED_AT, address, all, require_manager, status_badge};
use crate::answers::{TestedWebhook, Webhook, WebhookDelivery};
use crate::extract::PathIds;
use crate::operations::webhooks;
use crate::operations::{Page, Paging};
use crate::pages::parts::{self as part, Pages, Tone};
use crate::pages::visitor::{Visitor, see_other};
use crate::pages::{Answer, frame, is_stale, marks, words};

const PAGE_SIZE: u32 = 50;

pub(super) async fn show(
    visitor: Visitor,
    PathIds(_, id): PathIds<WorkspaceId, WebhookId>,
    parts: Parts,
) -> Answer {
    show_page(&visitor, id, marks(&parts), None).await
}

/// The page with the result of a ping.
pub(super) async fn show_page(
    visitor: &Visitor,
    id: WebhookId,
    trail: Vec<String>,
    tested: Option<&TestedWebhook>,
) -> Answer {
    require_manager(visitor)?;
    let here = visitor.here()?.id;
    let own = address(here, id);
    let paging = Paging { limit: Some(PAGE_SIZE), cursor: trail.last().cloned() };
    let found = tokio::try_join!(
        webhooks::get(&visitor.person, id),
        webhooks::deliveries(&visitor.person, id, None, paging),
    );
    let (webhook, listed) = match found {
        // A stale page token: start over.
        Err(problem) if is_stale(&problem, &trail) => return Ok(see_other(&own)),
        found => found?,
    };
    let pages = Pages::of(&own, &[], trail, PAGE_SIZE, &listed);
    let body = html! {
        @if let Some(tested) = tested { (ping(tested)) }
        (state(&webhook))
        (facts(&webhook))
        h2 { "Deliveries" }
        @if webhook.dead_letters > 1 {
            (part::action(&format!("{own}/replay"), "Replay all dead letters", "", &[]))
        }
        @if listed.items.is_empty() { p.quiet { "Nothing was sent yet." } } @else {
            (deliveries(&own, &listed))
            (part::pages(&pages))
        }
    };
    let page = frame::Page::new(&webhook.name)
        .heading(html! { bdi { (webhook.name) } })
        .crumbs(vec![("Webhooks".to_owned(), all(here))])
        .actions(actions(visitor, &own, &webhook));
    Ok(page.show(visitor, &body))
}

fn ping(tested: &TestedWebhook) -> Markup {
    html! {
        p role="status" {
            @if tested.ok { (part::badge(Tone::Ok, "Arrived")) } @else { (part::badge(Tone::Wrong, "Not arrived")) }
            " " bdi { (words::sentence(&tested.message)) } " It took " (words::grouped(tested.duration_ms)) " ms."
        }
    }
}

fn actions(visitor: &Visitor, own: &str, webhook: &Webhook) -> Markup {
    let number = visitor.now().as_micros();
    html! {
        (part::action(&format!("{own}/test"), "Send a ping", "", &[]))
        a.button href={ (own) "/change" } data-key="e" { "Change" }
        @if webhook.enabled {
            (part::action(&format!("{own}/disable"), "Disable", "", &[]))
        } @else {
            (part::action(&format!("{own}/enable"), "Enable", "", &[]))
        }
        (part::opens("rotate", "New secret", ""))
        (part::dialog("rotate", "Give it another secret?", &html! {
            p { "The new secret is shown once. For a day each message is signed with both, so that the receiver can be changed in between." }
        }, &format!("{own}/rotate"), "New secret", &html! { input type="hidden" name=(RENDERED_AT) value=(number); }))
        (part::opens("delete", "Delete", ""))
        (part::dialog("delete", "Delete this webhook?", &html! {
            p { "Nothing is sent to it any more. What it has not been told of, and its dead letters, are gone for good." }
        }, &format!("{own}/delete"), "Delete", &html! {}))
    }
}

/// The state in sentences.
fn state(webhook: &Webhook) -> Markup {
    html! {
        p {
            (status_badge(webhook.status)) " "
            @match webhook.status {
                WebhookStatus::Active => "It is told what changes.",
                WebhookStatus::Failing => {
                    "The last try failed."
                    @if let Some(at) = &webhook.next_try_at { " The next one is at " (part::time(at)) "." }
                },
                WebhookStatus::Disabled => "Nothing is sent. Whoever enables it takes it over, and it goes on where it was.",
            }
        }
        @if let Some(reason) = webhook.disabled_reason.as_ref().or(webhook.last_error.as_ref()) {
            div.notice { p { strong { "Why: " } bdi { (words::sentence(reason)) } } }
        }
    }
}

fn facts(webhook: &Webhook) -> Markup {
    html! {
        dl.facts {
            dt { "Address" } dd { bdi { (webhook.url) } }
            dt { "Changes of" } dd { (filters_in_words(webhook)) }
            dt { "Acts for" } dd { bdi { (webhook.acts_for.name) } span.hint { "It ends when they are no longer owner or admin." } }
            dt { "Last delivered" } dd { (part::time_or(webhook.last_delivered_at.as_deref(), "never")) }
            dt { "Last tried" } dd { (part::time_or(webhook.last_tried_at.as_deref(), "never")) @if let Some(status) = webhook.last_status { ", answered with " (status) } }
            @if let Some(until) = &webhook.previous_secret_until { dt { "The secret before" } dd { "signs until " (part::time(until)) } }
        }
    }
}

fn deliveries(own: &str, listed: &Page<WebhookDelivery>) -> Markup {
    let rows = html! {
        @for delivery in &listed.items {
            tr {
                th scope="row" { (part::time(&delivery.created_at)) span.hint { (delivery.id) } }
                td {
                    (how_far(delivery.state))
                    @if let Some(error) = &delivery.last_error { span.hint { bdi { (words::sentence(error)) } } }
                }
                td.number { (words::grouped(u64::from(delivery.changes))) }
                td.number { (words::grouped(u64::from(delivery.tries))) }
                td { (part::time_or(delivery.next_try_at.as_deref(), "none")) }
                td {
                    @if delivery.state == WebhookDeliveryState::Dead {
                        (part::action(&format!("{own}/replay"), "Replay", &delivery.id, &[("delivery", &delivery.id)]))
                    }
                }
            }
        }
    };
    part::table("Deliveries", &["Made", "State", "Changes", "Tries", "Next try", ""], &rows)
}

fn how_far(state: WebhookDeliveryState) -> Markup {
    match state {
        WebhookDeliveryState::Pending => part::badge(Tone::Warn, "Pending"),
        WebhookDeliveryState::Delivered => part::badge(Tone::Ok, "Delivered"),
        WebhookDeliveryState::Dead => part::badge(Tone::Wrong, "Dead letter"),
        WebhookDeliveryState::Replaying => part::badge(Tone::Warn, "Replaying"),
    }
}
