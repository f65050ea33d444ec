//! `GET /api/analytics/retrieval` (spec 4.11): retrievals are counted, shown to owners and admins, and survive a
//! shutdown.

use cairn_proto::auth::v1::session_service_client::SessionServiceClient;
use cairn_proto::auth::v1::token_service_client::TokenServiceClient;
use cairn_proto::auth::v1::{ExchangeRequest, ExchangeSessionRequest};
use cairn_proto::retrieval::v1::analytics_service_client::AnalyticsServiceClient;
use cairn_proto::retrieval::v1::{GetRetrievalAnalyticsRequest, RecordConnectionRequest};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};

use crate::grpc::service_identity;
use crate::support::callers::{ApiToken, Session};
use crate::support::embedder::{EmbedderServer, wait_until_active};
use crate::support::http::{Http, each, id, items, text};
use crate::support::mcp;
use crate::support::mesh::Mesh;
use crate::support::people;
use crate::support::prelude::*;
use crate::support::runner::{announce_skip, run_alone};
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;

scenarios![
    retrievals_are_counted_and_told,
    agents_come_over_mcp_step_by_step,
    a_document_in_trash_keeps_its_count_and_loses_its_name,
    only_owners_and_admins_are_told,
    the_service_checks_for_itself,
    wrong_parameters_are_named,
];

const SEARCH: &str = "/api/v1/search_context";

fn path(workspace: &str, rest: &str) -> String {
    format!("/api/analytics/retrieval?workspaceId={workspace}{rest}")
}

/// The analytics once that many retrievals are counted. A retrieval is counted within seconds.
async fn wait_for_volume(session: &Session, workspace: &str, volume: u64) -> Value {
    eventually(&format!("{volume} retrievals are counted"), async || {
        let report = session.get(&path(workspace, "")).await.expect(200).json();
        let counted = report["queryVolume"].as_u64().unwrap();
        assert!(counted <= volume, "counted too often: {report}");
        (counted == volume).then_some(report)
    })
    .await
}

fn keyword(query: &str) -> Value {
    json!({"query": query, "strategy": "keyword"})
}

/// The entry of a billing dimension with that value.
#[track_caller]
fn share<'a>(report: &'a Value, dimension: &str, value: &str) -> &'a Value {
    let shares = items(&report["billingDimensions"][dimension]);
    shares.iter().find(|share| share["value"] == value).unwrap_or_else(|| panic!("no {value}: {report}"))
}

