//! The console's pages about external documents: the list, and a document with the cited lines.

use crate::support::http::{Reply, id, items, text};
use crate::support::oauth::encoded;
use crate::support::people;
use crate::support::prelude::*;
use crate::support::sources::{SourceFolder, connect};

scenarios![
    a_sent_document_is_read_cited_and_deleted,
    a_document_of_a_source_is_read_as_it_is_kept,
    documents_are_found_in_the_list,
    a_text_is_put_in_by_a_form,
    documents_are_of_their_workspace,
];

const FORM: &str = "application/x-www-form-urlencoded";
const HOSTILE: &str = "<script>alert(1)</script>\"' onclick=x";

async fn send(seat: &Workspace, path: &str) -> Reply {
    seat.session.post(path).header("sec-fetch-site", "same-origin").body(FORM, "").await
}

async fn page(seat: &Workspace, path: &str) -> String {
    seat.session.get(path).await.expect(200).text()
}

/// Ingests a text; returns the document once it is searchable.
async fn ingest(workspace: &Workspace, key: &str, title: &str, content: &str) -> Value {
    let body =
        json!({"idempotencyKey": key, "title": title, "content": content, "metadata": {HOSTILE: HOSTILE}});
    let sent = workspace.token.post("/api/v1/ingest").json(body).await.expect(202).json();
    let path = format!("/api/v1/ingest/{}", id(&sent));
    eventually("the document is indexed", async || {
        let now = workspace.token.get(&path).await.expect(200).json();
        (now["status"] == "indexed").then_some(now)
    })
    .await
}

