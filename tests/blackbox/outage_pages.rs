//! Pages of the console during an outage (issue "The console"): the available parts are shown, the others name the
//! service that does not answer and offer a way on, and no input is lost.

use crate::deletion::sign_in;
use crate::outage::with_mesh;
use crate::support::callers::{Anonymous, Session};
use crate::support::http::{Http, Reply, id, text};
use crate::support::mesh::{Mesh, SERVICES};
use crate::support::prelude::*;
use crate::support::tables::{Table, send};
use crate::support::workspace::{make_token, read_file};

/// Pages below a workspace.
const PAGES: &[&str] = &[
    "",
    "/connect",
    "/tokens",
    "/tokens/new",
    "/activity",
    "/trash",
    "/apps",
    "/members",
    "/health",
    "/files",
    "/databases",
    "/search",
    "/search?view=script",
    "/search?q=tapir",
    "/search/absence",
    "/go?q=tapir",
    "/golden",
    "/memories",
    "/memories/new",
    "/questions",
    "/analytics",
    "/freshness",
    "/documents",
    "/documents/new",
    "/sources",
    "/settings",
    "/import",
    "/sync",
];
/// Of these, pages that cannot be rendered without svc-content.
const NEEDS_CONTENT: &[&str] = &[
    "",
    "/tokens/new",
    "/activity",
    "/trash",
    "/files",
    "/databases",
    "/search",
    "/search?q=tapir",
    "/search/absence",
    "/memories",
    "/import",
    "/analytics",
    "/freshness",
];
/// Pages that cannot be rendered without svc-retrieval, or show an error in place of its part.
const NEEDS_RETRIEVAL: &[&str] =
    &["/search?q=tapir", "/search/absence", "/golden", "/questions", "/analytics", "/freshness"];
/// The text of an error page in place of the unavailable part.
const UNAVAILABLE: &str = "A service that this needs does not answer now";

/// A workspace with one item of each kind.
struct Stage {
    workspace: Workspace,
    file: String,
    database: String,
    memory: String,
}

impl Stage {
    async fn set(mesh: &Mesh) -> Self {
        let session = sign_in(&mesh.base_url(), mesh.owner()).await;
        let made = session.post("/api/workspaces").json(json!({"name": "Field notes"})).await.expect(201);
        let workspace_id = id(&made.json());
        let body = json!({"name": "all", "permissions": ["read", "write", "delete"]});
        let token = make_token(&session, &workspace_id, body).await;
        let workspace = Workspace { id: workspace_id, session, token };
        let written = workspace.file("tapir.md", None, "The tapir is here before.\n").await;
        let file = id(&written.json());
        let table = Table::make(&workspace).await;
        table.add(&workspace, &[("Points", json!(3))]).await;
        let body = json!({"name": "Tapirs", "members": [{"kind": "file", "fileId": file}]});
        let memory = id(&workspace.token.post("/api/v1/memories").json(body).await.expect(201).json());
        workspace.search_after(&written.change(), json!({"query": "tapir"})).await;
        Self { workspace, file, database: table.id, memory }
    }

    fn session(&self) -> &Session {
        &self.workspace.session
    }

    /// Each page, with whether it can be rendered without that service.
    fn pages(&self, away: &str) -> Vec<(String, bool)> {
        let stands = |below: &str| match away {
            "content" => !NEEDS_CONTENT.contains(&below),
            "retrieval" => !NEEDS_RETRIEVAL.contains(&below),
            "ingest" => !["/documents", "/sources", "/analytics", "/freshness"].contains(&below),
            "sync" => !["/import", "/sync"].contains(&below),
            _ => false,
        };
        let base = format!("/w/{}", self.workspace.id);
        let mut pages: Vec<_> =
            PAGES.iter().copied().map(|below| (format!("{base}{below}"), stands(below))).collect();
        pages.extend(["/account", "/workspaces"].map(|path| (path.to_owned(), away != "auth")));
        let of_things = [
            format!("/file/{}", self.file),
            format!("/file/{}?view=uses", self.file),
            format!("/file/{}?view=changes", self.file),
            format!("/file/{}/edit", self.file),
            format!("/databases/{}", self.database),
            format!("/memories/{}", self.memory),
        ];
        pages.extend(of_things.map(|path| (path, !["auth", "content"].contains(&away))));
        pages
    }

    /// Saves the editor's text, based on the content with that hash.
    async fn save(&self, hash: &str, typed: &str) -> Reply {
        let path = format!("/file/{}/edit", self.file);
        send(&self.workspace, &path, &[("hash", hash), ("content", typed)]).await
    }

    /// Waits until the session's cache entry expires, which takes up to a second.
    async fn wait_for_cache_expiry(&self) {
        let unknown = async || (self.session().get("/account").await.status != 200).then_some(());
        eventually("the session is asked for again", unknown).await;
    }

    async fn hash(&self) -> String {
        text(&read_file(&self.workspace.token, &self.file).await, "contentHash")
    }
}