async fn retrievals_are_counted_and_told(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let often = workspace.file_id("often.md", None, "The aardwolf eats termites.\n").await;
    let seldom = workspace.file("seldom.md", None, "The serval eats frogs.\n").await;
    let change = seldom.change();
    for _ in 0..3 {
        assert_eq!(items(&workspace.search_after(&change, keyword("aardwolf")).await["results"]).len(), 1);
    }
    workspace.search_after(&change, keyword("serval")).await;
    workspace.search_after(&change, keyword("quagga")).await;
    workspace.search_after(&change, json!({"query": "termites", "strategy": "hybrid", "limit": 1})).await;
    mcp::call(&workspace.token, "search_context", keyword("aardwolf")).await;
    // A refused request does not count as a retrieval.
    workspace.token.post(SEARCH).json(json!({"query": ""})).await.expect(400);

    let report = wait_for_volume(&workspace.session, &workspace.id, 7).await;
    assert_eq!((&report["workspaceId"], &report["days"]), (&json!(workspace.id), &json!(30)), "{report}");
    assert_eq!((&report["noResultCount"], &report["failedCount"]), (&json!(1), &json!(0)), "{report}");
    assert_eq!(report["noResultRate"], json!(1.0 / 7.0));
    // The built-in embedder has no cache: it is faster than one.
    assert_eq!((&report["cacheHitCount"], &report["cacheRate"]), (&json!(0), &json!(0.0)));
    let latency = |report: &Value| {
        let read =
            |name: &str| report["latency"][name].as_f64().unwrap_or_else(|| panic!("no {name}: {report}"));
        (read("p50Ms"), read("p95Ms"))
    };
    let (p50, p95) = latency(&report);
    assert!(0.0 < p50 && p50 <= p95, "{report}");

    let daily = items(&report["daily"]);
    let dates = each(&report["daily"], "date");
    assert_eq!(dates.len(), 30);
    assert!(dates.is_sorted_by(|one, next| one < next), "{dates:?}");
    assert_eq!((dates[0], dates[29]), (report["from"].as_str().unwrap(), report["to"].as_str().unwrap()));
    // Midnight may have passed since.
    let last_two: u64 = daily[28..].iter().map(|day| day["queryVolume"].as_u64().unwrap()).sum();
    assert_eq!(last_two, 7, "{report}");
    assert_eq!((&daily[0]["queryVolume"], &daily[0]["latency"]), (&json!(0), &Value::Null));
    latency(daily.iter().rev().find(|day| day["queryVolume"] != 0).unwrap());

    let top = items(&report["topDocuments"]);
    assert_eq!((&top[0]["id"], &top[0]["title"]), (&json!(often), &json!("often.md")), "{report}");
    assert_eq!((&top[0]["kind"], &top[0]["path"]), (&json!("file"), &json!("/often.md")));
    assert_eq!((&top[0]["retrievalCount"], &top[0]["bestCount"]), (&json!(5), &json!(5)));
    assert!(text(&top[0], "url").ends_with(&format!("/file/{often}")));
    assert_eq!((&top[1]["id"], &top[1]["retrievalCount"]), (&json!(id(&seldom.json())), &json!(1)));

    let first = &report["firstSuccessfulRetrieval"];
    assert_eq!((&first["operation"], &first["channel"]), (&json!("search_context"), &json!("rest")));
    assert!(text(first, "at") < text(&report, "generatedAt"), "{report}");
    assert_eq!(report["mcpActivation"]["activated"], json!(true));

    let billed = &report["billingDimensions"];
    assert_eq!((&billed["total"]["retrievalCount"], &billed["total"]["resultCount"]), (&json!(7), &json!(6)));
    assert!(billed["total"]["contentBytes"].as_u64().unwrap() > 100, "{report}");
    assert_eq!(billed["total"]["providerOperations"], json!(0));
    assert_eq!(share(&report, "channels", "rest")["retrievalCount"], json!(6));
    assert_eq!(share(&report, "channels", "mcp")["retrievalCount"], json!(1));
    assert_eq!(share(&report, "strategies", "keyword")["noResultCount"], json!(1));
    assert_eq!(share(&report, "strategies", "hybrid")["retrievalCount"], json!(1));
    assert_eq!(share(&report, "plans", "selfhosted")["retrievalCount"], json!(7));
    let operation = share(&report, "operations", "search_context");
    assert_eq!((&operation["retrievalCount"], latency(operation)), (&json!(7), (p50, p95)));
    let principals = items(&billed["principals"]);
    assert_eq!((principals.len(), &principals[0]["kind"]), (1, &json!("token")), "{report}");
    let tokens = format!("/api/workspaces/{}/tokens", workspace.id);
    let tokens = workspace.session.get(&tokens).await.expect(200).json();
    assert_eq!(each(&tokens, "id"), [principals[0]["id"].as_str().unwrap()]);
    let asked = report.to_string();
    assert!(!asked.contains("aardwolf") && !asked.contains("quagga"), "what was asked is nowhere: {report}");

    let today = workspace.session.get(&path(&workspace.id, "&days=1")).await.expect(200);
    assert_eq!(today.header("cache-control"), Some("no-store"));
    assert_eq!(items(&today.json()["daily"]).len(), 1);
}

async fn agents_come_over_mcp_step_by_step(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let read = async || {
        let report = workspace.session.get(&path(&workspace.id, "&days=90")).await.expect(200).json();
        (report["mcpActivation"].clone(), report)
    };
    let (nobody, report) = read().await;
    assert_eq!(nobody["firstConnectionAt"], Value::Null);
    assert_eq!((&report["noResultRate"], &report["latency"]), (&Value::Null, &Value::Null), "{report}");
    assert_eq!(report["firstSuccessfulRetrieval"], Value::Null);
    assert_eq!((items(&report["daily"]).len(), items(&report["topDocuments"]).len()), (90, 0));

    mcp::result(mcp::legacy(&workspace.token, "tools/list", json!({})).await);
    let reached = async |field: &str| {
        eventually(&format!("{field} is told"), async || {
            let (activation, _) = read().await;
            activation[field].is_string().then_some(activation)
        })
        .await
    };
    let connected = reached("firstConnectionAt").await;
    assert_eq!((&connected["activated"], &connected["firstRetrievalAt"]), (&json!(false), &Value::Null));

    let made = workspace.file("okapi.md", None, "The okapi grazes.\n").await;
    mcp::call(&workspace.token, "search_context", keyword("quagga")).await;
    let asked = reached("firstRetrievalAt").await;
    assert_eq!((&asked["activated"], &asked["firstSuccessfulRetrievalAt"]), (&json!(false), &Value::Null));

    let after = json!({"name": "search_context", "arguments": keyword("okapi"),
        "_meta": {mcp::META_CHANGE: made.change()}});
    mcp::result(mcp::legacy(&workspace.token, "tools/call", after).await);
    let activated = reached("firstSuccessfulRetrievalAt").await;
    assert_eq!(activated["activated"], json!(true));
    for field in ["firstConnectionAt", "firstRetrievalAt"] {
        assert_eq!(activated[field], asked[field], "a first time stays: {activated}");
    }
}

