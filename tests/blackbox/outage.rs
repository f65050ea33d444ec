//! Outages of a service, and graceful shutdown (issue "Bad input", "Gateway").

use reqwest::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::browse::output;
use crate::support::callers::{Anonymous, ApiToken};
use crate::support::http::{Http, Reply, id, items};
use crate::support::mesh::Mesh;
use crate::support::prelude::*;
use crate::support::runner::{announce_skip, run_alone};
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;
use crate::support::workspace::read_file;

const SEARCH: &str = "/api/v1/search_context";
const SCRIPT: &str = "/api/v1/vfs/exec";

#[test]
fn search_is_away_and_files_go_on() {
    with_mesh(async |mesh| {
        let token = token_of(mesh);
        let before = create(&token, "The tapir is here before.\n").await;
        find(&token, &before, "tapir").await;

        mesh.kill("retrieval");
        unavailable(token.post(SEARCH).json(json!({"query": "tapir"})).await);
        unavailable(token.post(SCRIPT).json(json!({"script": "ls"})).await);
        let during = create(&token, "The axolotl comes meanwhile.\n").await;
        assert_eq!(read_file(&token, &id(&during.json())).await["content"], "The axolotl comes meanwhile.\n");
        let anonymous = Anonymous { http: Http::new(&mesh.base_url()) };
        anonymous.get("/healthz").await.expect(200);
        anonymous.get("/readyz").await.expect(503);
        let by_mcp =
            crate::support::mcp::call_error(&token, "search_context", json!({"query": "tapir"})).await;
        assert!(!by_mcp.is_empty());
        crate::support::mcp::call(&token, "list_files", json!({})).await;

        mesh.restart("retrieval").await;
        wait_until_served(&token, "search answers again", async |token| {
            token.post(SEARCH).json(json!({"query": "tapir"})).await
        })
        .await;
        find(&token, &before, "tapir").await;
        find(&token, &during, "axolotl").await;
        // The script cache is lost with the process, and filled again.
        wait_until_served(&token, "scripts run again", list_all).await;
        let found = output(&token, "grep -rlE 'tapir|axolotl' /files | wc -l").await;
        assert_eq!(found.trim(), "2");
        anonymous.get("/readyz").await.expect(200);
    });
}

#[test]
fn content_is_away_and_comes_back() {
    with_mesh(async |mesh| {
        let token = token_of(mesh);
        let before = create(&token, "The tapir is here before.\n").await;
        find(&token, &before, "tapir").await;
        assert_eq!(output(&token, "grep -rl tapir /files | wc -l").await.trim(), "1");

        mesh.kill("content");
        unavailable(token.get("/api/v1/files").await);
        let body = json!({"name": "a", "content": "x", "fileType": "text"});
        unavailable(token.post("/api/v1/files").json(body).await);
        // Without the owning service no result can be authorized, so none may be returned.
        unavailable(token.post(SEARCH).json(json!({"query": "tapir"})).await);
        // Nor can it be decided what a script may read.
        unavailable(token.post(SCRIPT).json(json!({"script": "grep -rl tapir /files"})).await);
        token.get("/api/v1/workspace").await.expect(200);

        mesh.restart("content").await;
        wait_until_served(&token, "files answer again", async |token| token.get("/api/v1/files").await).await;
        let after = create(&token, "The axolotl comes after.\n").await;
        find(&token, &after, "axolotl").await;
        wait_until_served(&token, "scripts run again", list_all).await;
        assert_eq!(output(&token, "grep -rlE 'tapir|axolotl' /files | wc -l").await.trim(), "2");
    });
}

#[test]
fn auth_is_away_and_nobody_is_told_that_a_token_is_bad() {
    with_mesh(async |mesh| {
        let token = token_of(mesh);
        create(&token, "x").await;
        mesh.kill("auth");
        // A cached identity token may still be accepted for a moment.
        let refused = eventually("the cached identity is forgotten", async || {
            let reply = token.get("/api/v1/files").await;
            (reply.status != 200).then_some(reply)
        })
        .await;
        unavailable(refused);
        mesh.restart("auth").await;
        wait_until_served(&token, "tokens are known again", async |token| token.get("/api/v1/files").await)
            .await;
    });
}

#[test]
fn a_request_under_way_is_finished_before_the_end() {
    run_alone(async {
        let data = Scratch::new();
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        let address = up.base_url().trim_start_matches("http://").to_owned();
        let under_way = InFlightWrite::begin(&address, &up.owner().token).await;
        up.process().ask_to_stop();
        closed(&address).await;
        let answer = under_way.finish().await;
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
        let status = up.process_mut().exit().await;
        assert_eq!(status.code(), Some(0), "{}", up.process_mut().stderr());

        let again = SingleProcess::start_on(data.path(), &[]).await;
        let listed = again.token().get("/api/v1/files").await.expect(200).json();
        assert!(items(&listed).iter().any(|file| file["name"] == InFlightWrite::NAME), "{listed}");
    });
}