#[test]
fn pages_say_which_service_is_away_and_the_others_stand() {
    with_mesh(async |mesh| {
        let stage = Stage::set(mesh).await;
        for (path, _) in stage.pages("nothing") {
            stage.session().get(&path).await.expect(200);
        }
        for service in SERVICES {
            mesh.kill(service);
            if service == "auth" {
                stage.wait_for_cache_expiry().await;
            }
            for (path, stands) in stage.pages(service) {
                let reply = stage.session().get(&path).await;
                if stands || reply.status == 200 {
                    reply.expect(200);
                } else {
                    assert_tells(&reply, service, &path);
                }
            }
            what_is_missing_is_told_in_its_place(&stage, service).await;
            let anonymous = Anonymous { http: Http::new(&mesh.base_url()) };
            anonymous.get("/docs/guides").await.expect(200);
            mesh.restart(service).await;
            for (path, _) in stage.pages(service) {
                let shown = async || {
                    let reply = stage.session().get(&path).await;
                    assert!(matches!(reply.status, 200 | 503), "{path}: {} {}", reply.status, reply.text());
                    (reply.status == 200).then_some(())
                };
                eventually(&format!("{path} is shown again after {service}"), shown).await;
            }
        }
    });
}

#[test]
fn what_was_typed_outlives_the_service_that_it_was_sent_to() {
    const TYPED: &str = "The tapir came back.\n\nWith </textarea> & all.\n";
    with_mesh(async |mesh| {
        let stage = Stage::set(mesh).await;
        for service in ["content", "auth"] {
            let hash = stage.hash().await;
            mesh.kill(service);
            let typed = format!("{TYPED}{service}\n");
            if service == "auth" {
                stage.wait_for_cache_expiry().await;
            }
            let refused = stage.save(&hash, &typed).await;
            assert_tells(&refused, service, "the form");
            let page = refused.text();
            assert!(page.contains("With &lt;/textarea&gt; &amp; all."), "{page}");
            assert!(page.contains(&format!("action=\"/file/{}/edit\"", stage.file)), "{page}");
            assert!(page.contains(&format!("name=\"hash\" value=\"{hash}\"")), "{page}");
            // Values that may be secret are not echoed.
            let path = format!("/w/{}/tokens", stage.workspace.id);
            let secret = send(&stage.workspace, &path, &[("name", "A name that nobody repeats")]).await;
            assert!(!secret.text().contains("What you sent"), "{}", secret.text());

            mesh.restart(service).await;
            // The form of that page, submitted again.
            let saved = async || {
                let reply = stage.save(&hash, &typed).await;
                assert!(matches!(reply.status, 303 | 503), "{} {}", reply.status, reply.text());
                (reply.status == 303).then_some(())
            };
            eventually("the form is taken", saved).await;
            let read = eventually("the file is read", async || {
                let reply = stage.workspace.token.get(&format!("/api/v1/files/{}", stage.file)).await;
                (reply.status == 200).then(|| reply.json())
            })
            .await;
            assert_eq!(text(&read, "content"), typed);
        }
        // Saving does not depend on the other services.
        for service in ["retrieval", "sync"] {
            mesh.kill(service);
            let typed = format!("{TYPED}{service}\n");
            stage.save(&stage.hash().await, &typed).await.expect(303);
            mesh.restart(service).await;
        }
    });
}

/// An error page names the service, and offers ways on.
#[track_caller]
fn assert_tells(reply: &Reply, service: &str, what: &str) {
    let page = reply.text();
    assert_eq!(reply.status, 503, "{what} without {service}: {page}");
    assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"), "{what}");
    assert!(page.contains("Something does not work now"), "{what} without {service}: {page}");
    assert!(page.contains(&format!("<strong>{service}</strong>")), "{what} without {service}: {page}");
    assert!(page.contains(">Try again</a>"), "{what} without {service}: {page}");
    assert!(page.contains(">To the overview</a>"), "{what} without {service}: {page}");
}

/// The placeholders in the pages that are still rendered.
async fn what_is_missing_is_told_in_its_place(stage: &Stage, service: &str) {
    let page = async |path: &str| stage.session().get(path).await.expect(200).text();
    let base = format!("/w/{}", stage.workspace.id);
    if service == "auth" {
        return;
    }
    let health = page(&format!("{base}/health")).await;
    let (_, row) = health.split_once(&format!("<th scope=\"row\">{service}</th>")).unwrap();
    let row = row.split("</tr>").next().unwrap();
    assert!(row.contains("Does not answer"), "{service}: {health}");
    assert_eq!(health.matches("Does not answer").count(), 1, "{service}: {health}");
    match service {
        "content" => {
            let settings = page(&format!("{base}/settings")).await;
            assert!(settings.contains("the service that counts it does not answer"), "{settings}");
        }
        "retrieval" => {
            let overview = page(&base).await;
            assert!(overview.contains("The search service does not answer"), "{overview}");
            assert!(overview.contains("tapir.md"), "{overview}");
            let uses = page(&format!("/file/{}?view=uses", stage.file)).await;
            assert!(uses.contains(UNAVAILABLE) && uses.contains("Tapirs"), "{uses}");
            let read = page(&format!("/file/{}", stage.file)).await;
            assert!(read.contains("The tapir is here before."), "{read}");
        }
        "ingest" => {
            let settings = page(&format!("{base}/settings")).await;
            assert!(settings.contains("the service that counts it does not answer"), "{settings}");
        }
        _ => {}
    }
}
