//! Clients that are known by the address of their metadata.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// A host of one metadata document, on loopback, which the tests' settings allow.
struct Host {
    id: String,
    asked: Arc<AtomicUsize>,
}

async fn host(headers: &'static str, body: impl Fn(&str) -> String + Send + 'static) -> Host {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let id = format!("http://{}/client.json", listener.local_addr().unwrap());
    let (asked, named) = (Arc::new(AtomicUsize::new(0)), id.clone());
    let counted = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut request = vec![0; 4096];
            let _ = stream.read(&mut request).await;
            let body = body(&named);
            let length = body.len();
            let head =
                format!("HTTP/1.1 200 OK\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all((head + &body).as_bytes()).await;
        }
    });
    Host { id, asked }
}

fn document(id: &str) -> String {
    format!(r#"{{"client_id": "{id}", "client_name": "Tools", "redirect_uris": ["{REDIRECT}"]}}"#)
}

const JSON: &str = "content-type: application/json\r\n";

#[tokio::test]
async fn metadata_is_fetched_for_signed_in_people_only_and_then_kept() {
    for world in worlds().await {
        let host = host(JSON, document).await;
        let owner = world.owner().await;
        assert!(world.check(asked(&host.id), None).await.unwrap().sign_in_first);
        assert_eq!(host.asked.load(Ordering::SeqCst), 0, "a stranger sends us nowhere");
        let checked = world.check(asked(&host.id), Some(&owner)).await.unwrap();
        assert_eq!((checked.client_name.as_str(), checked.refusal), ("Tools", None));

        // Known by now, for everybody and for the whole flow.
        assert!(!world.check(asked(&host.id), None).await.unwrap().sign_in_first);
        let tokens = world.tokens_of(&host.id).await;
        assert_eq!(host.asked.load(Ordering::SeqCst), 1);
        world.clock.advance(MINUTE * 61);
        world.renew(renewal(&host.id, &tokens.refresh_token)).await.unwrap();
        assert_eq!(host.asked.load(Ordering::SeqCst), 1, "tokens need no new metadata");
        // The person's identity has ended by now.
        let owner = world.person_of(owner.id);
        world.check(asked(&host.id), Some(&owner)).await.unwrap();
        assert_eq!(host.asked.load(Ordering::SeqCst), 2, "{}", world.engine);
    }
}

#[tokio::test]
async fn the_hosts_cache_headers_are_honoured() {
    for world in worlds().await {
        let host = host("content-type: application/json\r\ncache-control: max-age=7200\r\n", document).await;
        let owner = world.owner().await;
        for (minutes, fetched) in [(0, 1), (119, 1), (1, 2)] {
            world.clock.advance(MINUTE * minutes);
            // The person's identity lives for five minutes only.
            let owner = world.person_of(owner.id);
            world.check(asked(&host.id), Some(&owner)).await.unwrap();
            assert_eq!(host.asked.load(Ordering::SeqCst), fetched, "{}", world.engine);
        }
    }
}

#[tokio::test]
async fn metadata_that_cannot_be_trusted_makes_no_client() {
    for world in worlds().await {
        let owner = world.owner().await;
        let html = host("content-type: text/html\r\n", document).await;
        let other = host(JSON, |_| document("https://tools.example/client.json")).await;
        let odd = host(JSON, |_| "[]".to_owned()).await;
        let large = host(JSON, |id| document(id) + &" ".repeat(70_000)).await;
        let bad_redirect = host(JSON, |id| document(id).replace(REDIRECT, "javascript:alert(1)")).await;
        let inside = "https://169.254.169.254/latest/meta-data".to_owned();
        let unlisted = html.id.replace("127.0.0.1", "127.0.0.2");
        for id in [html.id, other.id, odd.id, large.id, bad_redirect.id, inside, unlisted] {
            assert_eq!(code_of(world.check(asked(&id), Some(&owner)).await), "invalid_client", "{id}");
            assert_eq!(code_of(world.renew(renewal(&id, "x")).await), "invalid_client", "{}", world.engine);
        }
    }
}