async fn a_document_in_trash_keeps_its_count_and_loses_its_name(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let made = workspace.file("secret-plan.md", None, "The bilby digs.\n").await;
    workspace.search_after(&made.change(), keyword("bilby")).await;
    let file = id(&made.json());
    workspace.token.delete(&format!("/api/v1/files/{file}")).await.expect(204);
    let report = wait_for_volume(&workspace.session, &workspace.id, 1).await;
    let top = &items(&report["topDocuments"])[0];
    assert_eq!((&top["id"], &top["retrievalCount"]), (&json!(file), &json!(1)));
    for field in ["title", "path", "url"] {
        assert_eq!(top[field], Value::Null, "{top}");
    }
}

async fn only_owners_and_admins_are_told(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let path = path(&workspace.id, "&days=7");
    workspace.session.get(&path).await.expect(200);
    let admin = people::join(&workspace, "admin").await;
    admin.session.get(&path).await.expect(200);
    for role in ["editor", "contributor", "viewer"] {
        let person = people::join(&workspace, role).await;
        let refusal = person.session.get(&path).await.expect_error(403, "FORBIDDEN");
        assert!(text(&refusal, "message").contains("admin"), "{refusal}");
    }
    // A revoked role takes effect at once.
    workspace.session.patch(&admin.path(&workspace)).json(json!({"role": "editor"})).await.expect(200);
    admin.session.get(&path).await.expect_error(403, "FORBIDDEN");

    let stranger = people::join(&deployment.workspace().await, "owner").await;
    stranger.session.get(&path).await.expect_error(404, "NOT_FOUND");
    let nowhere = self::path("0199c0de-0000-7000-8000-00000000ffff", "");
    workspace.session.get(&nowhere).await.expect_error(404, "NOT_FOUND");
    workspace.token.get(&path).await.expect_error(401, "UNAUTHORIZED");
    deployment.anonymous().get(&path).await.expect_error(401, "UNAUTHORIZED");
}

async fn retrieval_service(deployment: &Deployment) -> AnalyticsServiceClient<Channel> {
    let url = deployment.grpc_url("retrieval");
    AnalyticsServiceClient::new(Endpoint::from_shared(url).unwrap().connect().await.unwrap())
}

fn as_caller<T>(identity: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {identity}").parse().unwrap());
    request
}

/// The identity token of a session in the workspace.
async fn exchange(mesh: &Mesh, session: &Session, workspace: Option<&str>) -> String {
    let auth = Endpoint::from_shared(mesh.grpc_url("auth")).unwrap().connect().await.unwrap();
    let secret = session.cookie.split_once('=').unwrap().1.to_owned();
    let message =
        ExchangeSessionRequest { session_secret: secret, workspace_id: workspace.map(ToOwned::to_owned) };
    let request = as_caller(&service_identity(mesh).await, message);
    SessionServiceClient::new(auth).exchange_session(request).await.unwrap().into_inner().identity
}

/// Only in a mesh do people's identity tokens leave the gateway: the mesh secret is needed to get one.
async fn the_service_checks_for_itself(deployment: &Deployment) {
    let Some(mesh) = deployment.mesh() else { return };
    let workspace = deployment.workspace().await;
    let editor = people::join(&workspace, "editor").await;
    let auth = Endpoint::from_shared(deployment.grpc_url("auth")).unwrap().connect().await.unwrap();
    let token = ExchangeRequest { api_token: workspace.token.secret.clone() };
    let token = TokenServiceClient::new(auth).exchange(token).await.unwrap().into_inner().identity;
    let mut analytics = retrieval_service(deployment).await;
    let ask = |days| GetRetrievalAnalyticsRequest { days };

    let refused = [
        token.clone(),
        exchange(mesh, &editor.session, Some(&workspace.id)).await,
        exchange(mesh, &workspace.session, None).await,
    ];
    for identity in refused {
        let status = analytics.get_retrieval_analytics(as_caller(&identity, ask(1))).await.unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied, "{status}");
    }
    let owner = exchange(mesh, &workspace.session, Some(&workspace.id)).await;
    for (asked, report) in [(0, 30), (1, 1), (90, 90)] {
        let answer = analytics.get_retrieval_analytics(as_caller(&owner, ask(asked))).await.unwrap();
        assert_eq!(answer.into_inner().days.len(), report);
    }
    let status = analytics.get_retrieval_analytics(as_caller(&owner, ask(91))).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    // A direct call has passed no entry point of the gateway.
    analytics.record_connection(as_caller(&token, RecordConnectionRequest {})).await.unwrap();
    let nobody = exchange(mesh, &workspace.session, None).await;
    let status =
        analytics.record_connection(as_caller(&nobody, RecordConnectionRequest {})).await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied, "{status}");
}