async fn a_sent_document_is_read_cited_and_deleted(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let content = "# Otters\n\nThey float.\n\n## Paws\n\nAn otter holds a paw while it sleeps.\n";
    let document = ingest(&workspace, "otters", HOSTILE, content).await;
    let own = format!("/documents/{}", id(&document));
    let shown = page(&workspace, &own).await;
    for part in
        ["Searchable", "They float.", "aria-label=\"Outline\"", "&lt;script&gt;alert(1)", "Delete for good"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("<script>alert"), "{shown}");

    // A citation of an agent opens at its lines.
    let body =
        json!({"query": "what does an otter hold while it sleeps", "kinds": ["ingested"], "mode": "fast"});
    let found = workspace.token.post("/api/v1/search_context").json(body).await.expect(200).json();
    let citation = items(&found["results"])[0]["citation"].clone();
    let permalink = text(&citation, "permalink");
    let there = permalink.find("/documents/").unwrap();
    let cited = page(&workspace, permalink[there..].split('#').next().unwrap()).await;
    assert!(cited.contains("data-cited") && !cited.contains("has changed since"), "{cited}");
    let at = format!("{own}?view=source&lines=7&hash={}", text(&citation, "contentHash"));
    let cited = page(&workspace, &at).await;
    assert!(cited.contains("id=\"L7\" data-n=\"7\" data-cited"), "{cited}");
    assert_eq!(cited.matches("data-cited").count(), 1, "{cited}");
    let stale = page(&workspace, &format!("{own}?lines=7&hash=blake3:00")).await;
    assert!(stale.contains("has changed since it was cited") && !stale.contains("data-cited"), "{stale}");
    let line = content.lines().nth(6).unwrap();
    let quoted = encoded([("lines", "1"), ("hash", "blake3:00"), ("quote", line)]);
    let found = page(&workspace, &format!("{own}?{quoted}")).await;
    assert!(found.contains("still stand in it") && found.contains(&format!("{own}?lines=7#L7")), "{found}");
    for odd in
        ["lines=9-1", "lines=x&hash=%00", "line=99999999999999999999", "view=nothing", "lines=999999999"]
    {
        workspace.session.get(&format!("{own}?{odd}")).await.expect(200);
    }
    let file = workspace.session.get(&format!("{own}/download")).await.expect(200);
    assert_eq!(file.text(), content);
    send(&workspace, &format!("{own}/read")).await.expect(404);

    let contributor = people::join(&workspace, "contributor").await.session;
    let shown = contributor.get(&own).await.expect(200).text();
    assert!(!shown.contains("Delete for good"), "{shown}");
    contributor.post(&format!("{own}/delete")).body(FORM, "").await.expect(403);
    let gone = send(&workspace, &format!("{own}/delete")).await.expect(303);
    assert_eq!(gone.header("location"), Some(format!("/w/{}/documents", workspace.id).as_str()));
    let gone = workspace.session.get(&own).await.expect(404);
    assert_eq!(gone.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(gone.text().contains("deleted") && !gone.text().contains("alert(1)"), "{}", gone.text());
}

async fn a_document_of_a_source_is_read_as_it_is_kept(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = SourceFolder::new(deployment);
    folder.put("animals/otters.md", "# Otters\n\nThey float.\n");
    folder.put("broken.pdf", "%PDF-1.7 and nothing that could be read");
    let source = connect(&workspace, folder.draft("Field notes")).await;
    source.run().await;
    let documents = source.documents().await;
    let named = |name: &str| {
        let of_name = items(&documents).iter().find(|one| text(one, "externalId") == name);
        id(of_name.unwrap_or_else(|| panic!("no {name} in {documents}")))
    };
    let own = format!("/documents/{}", named("animals/otters.md"));
    eventually("it is searched", async || {
        page(&workspace, &own).await.contains("Searches and agents").then_some(())
    })
    .await;
    let shown = page(&workspace, &own).await;
    for part in ["They float.", "Field notes", "animals/otters.md", "/sources/Field notes/animals/otters.md"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("Delete for good"), "it is its source's: {shown}");
    send(&workspace, &format!("{own}/delete")).await.expect(403);
    let failed = page(&workspace, &format!("/documents/{}", named("broken.pdf"))).await;
    assert!(failed.contains("Failed") && failed.contains("Why: "), "{failed}");
    let list = format!("/w/{}/documents?status=failed", workspace.id);
    let listed = page(&workspace, &list).await;
    assert!(listed.contains("broken") && !listed.contains("otters"), "{listed}");
    assert!(listed.contains("Try again"), "{listed}");

    // Programs can read the same.
    let api = format!("/api/workspaces/{}/source-documents/{}", workspace.id, named("animals/otters.md"));
    let told = workspace.session.get(&api).await.expect(200).json();
    assert_eq!(
        (text(&told, "content"), text(&told, "sourceName")),
        ("# Otters\n\nThey float.\n".into(), "Field notes".into())
    );
    let viewer = people::join(&workspace, "viewer").await.session;
    assert_eq!(viewer.get(&api).await.expect(200).json(), told);
    let stranger = people::join(&deployment.workspace().await, "owner").await.session;
    stranger.get(&api).await.expect_error(404, "NOT_FOUND");

    source.change(json!({"mode": "catalog"})).await.expect(200);
    let shown = page(&workspace, &own).await;
    assert!(
        shown.contains("Catalog only") && shown.contains("Read it now") && !shown.contains("They float."),
        "{shown}"
    );
    let read = send(&workspace, &format!("{own}/read")).await.expect(200).text();
    assert!(read.contains("They float.") && read.contains("kept nowhere"), "{read}");
    assert!(!page(&workspace, &own).await.contains("They float."), "it is kept nowhere");
    workspace.session.delete(&source.path("")).await.expect(204);
    workspace.session.get(&own).await.expect(404);
}

async fn documents_are_found_in_the_list(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let list = format!("/w/{}/documents", workspace.id);
    assert!(page(&workspace, &list).await.contains("No document has come from outside yet."));
    for number in 0..52 {
        let body = json!({"idempotencyKey": format!("k{number}"), "title": format!("Note {number:02}"), "content": "x"});
        workspace.token.post("/api/v1/ingest").json(body).await.expect(202);
    }
    let first = page(&workspace, &format!("{list}?source=ingested")).await;
    assert!(first.contains("Note 51") && !first.contains("Note 01<"), "{first}");
    assert!(first.contains("aria-label=\"Pages\"") && first.contains("of 52"), "{first}");
    let next = first.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    let second = page(&workspace, &next.replace("&amp;", "&")).await;
    assert!(
        second.contains("Note 01") && second.contains("Previous") && !second.contains("Note 51"),
        "{second}"
    );
    let some = page(&workspace, &format!("{list}?q=nOTe+07")).await;
    assert!(some.contains("Note 07") && !some.contains("Note 08"), "{some}");
    let path = "/api/v1/ingest?title=note+0";
    assert_eq!(items(&workspace.token.get(path).await.expect(200).json()).len(), 10);
    for odd in
        ["q=%25", "q=%00", "status=nothing", "source=x", "from=nonsense", "source=ingested&from=nonsense"]
    {
        let reply = workspace.session.get(&format!("{list}?{odd}")).await;
        assert!(reply.status < 500, "{odd}: {}", reply.text());
    }
}

async fn a_text_is_put_in_by_a_form(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let new = format!("/w/{}/documents/new", workspace.id);
    assert!(page(&workspace, &new).await.contains("Add document"));
    let put = async |fields: &[(&str, &str)]| {
        let body = encoded(fields.iter().copied());
        workspace.session.post(&new).header("sec-fetch-site", "same-origin").body(FORM, body).await
    };
    let refused = put(&[("title", ""), ("content", "kept words")]).await.expect(400).text();
    assert!(refused.contains("kept words") && refused.contains("#f-title"), "{refused}");
    let typed =
        [("title", "Minutes"), ("content", "\r\n# May\r\n\r\nWe met.\r\n"), ("contentType", "markdown")];
    let own = put(&typed).await.expect(303).header("location").unwrap().to_owned();
    let text = workspace.session.get(&format!("{own}/download")).await.expect(200).text();
    assert_eq!(text, "\n# May\n\nWe met.\n", "byte for byte, but for the ends of its lines");
    let again = put(&typed).await.expect(303);
    assert_eq!(again.header("location"), Some(own.as_str()), "the same form twice is one document");
    let viewer = people::join(&workspace, "viewer").await.session;
    viewer.get(&new).await.expect(403);
    viewer.post(&new).body(FORM, "title=x&content=x").await.expect(403);
}

async fn documents_are_of_their_workspace(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let document = ingest(&workspace, "a", "Only ours", "x").await;
    let own = format!("/documents/{}", id(&document));
    let located = format!("/api{own}");
    let found = workspace.session.get(&located).await.expect(200).json();
    let expected = json!({"kind": "ingested", "id": id(&document), "workspaceId": workspace.id});
    assert_eq!(found, expected);
    let stranger = people::join(&deployment.workspace().await, "owner").await.session;
    stranger.get(&located).await.expect_error(404, "NOT_FOUND");
    let hidden = stranger.get(&own).await.expect(404).text();
    assert!(!hidden.contains("Only ours"), "{hidden}");
    for odd in ["/documents/x", "/documents/%00", "/documents/0199c0de-0000-7000-8000-000000000001"] {
        let reply = workspace.session.get(odd).await.expect(404);
        assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"), "{odd}");
    }
    let nobody = deployment.anonymous().get(&own).await.expect(303);
    assert!(nobody.header("location").unwrap().starts_with("/sign-in?return_to="), "{nobody:?}");
}