#[test]
fn who_is_asked_to_go_says_so_and_serves_on_until_it_is_asked_again() {
    run_alone(async {
        let environment = [("CAIRN_SHUTDOWN_DELAY_SECONDS", "600")];
        let mut up = SingleProcess::start_with(&environment).await;
        let admin = Http::new(&up.admin_url().expect("it has an admin port"));
        admin.request(Method::GET, "/readyz").await.expect(200);
        up.process().ask_to_stop();
        eventually("it is not ready any more", async || {
            (admin.request(Method::GET, "/readyz").await.status == 503).then_some(())
        })
        .await;
        admin.request(Method::GET, "/healthz").await.expect(200);
        let last = up.token().get("/api/v1/files").await.expect(200);
        assert_eq!(last.header("connection"), Some("close"), "a connection is not kept");
        create(&up.token(), "It is still here.\n").await;
        up.process().ask_to_stop();
        assert_eq!(up.process_mut().exit().await.code(), Some(130), "the second signal ends at once");
    });
}

#[test]
fn a_mesh_drains_and_ends_well() {
    with_mesh(async |mesh| {
        let address = mesh.base_url().trim_start_matches("http://").to_owned();
        let under_way = InFlightWrite::begin(&address, &mesh.owner().token).await;
        mesh.ask_to_stop("gateway");
        closed(&address).await;
        let answer = under_way.finish().await;
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
        mesh.exit("gateway").await;
        for status in mesh.stop().await {
            assert_eq!(status.code(), Some(0), "{}", mesh.output());
        }
    });
}

/// Runs a test on a mesh of its own, or reports why there is none.
pub(crate) fn with_mesh(test: impl AsyncFnOnce(&mut Mesh)) {
    run_alone(async {
        match Mesh::start().await {
            Ok(mut mesh) => {
                wait_until_served(&token_of(&mesh), "the mesh is ready", async |token| {
                    token.get("/readyz").await
                })
                .await;
                test(&mut mesh).await;
            }
            Err(why) => announce_skip(&why),
        }
    });
}

fn token_of(mesh: &Mesh) -> ApiToken {
    ApiToken { http: Http::new(&mesh.base_url()), secret: mesh.owner().token.clone() }
}

async fn create(token: &ApiToken, content: &str) -> Reply {
    let body = json!({"name": "a.md", "content": content, "fileType": "markdown"});
    token.post("/api/v1/files").json(body).await.expect(201)
}

/// The file that this write created is found by the word.
async fn find(token: &ApiToken, created: &Reply, word: &str) {
    let request = token.post(SEARCH).after(&created.change()).header("x-cairn-wait-ms", "10000");
    let answer = request.json(json!({"query": word, "strategy": "keyword"})).await.expect(200).json();
    let wanted = &created.json()["id"];
    assert!(items(&answer["results"]).iter().any(|result| result["fileId"] == *wanted), "{answer}");
}

/// The contract's response while a service is down.
#[track_caller]
fn unavailable(reply: Reply) {
    let wait = reply.header("retry-after").map(str::to_owned);
    reply.expect_error(503, "UNAVAILABLE");
    let seconds = wait.as_deref().and_then(|text| text.parse::<u64>().ok());
    assert!(matches!(seconds, Some(1..=60)), "Retry-After in whole seconds: {wait:?}");
}

/// Waits until requests succeed again; until then only 503 is acceptable.
async fn wait_until_served(token: &ApiToken, what: &str, ask: impl AsyncFn(&ApiToken) -> Reply) {
    eventually(what, async || {
        let reply = ask(token).await;
        assert!(matches!(reply.status, 200 | 503), "{}: {}", reply.status, reply.text());
        (reply.status == 200).then_some(())
    })
    .await;
}

async fn list_all(token: &ApiToken) -> Reply {
    token.post(SCRIPT).json(json!({"script": "find /"})).await
}

/// Waits until nothing listens there.
async fn closed(address: &str) {
    let probe = async || TcpStream::connect(address).await.is_err().then_some(());
    eventually("no new connections are taken", probe).await;
}

/// A write whose body the server has begun to read.
struct InFlightWrite {
    stream: TcpStream,
    body: String,
}

impl InFlightWrite {
    const NAME: &str = "under-way.txt";

    async fn begin(address: &str, token: &str) -> Self {
        let body = json!({"name": Self::NAME, "content": "x", "fileType": "text"}).to_string();
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST /api/v1/files HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server sends 100 Continue when it begins to read the body, so from here on the request is in flight.
        let mut answer = [0; 256];
        let read = tokio::time::timeout(LIMIT, stream.read(&mut answer)).await.unwrap().unwrap();
        let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
        assert!(answer.starts_with("HTTP/1.1 100"), "{answer}");
        Self { stream, body }
    }

    async fn finish(mut self) -> String {
        self.stream.write_all(self.body.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        tokio::time::timeout(LIMIT, self.stream.read_to_end(&mut answer)).await.unwrap().unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }
}
