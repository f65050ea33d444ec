//! The life of a deleted workspace: unreadable at once, restorable by its owner for a while, then purged.

use std::path::Path;

use cairn_proto::content::v1::ListFilesRequest;
use cairn_proto::content::v1::file_service_client::FileServiceClient;
use cairn_proto::retrieval::v1::SearchContextRequest;
use cairn_proto::retrieval::v1::search_service_client::SearchServiceClient;
use sqlx::{AssertSqlSafe, Connection as _};
use tonic::Code;

use crate::doctor::assert_sound;
use crate::grpc::{as_caller, connect, exchange, refused};
use crate::support::callers::{Anonymous, Caller, Session};
use crate::support::deployment::Owner;
use crate::support::http::{Http, Reply, each, id, items, text};
use crate::support::mesh::Mesh;
use crate::support::people::join;
use crate::support::prelude::*;
use crate::support::runner::{announce_skip, run_alone};
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;
use crate::support::workspace::make_token;

scenarios![
    a_deleted_workspace_publishes_nothing_and_comes_back_whole,
    services_refuse_identities_of_a_deleted_workspace,
    a_deleted_workspace_is_its_owners_to_restore,
];

/// Long enough to observe the state before and after it ends.
const BRIEF: (&str, &str) = ("CAIRN_WORKSPACE_GRACE_SECONDS", "1");

async fn public_memory(caller: &impl Caller, file: &str) -> String {
    let members = json!([{"kind": "file", "fileId": file}]);
    let body = json!({"name": "Open", "isPublic": true, "members": members});
    id(&caller.post("/api/v1/memories").json(body).await.expect(201).json())
}

/// Whether the search found the file.
fn holds(found: &Value, file: &Reply) -> bool {
    items(&found["results"]).iter().any(|result| result["fileId"] == file.json()["id"])
}

async fn a_deleted_workspace_publishes_nothing_and_comes_back_whole(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file("a.md", None, "The okapi grazes.\n").await;
    let memory = public_memory(&workspace.token, &id(&file.json())).await;
    let anonymous = deployment.anonymous();
    let exports = [
        format!("/api/v1/memories/{memory}/export"),
        format!("/api/v1/memories/open/export?workspaceId={}", workspace.id),
    ];
    let before = anonymous.get(&exports[0]).await.expect(200).json();
    let search = json!({"query": "okapi"});
    let found = workspace.search_after(&file.change(), search.clone()).await;
    assert!(holds(&found, &file), "{found}");

    let path = format!("/api/workspaces/{}", workspace.id);
    workspace.session.delete(&path).await.expect(204);
    for export in &exports {
        anonymous.get(export).await.expect_error(404, "NOT_FOUND");
    }
    let refused = async || (workspace.token.get("/api/v1/files").await.status == 401).then_some(());
    eventually("the token is refused", refused).await;
    workspace.session.get(&path).await.expect_error(404, "NOT_FOUND");
    workspace.session.get(&format!("{path}/trash")).await.expect_error(404, "NOT_FOUND");

    let restored = workspace.session.post(&format!("{path}/restore")).await.expect(200).json();
    assert_eq!((id(&restored), restored.get("purgeAt")), (workspace.id.clone(), None));
    assert_eq!(anonymous.get(&exports[0]).await.expect(200).json(), before);
    anonymous.get(&exports[1]).await.expect(200);
    let serves = async || (workspace.token.get("/api/v1/files").await.status == 200).then_some(());
    eventually("the token opens again", serves).await;
    let found = workspace.search_after(&file.change(), search).await;
    assert!(holds(&found, &file), "{found}");
    workspace.session.post(&format!("{path}/restore")).await.expect(200);
}

