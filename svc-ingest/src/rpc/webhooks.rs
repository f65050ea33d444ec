//! `cairn.ingest.v1.WebhookService`.

mod wire;

use cairn_chassis::identity::Verifier;
use cairn_proto::domain::WebhookDeliveryState;
use cairn_proto::ingest::v1::webhook_service_server::{WebhookService, WebhookServiceServer};
use cairn_proto::ingest::v1::{
    CreateWebhookRequest, CreateWebhookResponse, DeleteWebhookRequest, DeleteWebhookResponse,
    GetWebhookRequest, GetWebhookResponse, ListWebhookDeliveriesRequest, ListWebhookDeliveriesResponse,
    ListWebhooksRequest, ListWebhooksResponse, ReplayWebhookDeliveriesRequest,
    ReplayWebhookDeliveriesResponse, RotateWebhookSecretRequest, RotateWebhookSecretResponse,
    TestWebhookRequest, TestWebhookResponse, UpdateWebhookRequest, UpdateWebhookResponse,
};
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use crate::model::{PageRequest, SOURCE_PAGES};
use crate::webhooks::{Manager, Webhooks};

pub(crate) fn server(webhooks: Webhooks, verifier: Verifier) -> WebhookServiceServer<Rpc> {
    WebhookServiceServer::new(Rpc { webhooks, verifier })
}

#[derive(Debug)]
pub(crate) struct Rpc {
    webhooks: Webhooks,
    verifier: Verifier,
}

impl Rpc {
    /// An owner or admin of the workspace, with a session.
    async fn manager(&self, metadata: &MetadataMap, what: &str) -> Result<Manager, Status> {
        let identity = self.verifier.authenticate(metadata).await?;
        identity.require_manager(what)?;
        let (workspace, person) = (identity.workspace_id()?, identity.user_id()?);
        Ok(Manager { workspace, person, name: identity.principal.name })
    }
}

#[tonic::async_trait]
impl WebhookService for Rpc {
    async fn list_webhooks(
        &self,
        request: Request<ListWebhooksRequest>,
    ) -> Result<Response<ListWebhooksResponse>, Status> {
        let manager = self.manager(request.metadata(), "reading webhooks").await?;
        let webhooks = self.webhooks.list(&manager).await?.into_iter().map(wire::webhook).collect();
        Ok(Response::new(ListWebhooksResponse { webhooks }))
    }

    async fn get_webhook(
        &self,
        request: Request<GetWebhookRequest>,
    ) -> Result<Response<GetWebhookResponse>, Status> {
        let manager = self.manager(request.metadata(), "reading webhooks").await?;
        let shown = self.webhooks.get(&manager, &request.get_ref().webhook_id).await?;
        Ok(Response::new(GetWebhookResponse { webhook: Some(wire::webhook(shown)) }))
    }

    async fn create_webhook(
        &self,
        request: Request<CreateWebhookRequest>,
    ) -> Result<Response<CreateWebhookResponse>, Status> {
        let manager = self.manager(request.metadata(), "making webhooks").await?;
        let draft = wire::draft(request.into_inner().webhook.unwrap_or_default());
        let (shown, secret) = self.webhooks.create(&manager, draft).await?;
        let (webhook, secret) = (Some(wire::webhook(shown)), secret.expose().to_owned());
        Ok(Response::new(CreateWebhookResponse { webhook, secret }))
    }

    async fn update_webhook(
        &self,
        request: Request<UpdateWebhookRequest>,
    ) -> Result<Response<UpdateWebhookResponse>, Status> {
        let manager = self.manager(request.metadata(), "changing webhooks").await?;
        let (id, patch) = wire::patch(request.into_inner());
        let shown = self.webhooks.update(&manager, &id, patch).await?;
        Ok(Response::new(UpdateWebhookResponse { webhook: Some(wire::webhook(shown)) }))
    }

    async fn delete_webhook(
        &self,
        request: Request<DeleteWebhookRequest>,
    ) -> Result<Response<DeleteWebhookResponse>, Status> {
        let manager = self.manager(request.metadata(), "deleting webhooks").await?;
        self.webhooks.delete(&manager, &request.get_ref().webhook_id).await?;
        Ok(Response::new(DeleteWebhookResponse {}))
    }

    async fn rotate_webhook_secret(
        &self,
        request: Request<RotateWebhookSecretRequest>,
    ) -> Result<Response<RotateWebhookSecretResponse>, Status> {
        let manager = self.manager(request.metadata(), "changing webhooks").await?;
        let (shown, secret) = self.webhooks.rotate(&manager, &request.get_ref().webhook_id).await?;
        let (webhook, secret) = (Some(wire::webhook(shown)), secret.expose().to_owned());
        Ok(Response::new(RotateWebhookSecretResponse { webhook, secret }))
    }

    async fn test_webhook(
        &self,
        request: Request<TestWebhookRequest>,
    ) -> Result<Response<TestWebhookResponse>, Status> {
        let manager = self.manager(request.metadata(), "testing webhooks").await?;
        let tested = self.webhooks.test(&manager, &request.get_ref().webhook_id).await?;
        Ok(Response::new(wire::tested(tested)))
    }

    async fn list_webhook_deliveries(
        &self,
        request: Request<ListWebhookDeliveriesRequest>,
    ) -> Result<Response<ListWebhookDeliveriesResponse>, Status> {
        let manager = self.manager(request.metadata(), "reading webhooks").await?;
        let asked = request.get_ref();
        let state = WebhookDeliveryState::from_number(asked.state);
        let page = PageRequest::new(SOURCE_PAGES, asked.page_size, &asked.page_token)?;
        let page = self.webhooks.deliveries(&manager, &asked.webhook_id, state, page).await?;
        Ok(Response::new(ListWebhookDeliveriesResponse {
            deliveries: page.items.into_iter().map(wire::delivery).collect(),
            next_page_token: page.next,
            total_size: page.total,
        }))
    }

    async fn replay_webhook_deliveries(
        &self,
        request: Request<ReplayWebhookDeliveriesRequest>,
    ) -> Result<Response<ReplayWebhookDeliveriesResponse>, Status> {
        let manager = self.manager(request.metadata(), "replaying deliveries").await?;
        let asked = request.get_ref();
        let delivery = asked.delivery_id.as_deref();
        let replayed = self.webhooks.replay(&manager, &asked.webhook_id, delivery).await?;
        Ok(Response::new(ReplayWebhookDeliveriesResponse { replayed }))
    }
}
