//! The token exchange, handled here so that it is rate-limited like a REST request: an invalid token counts against
//! its address, others against the token.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use cairn_chassis::call::Call;
use cairn_chassis::status::Problem;
use cairn_proto::auth::v1::{ExchangeRequest, ExchangeResponse};
use http::request::Parts;
use tonic::Status;
use tonic::server::{Grpc, UnaryService};
use tonic_prost::ProstCodec;

use super::Listener;

/// A token is 52 characters.
const MAX_BYTES: usize = 4 * 1024;

/// Answers the exchange. The address check needs the token, because a recently valid one is exempt from it.
pub(super) async fn serve(
    listener: &Listener,
    parts: Parts,
    body: Body,
    budget: Duration,
    id: &str,
) -> Result<Response, Problem> {
    let call = Call::within(budget).with_request_id(id);
    let service = Exchange { listener: listener.clone(), head: parts.clone(), call };
    let mut grpc = Grpc::new(ProstCodec::<ExchangeResponse, ExchangeRequest>::default())
        .max_decoding_message_size(MAX_BYTES);
    let request = http::Request::from_parts(parts, tonic::body::Body::new(body));
    Ok(grpc.unary(service, request).await.map(Body::new))
}

struct Exchange {
    listener: Listener,
    head: Parts,
    call: Call,
}

impl UnaryService<ExchangeRequest> for Exchange {
    type Response = ExchangeResponse;
    type Future = Pin<Box<dyn Future<Output = Result<tonic::Response<ExchangeResponse>, Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<ExchangeRequest>) -> Self::Future {
        let Self { listener, head, call } = self;
        let (listener, head, call) = (listener.clone(), head.clone(), call.clone());
        let token = request.into_inner().api_token;
        Box::pin(async move {
            let identity = listener.authenticator.open_token(&token, &head, &call).await?;
            listener.limits.admit(&head, &identity.claims, 1).await.map_err(Problem::from)?;
            let expires_at = Some(identity.claims.expires_at.to_proto());
            Ok(tonic::Response::new(ExchangeResponse { identity: identity.signed.clone(), expires_at }))
        })
    }
}
