//! Endpoints for orchestrators and Prometheus (contract, "Other paths").

use crate::support::http::Http;
use crate::support::prelude::*;

scenarios![
    the_public_address_answers_probes,
    every_admin_port_answers_probes_and_metrics,
    metrics_count_requests,
    processes_say_what_they_are_and_have
];

async fn the_public_address_answers_probes(deployment: &Deployment) {
    let anonymous = deployment.anonymous();
    anonymous.get("/healthz").await.expect(200);
    anonymous.get("/readyz").await.expect(200);
    let metrics = anonymous.get("/metrics").await;
    assert_eq!(metrics.status, 404, "metrics are for the admin port only: {}", metrics.text());
}

async fn every_admin_port_answers_probes_and_metrics(deployment: &Deployment) {
    let admins = deployment.admin_urls();
    let expected = if deployment.mesh().is_some() { 6 } else { 1 };
    assert_eq!(admins.len(), expected, "each process says where its admin port is");
    // A request to count.
    deployment.workspace().await.token.get("/api/v1/files").await.expect(200);
    for admin in admins {
        let http = Http::new(&admin);
        for path in ["/healthz", "/readyz"] {
            http.request(reqwest::Method::GET, path).await.expect(200);
        }
        let metrics = http.request(reqwest::Method::GET, "/metrics").await.expect(200);
        for line in metrics.text().lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (_, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no Prometheus line: {line}"));
            assert!(value.parse::<f64>().is_ok(), "no Prometheus value: {line}");
        }
    }
}

async fn metrics_count_requests(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let file = "/api/v1/files/0199c0de-0000-7000-8000-0000000000aa";
    for _ in 0..3 {
        token.get(file).await.expect_error(404, "NOT_FOUND");
    }
    let mut all = String::new();
    for admin in deployment.admin_urls() {
        all.push_str(&Http::new(&admin).request(reqwest::Method::GET, "/metrics").await.expect(200).text());
    }
    assert!(all.contains("# TYPE"), "no metric at all");
    assert!(all.contains("FileService"), "calls of FileService are not counted: {all}");
    assert!(
        !all.contains("0199c0de-0000-7000-8000-0000000000aa"),
        "an id as a label makes a series for each id"
    );
}

async fn processes_say_what_they_are_and_have(deployment: &Deployment) {
    deployment.workspace().await.token.get("/api/v1/files").await.expect(200);
    let mut all = String::new();
    for admin in deployment.admin_urls() {
        let metrics = Http::new(&admin).request(reqwest::Method::GET, "/metrics").await.expect(200).text();
        let version = format!("version=\"{}\"", env!("CARGO_PKG_VERSION"));
        let is_build = |line: &str| line.starts_with("cairn_build_info{") && line.contains(&version);
        assert!(metrics.lines().any(is_build), "{admin}: {metrics}");
        all.push_str(&metrics);
    }
    for service in ["auth", "content", "ingest", "retrieval", "sync"] {
        let most = format!("cairn_database_connections_max{{service=\"{service}\"}}");
        assert!(all.contains(&most), "{most}: {all}");
    }
    for metric in
        ["cairn_requests_in_flight", "cairn_grpc_server_requests_in_flight", "cairn_database_connections{"]
    {
        assert!(all.contains(metric), "{metric}: {all}");
    }
    // No metric has another prefix.
    let foreign =
        all.lines().filter(|line| !line.is_empty() && !line.starts_with('#') && !line.starts_with("cairn_"));
    assert_eq!(foreign.collect::<Vec<_>>(), [""; 0]);
    eventually("the feeds' lag is measured", async || {
        let mut all = String::new();
        for admin in deployment.admin_urls() {
            all += &Http::new(&admin).request(reqwest::Method::GET, "/metrics").await.expect(200).text();
        }
        all.contains("cairn_feed_lag_seconds{feed=").then_some(())
    })
    .await;
}