async fn services_refuse_identities_of_a_deleted_workspace(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let identity = exchange(deployment, &workspace.token).await;
    let mut files = FileServiceClient::new(connect(deployment, "content").await);
    let mut searches = SearchServiceClient::new(connect(deployment, "retrieval").await);
    let list = || as_caller(&identity, ListFilesRequest::default());
    let search = || as_caller(&identity, SearchContextRequest { query: "x".into(), ..Default::default() });
    files.list_files(list()).await.unwrap();
    searches.search_context(search()).await.unwrap();

    let path = format!("/api/workspaces/{}", workspace.id);
    workspace.session.delete(&path).await.expect(204);
    // The identity token itself is valid for minutes.
    refused(files.list_files(list()).await.unwrap_err(), Code::Unauthenticated, "UNAUTHORIZED");
    refused(searches.search_context(search()).await.unwrap_err(), Code::Unauthenticated, "UNAUTHORIZED");
    workspace.session.post(&format!("{path}/restore")).await.expect(200);
    files.list_files(list()).await.unwrap();
    searches.search_context(search()).await.unwrap();
}

async fn a_deleted_workspace_is_its_owners_to_restore(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let admin = join(&workspace, "admin").await.session;
    let path = format!("/api/workspaces/{}", workspace.id);
    workspace.session.delete(&path).await.expect(204);

    let deleted = workspace.session.get("/api/workspaces?deleted=true").await.expect(200).json();
    let shown = items(&deleted).iter().find(|one| id(one) == workspace.id).cloned().unwrap();
    assert!(text(&shown, "purgeAt") > text(&shown, "deletedAt"), "{shown}");
    let living = workspace.session.get("/api/workspaces").await.expect(200).json();
    assert!(!each(&living, "id").contains(&workspace.id.as_str()), "{living}");
    let of_admin = admin.get("/api/workspaces?deleted=true").await.expect(200).json();
    assert!(items(&of_admin).is_empty(), "{of_admin}");
    admin.post(&format!("{path}/restore")).await.expect_error(404, "NOT_FOUND");
    let other = deployment.workspace().await;
    workspace.token.post(&format!("{path}/restore")).await.expect_error(401, "UNAUTHORIZED");
    let unknown = format!("/api/workspaces/{}/restore", uuid::Uuid::from_u128(5));
    other.session.post(&unknown).await.expect_error(404, "NOT_FOUND");
    workspace.session.post(&format!("{path}/restore")).await.expect(200);
    admin.get(&path).await.expect(200);
}

#[test]
fn one_process_removes_everything_though_it_is_killed_meanwhile() {
    run_alone(async {
        let data = Scratch::new();
        let mut up = SingleProcess::start_on(data.path(), &[BRIEF]).await;
        let session = sign_in(up.base_url(), up.owner()).await;
        let workspace = fill(&session, 30).await;
        let objects = data.path().join("assets").join(&workspace);
        std::fs::create_dir_all(&objects).unwrap();
        assert!(rows(&sqlite(data.path(), "content"), "files", &workspace).await > 0);
        session.delete(&format!("/api/workspaces/{workspace}")).await.expect(204);
        up.kill();

        let up = SingleProcess::start_on(data.path(), &[BRIEF]).await;
        eventually("nothing is left of the workspace", async || {
            let auth = rows(&sqlite(data.path(), "auth"), "members", &workspace).await;
            (auth == 0).then_some(())
        })
        .await;
        for table in ["files", "file_versions", "bodies", "folders", "memories", "feed_changes", "feed_heads"]
        {
            assert_eq!(rows(&sqlite(data.path(), "content"), table, &workspace).await, 0, "{table}");
        }
        for table in ["retrieval_counts", "retrieval_documents", "retrieval_firsts"] {
            assert_eq!(rows(&sqlite(data.path(), "retrieval"), table, &workspace).await, 0, "{table}");
        }
        assert!(!objects.exists(), "the place of its assets");
        let session = sign_in(up.base_url(), up.owner()).await;
        let restore = format!("/api/workspaces/{workspace}/restore");
        session.post(&restore).await.expect_error(404, "NOT_FOUND");
        up.token().get("/api/v1/files").await.expect(200);
        drop(up);
        assert_sound(data.path()).await;
    });
}

