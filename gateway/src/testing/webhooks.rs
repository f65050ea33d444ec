//! A fake svc-ingest with webhooks in each state. Their names, URLs and errors are hostile.

use cairn_chassis::status::Problem;
use cairn_proto::ingest::v1 as proto;
use cairn_proto::ingest::v1::WebhookDeliveryState as State;
use cairn_proto::ingest::v1::webhook_service_server::WebhookService;
use prost_types::Timestamp;
use tonic::{Request, Response, Status};

use super::console::HOSTILE;

/// A failing webhook.
pub(crate) const WEBHOOK: &str = "0199c0de-0000-7000-8000-0000000000b1";
/// One that was disabled for a reason.
pub(crate) const DISABLED: &str = "0199c0de-0000-7000-8000-0000000000b2";
/// The secret of every new webhook.
pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

const AT: Option<Timestamp> = Some(Timestamp { seconds: 1_800_000_000, nanos: 0 });

type Answered<T> = Result<Response<T>, Status>;

pub(super) struct Webhooks;

fn webhook(id: &str) -> proto::Webhook {
    let is_disabled = id == DISABLED;
    let status = if is_disabled { proto::WebhookStatus::Disabled } else { proto::WebhookStatus::Failing };
    proto::Webhook {
        id: id.into(),
        name: HOSTILE.into(),
        url: format!("https://example.com/{HOSTILE}"),
        kinds: if is_disabled { vec![1, 6] } else { Vec::new() },
        folder_ids: if is_disabled { vec![WEBHOOK.into()] } else { Vec::new() },
        enabled: !is_disabled,
        status: status.into(),
        disabled_reason: is_disabled.then(|| HOSTILE.into()),
        acts_for_id: WEBHOOK.into(),
        acts_for_name: HOSTILE.into(),
        previous_secret_until: if is_disabled { AT } else { None },
        last_tried_at: AT,
        last_delivered_at: None,
        last_status: Some(503),
        last_error: (!is_disabled).then(|| HOSTILE.into()),
        next_try_at: AT,
        dead_letters: 2,
        created_at: AT,
        updated_at: AT,
    }
}

fn known(id: &str) -> Result<proto::Webhook, Status> {
    if [WEBHOOK, DISABLED].contains(&id) {
        return Ok(webhook(id));
    }
    Err(Problem::not_found("there is no such webhook").into())
}

fn delivery(state: State) -> proto::WebhookDelivery {
    proto::WebhookDelivery {
        id: DISABLED.into(),
        state: state.into(),
        changes: 3,
        tries: 9,
        created_at: AT,
        last_tried_at: AT,
        next_try_at: None,
        last_status: Some(503),
        last_error: Some(HOSTILE.into()),
    }
}

#[tonic::async_trait]
impl WebhookService for Webhooks {
    async fn list_webhooks(
        &self,
        _: Request<proto::ListWebhooksRequest>,
    ) -> Answered<proto::ListWebhooksResponse> {
        let webhooks = [WEBHOOK, DISABLED].map(webhook).to_vec();
        Ok(Response::new(proto::ListWebhooksResponse { webhooks }))
    }

    async fn get_webhook(
        &self,
        request: Request<proto::GetWebhookRequest>,
    ) -> Answered<proto::GetWebhookResponse> {
        let webhook = known(&request.into_inner().webhook_id)?;
        Ok(Response::new(proto::GetWebhookResponse { webhook: Some(webhook) }))
    }

    async fn create_webhook(
        &self,
        _: Request<proto::CreateWebhookRequest>,
    ) -> Answered<proto::CreateWebhookResponse> {
        let (webhook, secret) = (Some(webhook(WEBHOOK)), SECRET.into());
        Ok(Response::new(proto::CreateWebhookResponse { webhook, secret }))
    }

    async fn update_webhook(
        &self,
        request: Request<proto::UpdateWebhookRequest>,
    ) -> Answered<proto::UpdateWebhookResponse> {
        let webhook = known(&request.into_inner().webhook_id)?;
        Ok(Response::new(proto::UpdateWebhookResponse { webhook: Some(webhook) }))
    }

    async fn delete_webhook(
        &self,
        request: Request<proto::DeleteWebhookRequest>,
    ) -> Answered<proto::DeleteWebhookResponse> {
        known(&request.into_inner().webhook_id)?;
        Ok(Response::new(proto::DeleteWebhookResponse {}))
    }

    async fn rotate_webhook_secret(
        &self,
        request: Request<proto::RotateWebhookSecretRequest>,
    ) -> Answered<proto::RotateWebhookSecretResponse> {
        let webhook = Some(known(&request.into_inner().webhook_id)?);
        Ok(Response::new(proto::RotateWebhookSecretResponse { webhook, secret: SECRET.into() }))
    }

    async fn test_webhook(
        &self,
        request: Request<proto::TestWebhookRequest>,
    ) -> Answered<proto::TestWebhookResponse> {
        known(&request.into_inner().webhook_id)?;
        let message = HOSTILE.into();
        Ok(Response::new(proto::TestWebhookResponse { ok: false, status: None, message, duration_ms: 1_204 }))
    }

    async fn list_webhook_deliveries(
        &self,
        request: Request<proto::ListWebhookDeliveriesRequest>,
    ) -> Answered<proto::ListWebhookDeliveriesResponse> {
        let asked = request.into_inner();
        known(&asked.webhook_id)?;
        let states = [State::Pending, State::Replaying, State::Dead, State::Delivered];
        let next_page_token = if asked.page_token.is_empty() { "next" } else { "" }.into();
        let deliveries = states.map(delivery).to_vec();
        Ok(Response::new(proto::ListWebhookDeliveriesResponse { deliveries, next_page_token, total_size: 8 }))
    }

    async fn replay_webhook_deliveries(
        &self,
        request: Request<proto::ReplayWebhookDeliveriesRequest>,
    ) -> Answered<proto::ReplayWebhookDeliveriesResponse> {
        known(&request.into_inner().webhook_id)?;
        Ok(Response::new(proto::ReplayWebhookDeliveriesResponse { replayed: 1 }))
    }
}
