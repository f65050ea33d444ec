//! A workspace's reads do not delay other workspaces.

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;

use crate::support::http::id;
use crate::support::prelude::*;

scenarios![a_workspace_that_reads_at_length_keeps_no_other_one_waiting];

/// Far more than the connections of a service's pool.
const QUERIES: usize = 48;

async fn a_workspace_that_reads_at_length_keeps_no_other_one_waiting(deployment: &Deployment) {
    let (busy, other) = (deployment.workspace().await, deployment.workspace().await);
    other.file("a.md", None, "x\n").await.expect(201);
    let table = busy.token.post("/api/v1/databases").json(json!({"name": "Long"})).await.expect(201).json();
    let records = format!("/api/v1/databases/{}/records", id(&table));
    let name = id(&table["properties"][0]);
    let words: Vec<String> = (0..10).map(|number| format!("word{number}")).collect();
    let long = format!("{} {}", "y".repeat(90_000), words.join(" "));
    for _ in 0..24 {
        busy.token.post(&records).json(json!({"values": {&name: &long}})).await.expect(201);
    }
    let query = format!("{records}?limit=1&search={}", words.join("%20"));
    busy.token.get(&query).await.expect(200);

    let mut asked: FuturesUnordered<_> = (0..QUERIES).map(|_| busy.token.get(&query).into_future()).collect();
    // The others are in flight, or queued.
    let mut ended = vec![asked.next().await.unwrap()];
    let mut listing = other.token.get("/api/v1/files").into_future();
    let listed = loop {
        tokio::select! {
            biased;
            listed = &mut listing => break listed,
            Some(reply) = asked.next() => ended.push(reply),
        }
    };
    assert_eq!(listed.expect(200).header("x-total-count"), Some("1"));
    assert!(ended.len() < QUERIES / 2, "{} queries of the other workspace were answered first", ended.len());
    while let Some(reply) = asked.next().await {
        ended.push(reply);
    }
    for reply in ended {
        match reply.status {
            200 => {}
            // On a slow machine some time out in their own workspace's queue.
            503 => drop(reply.expect_error(503, "UNAVAILABLE")),
            _ => drop(reply.expect_error(504, "DEADLINE_EXCEEDED")),
        }
    }
}
