//! Actions on a webhook from its page.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::status::Problem;
use cairn_proto::ids::{WebhookDeliveryId, WebhookId, WorkspaceId};
use maud::html;

use super::create::secret_page;
use super::{RENDERED_AT, address, all, crumbs, require_manager, show};
use crate::extract::PathIds;
use crate::operations::webhooks;
use crate::pages::Answer;
use crate::pages::form::Form;
use crate::pages::frame::Page;
use crate::pages::notice::Notice;
use crate::pages::visitor::Visitor;

/// `POST /w/{id}/webhooks/{webhook}/test`.
pub(super) async fn test(visitor: Visitor, PathIds(_, id): PathIds<WorkspaceId, WebhookId>) -> Answer {
    let tested = webhooks::test(&visitor.person, id).await?;
    show::show_page(&visitor, id, Vec::new(), Some(&tested)).await
}

/// `POST /w/{id}/webhooks/{webhook}/replay`: one dead letter, or all.
pub(super) async fn replay(
    visitor: Visitor,
    PathIds(_, id): PathIds<WorkspaceId, WebhookId>,
    form: Form,
) -> Answer {
    let missing = |_| Problem::not_found("there is no such delivery of this webhook");
    let delivery = match form.text("delivery") {
        "" => None,
        text => Some(text.parse::<WebhookDeliveryId>().map_err(missing)?),
    };
    webhooks::replay(&visitor.person, id, delivery).await?;
    Ok(visitor.done(&address(visitor.here()?.id, id), &Notice::Retried))
}

/// `POST /w/{id}/webhooks/{webhook}/enable`.
pub(super) async fn enable(visitor: Visitor, PathIds(_, id): PathIds<WorkspaceId, WebhookId>) -> Answer {
    switch(&visitor, id, true).await
}

/// `POST /w/{id}/webhooks/{webhook}/disable`.
pub(super) async fn disable(visitor: Visitor, PathIds(_, id): PathIds<WorkspaceId, WebhookId>) -> Answer {
    switch(&visitor, id, false).await
}

async fn switch(visitor: &Visitor, id: WebhookId, enabled: bool) -> Answer {
    webhooks::switch(&visitor.person, id, enabled).await?;
    Ok(visitor.done(&address(visitor.here()?.id, id), &Notice::Saved))
}

/// `POST /w/{id}/webhooks/{webhook}/rotate`: shows the new secret. Resubmitting the same form, as a reload does, has
/// no effect.
pub(super) async fn rotate(
    visitor: Visitor,
    PathIds(_, id): PathIds<WorkspaceId, WebhookId>,
    form: Form,
) -> Answer {
    require_manager(&visitor)?;
    let webhook = webhooks::get(&visitor.person, id).await?;
    let here = visitor.here()?.id;
    let shown =
        form.text(RENDERED_AT).parse::<i64>().ok().map(|micros| Timestamp::from_micros(micros).as_seconds());
    let changed = Timestamp::parse_rfc3339(&webhook.updated_at).map(Timestamp::as_seconds);
    if shown.zip(changed).is_some_and(|(shown, changed)| changed > shown) {
        let body = html! {
            p { "The webhook was changed since this form was shown, perhaps by this form itself. It has the secret that it had." }
            div.buttons { a.button href=(address(here, id)) { "To the webhook" } }
        };
        let page = Page::new("Not done again").crumbs(crumbs(here, &webhook.id, &webhook.name));
        return Ok(page.show(&visitor, &body));
    }
    let made = webhooks::rotate(&visitor.person, id).await?;
    let told = html! { p { bdi { (made.webhook.name) } " has another secret. For a day each message is signed with both." } };
    secret_page(&visitor, "New secret", &told, &made)
}

/// `POST /w/{id}/webhooks/{webhook}/delete`.
pub(super) async fn delete(visitor: Visitor, PathIds(_, id): PathIds<WorkspaceId, WebhookId>) -> Answer {
    webhooks::delete(&visitor.person, id).await?;
    Ok(visitor.done(&all(visitor.here()?.id), &Notice::Deleted))
}