async fn wrong_parameters_are_named(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    for days in ["0", "91", "-1", "abc", "1.5", "", "4294967297"] {
        let path = path(&workspace.id, &format!("&days={days}"));
        let refusal = workspace.session.get(&path).await.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(each(&refusal["errors"], "path"), ["days"], "{days}: {refusal}");
    }
    for query in ["", "?workspaceId=", "?workspaceId=mine", "?workspaceId=%00"] {
        let path = format!("/api/analytics/retrieval{query}");
        let refusal = workspace.session.get(&path).await.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(each(&refusal["errors"], "path"), ["workspaceId"], "{query}: {refusal}");
    }
    for days in ["1", "90"] {
        workspace.session.get(&path(&workspace.id, &format!("&days={days}&more=1"))).await.expect(200);
    }
    workspace.session.post(&path(&workspace.id, "")).await.expect(405);
}

/// The first account's session, and its workspace.
async fn sign_in(up: &SingleProcess, data: &Scratch) -> (Session, String) {
    let http = up.token().http;
    let body = json!({"email": up.owner().email, "password": up.owner().password});
    let opened = http.request(reqwest::Method::POST, "/api/session").json(body).await.expect(200);
    let cookie = opened.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let file = std::fs::read(data.path().join("bootstrap.json")).unwrap();
    let bootstrap: Value = serde_json::from_slice(&file).unwrap();
    (Session { http, cookie }, text(&bootstrap, "workspaceId"))
}

#[test]
fn a_stop_loses_no_retrieval_and_a_kill_only_the_last() {
    run_alone(async {
        let data = Scratch::new();
        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        up.token().post(SEARCH).json(keyword("anything")).await.expect(200);
        assert!(up.stop().await.success());

        let mut up = SingleProcess::start_on(data.path(), &[]).await;
        let (session, workspace) = sign_in(&up, &data).await;
        wait_for_volume(&session, &workspace, 1).await;
        up.token().post(SEARCH).json(keyword("anything")).await.expect(200);
        wait_for_volume(&session, &workspace, 2).await;
        up.token().post(SEARCH).json(keyword("anything")).await.expect(200);
        up.kill();

        let up = SingleProcess::start_on(data.path(), &[]).await;
        let (session, workspace) = sign_in(&up, &data).await;
        let report = session.get(&path(&workspace, "")).await.expect(200).json();
        assert!((2..=3).contains(&report["queryVolume"].as_u64().unwrap()), "{report}");
    });
}

#[test]
fn a_query_that_was_embedded_before_is_a_cache_hit() {
    run_alone(async {
        let endpoint = EmbedderServer::start();
        let settings = endpoint.environment("some-model");
        let environment: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let data = Scratch::new();
        let up = SingleProcess::start_on(data.path(), &environment).await;
        let (session, workspace) = sign_in(&up, &data).await;
        // The built-in embedder needs no cache, so its embeddings are not cached.
        wait_until_active(&up.token(), "some-model").await;
        for _ in 0..4 {
            let query = json!({"query": "quokka", "strategy": "semantic"});
            up.token().post(SEARCH).json(query).await.expect(200);
        }
        up.token().post(SEARCH).json(keyword("quokka")).await.expect(200);
        let report = wait_for_volume(&session, &workspace, 5).await;
        let hits = report["cacheHitCount"].as_f64().unwrap();
        assert_eq!(hits, 3.0, "the first is none, and words need no vectors: {report}");
        assert_eq!(report["cacheRate"], json!(hits / 5.0), "{report}");
    });
}

#[test]
fn a_mesh_counts_in_its_database() {
    run_alone(async {
        let mut mesh = match Mesh::start().await {
            Ok(mesh) => mesh,
            Err(why) => return announce_skip(&why),
        };
        let token = ApiToken { http: Http::new(&mesh.base_url()), secret: mesh.owner().token.clone() };
        let search = async || token.post(SEARCH).json(keyword("anything")).attempt().await;
        eventually("a search is answered", async || search().await.ok().filter(|reply| reply.status == 200))
            .await;
        mesh.ask_to_stop("retrieval");
        mesh.exit("retrieval").await;
        let mut store =
            <sqlx::PgConnection as sqlx::Connection>::connect(mesh.database("retrieval")).await.unwrap();
        let total: i64 = sqlx::query_scalar(
            "SELECT CAST(SUM(total - failed) AS BIGINT) FROM retrieval.retrieval_counts WHERE channel = 'rest'",
        )
        .fetch_one(&mut store)
        .await
        .unwrap();
        assert_eq!(total, 1, "what was asked last is written at the stop");
    });
}
