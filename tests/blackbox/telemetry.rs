//! Traces are exported by OTLP when an endpoint is configured, one trace for the whole path of a request.

use std::future::IntoFuture as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::Uri;
use axum::response::IntoResponse;
use cairn_chassis::server;
use tonic::{Code, Status};

use crate::support::prelude::*;
use crate::support::single::SingleProcess;
use crate::support::wait::eventually;

const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const TRACE_ID: [u8; 16] = *b"\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e\x47\x36";
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A collector that stores the bytes that it receives.
#[derive(Debug, Clone, Default)]
struct Collector(Arc<Mutex<Vec<u8>>>);

impl Collector {
    async fn start() -> (Self, SocketAddr) {
        let collector = Self::default();
        let kept = collector.clone();
        let receive = move |uri: Uri, body: Bytes| async move {
            if uri.path() == EXPORT {
                kept.0.lock().unwrap().extend_from_slice(&body);
            }
            // An empty response of the export: a zero-length frame would do as well.
            Status::new(Code::Ok, "").into_http::<axum::body::Body>().into_response()
        };
        let listener = server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(axum::serve(listener, Router::new().fallback(receive)).into_future());
        (collector, address)
    }

    fn count(&self, part: &[u8]) -> usize {
        let bytes = self.0.lock().unwrap();
        bytes.windows(part.len()).filter(|window| *window == part).count()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_one_trace_across_services() {
    let (collector, address) = Collector::start().await;
    let folder = tempfile::tempdir().unwrap();
    let endpoint = format!("http://{address}");
    let environment =
        [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()), ("OTEL_BSP_SCHEDULE_DELAY", "100")];
    let deployment = SingleProcess::start_on(folder.path(), &environment).await;

    let token = deployment.token();
    let body = serde_json::json!({"query": "file", "limit": 1});
    // Content confirms only what the index proposes, which is nothing before the guide is indexed.
    eventually("the starter guide is indexed", async || {
        let request = token.post("/api/v1/search_context").header("traceparent", TRACEPARENT);
        let answer = request.json(&body).await.expect(200).json();
        answer["results"].get(0).is_some().then_some(())
    })
    .await;

    // At least the gateway, retrieval, and content's confirmation, in the trace that the caller started.
    let spans: [&[u8]; 2] = [
        b"/cairn.retrieval.v1.SearchService/SearchContext",
        b"/cairn.document.v1.DocumentService/ConfirmDocuments",
    ];
    eventually("the spans of the request arrive", async || {
        let all = spans.iter().all(|span| collector.count(span) > 0);
        (all && collector.count(&TRACE_ID) >= 3).then_some(())
    })
    .await;
    let secret = deployment.owner().token.as_bytes().to_vec();
    assert_eq!(collector.count(&secret), 0, "a token in a trace");
}