#[test]
fn services_that_were_down_are_told_later() {
    run_alone(async {
        let mut mesh = match Mesh::start_with(&[BRIEF]).await {
            Ok(mesh) => mesh,
            Err(why) => return announce_skip(&why),
        };
        let anonymous = Anonymous { http: Http::new(&mesh.base_url()) };
        eventually("the mesh is ready", async || {
            (anonymous.get("/readyz").await.status == 200).then_some(())
        })
        .await;
        let session = sign_in(&mesh.base_url(), mesh.owner()).await;
        let workspace = fill(&session, 3).await;
        let export = format!("/api/v1/memories/open/export?workspaceId={workspace}");
        anonymous.get(&export).await.expect(200);
        let databases = ["auth", "content", "retrieval"].map(|service| mesh.database(service).to_owned());
        let [auth, content, retrieval] = databases;

        mesh.kill("content");
        mesh.kill("retrieval");
        session.delete(&format!("/api/workspaces/{workspace}")).await.expect(204);
        mesh.restart("content").await;
        eventually("content knows that the workspace was deleted", async || {
            (anonymous.get(&export).await.status == 404).then_some(())
        })
        .await;
        assert!(
            schema_rows(&auth, "auth", "members", &workspace).await > 0,
            "retrieval is still to forget it"
        );
        mesh.kill("auth");
        mesh.restart("auth").await;
        mesh.restart("retrieval").await;
        eventually("nothing is left of the workspace", async || {
            (schema_rows(&auth, "auth", "members", &workspace).await == 0).then_some(())
        })
        .await;
        for table in ["files", "bodies", "memories", "feed_changes"] {
            assert_eq!(schema_rows(&content, "content", table, &workspace).await, 0, "{table}");
        }
        assert_eq!(schema_rows(&retrieval, "retrieval", "retrieval_counts", &workspace).await, 0);
    });
}

/// A workspace with some files, a public memory, and a search that was counted.
async fn fill(session: &Session, files: usize) -> String {
    let made = session.post("/api/workspaces").json(json!({"name": "To go"})).await.expect(201).json();
    let workspace = id(&made);
    let all = json!({"name": "all", "permissions": ["read", "write", "delete"]});
    let token = make_token(session, &workspace, all).await;
    let folder = json!({"name": "outer"});
    let folder = id(&token.post("/api/v1/folders").json(folder).await.expect(201).json());
    let inner = json!({"name": "inner", "parentId": folder});
    let inner = id(&token.post("/api/v1/folders").json(inner).await.expect(201).json());
    let mut last = String::new();
    for number in 0..files {
        let body = json!({
            "name": format!("{number}.md"), "content": format!("okapi {number}"), "fileType": "markdown",
            "folderId": inner,
        });
        last = id(&token.post("/api/v1/files").json(body).await.expect(201).json());
    }
    public_memory(&token, &last).await;
    token.post("/api/v1/search_context").json(json!({"query": "okapi"})).await.expect(200);
    workspace
}

pub(crate) async fn sign_in(base_url: &str, owner: &Owner) -> Session {
    let http = Http::new(base_url);
    let form = json!({"email": owner.email, "password": owner.password});
    let signed_in = Anonymous { http: http.clone() }.post("/api/session").json(form).await;
    let cookie = signed_in.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    Session { http, cookie }
}

fn sqlite(data: &Path, service: &str) -> String {
    format!("sqlite:{}", data.join(format!("{service}.db")).display())
}

async fn rows(url: &str, table: &str, workspace: &str) -> i64 {
    let mut store = sqlx::SqliteConnection::connect(url).await.unwrap();
    let sql = AssertSqlSafe(format!("SELECT COUNT(*) FROM {table} WHERE workspace_id = $1"));
    let count = sqlx::query_scalar(sql).bind(workspace).fetch_one(&mut store).await.unwrap();
    store.close().await.unwrap();
    count
}

async fn schema_rows(url: &str, schema: &str, table: &str, workspace: &str) -> i64 {
    let mut store = sqlx::PgConnection::connect(url).await.unwrap();
    let sql = AssertSqlSafe(format!("SELECT COUNT(*) FROM {schema}.{table} WHERE workspace_id = $1"));
    let count = sqlx::query_scalar(sql).bind(workspace).fetch_one(&mut store).await.unwrap();
    store.close().await.unwrap();
    count
}
