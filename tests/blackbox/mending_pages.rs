//! The file pages for fixing texts: who wrote them last, whether searches find them, what parsers fail on, and the link
//! back to the search or question that led there.

use cairn_proto::content::v1::BatchGetCurrentFileVersionsRequest;
use cairn_proto::content::v1::file_version_service_client::FileVersionServiceClient;
use cairn_proto::feed::v1::Kind;
use cairn_proto::retrieval::v1::index_service_client::IndexServiceClient;
use cairn_proto::retrieval::v1::{BatchGetDocumentStatesRequest, DocumentState};
use tonic::Code;

use crate::grpc::{as_caller, connect, exchange};
use crate::support::http::{Reply, id, text};
use crate::support::oauth::encoded;
use crate::support::people;
use crate::support::prelude::*;

scenarios![
    the_list_tells_who_wrote_last_and_what_searches_find,
    services_tell_of_many_files_what_the_caller_may_see,
    a_search_is_copied_without_a_secret,
    a_mended_file_is_asked_about_again,
    yaml_that_programs_cannot_read_is_told_and_kept,
    names_of_files_are_offered_for_links,
];

const FORM: &str = "application/x-www-form-urlencoded";

async fn page(workspace: &Workspace, path: &str) -> String {
    workspace.session.get(path).await.expect(200).text()
}

async fn send(workspace: &Workspace, path: &str, fields: &[(&str, &str)]) -> Reply {
    let body = encoded(fields.iter().copied());
    workspace.session.post(path).header("sec-fetch-site", "same-origin").body(FORM, body).await
}

async fn hash(workspace: &Workspace, file: &str) -> String {
    text(&workspace.token.get(&format!("/api/v1/files/{file}")).await.expect(200).json(), "contentHash")
}

/// The row of a file in a list.
fn row<'a>(page: &'a str, file: &str) -> &'a str {
    let rows = page.split("<tr>").find(|row| row.contains(&format!("href=\"/file/{file}\"")));
    rows.unwrap_or_else(|| panic!("{file} is not in {page}"))
}

async fn the_list_tells_who_wrote_last_and_what_searches_find(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("Plans", None).await;
    let by_token = workspace.file_id("a.md", Some(&folder), "The narwhal dives.\n").await;
    let by_person = workspace.file_id("b.md", Some(&folder), "x\n").await;
    let blank = workspace.file_id("c.md", Some(&folder), "").await;
    let begun = hash(&workspace, &by_person).await;
    let fields = [("hash", begun.as_str()), ("content", "The narwhal sings.\r\n")];
    send(&workspace, &format!("/file/{by_person}/edit"), &fields).await.expect(303);

    let list = format!("/w/{}/files?folder={folder}", workspace.id);
    let shown = eventually("all that can be found is found", async || {
        let shown = page(&workspace, &list).await;
        let is_found = |file: &str| row(&shown, file).contains("class=\"badge ok\">Searchable<");
        (is_found(&by_token) && is_found(&by_person) && row(&shown, &blank).contains("Nothing to search"))
            .then_some(shown)
    })
    .await;
    assert!(shown.contains(">Changed by<") && shown.contains(">Searchable</th>"), "{shown}");
    assert!(row(&shown, &by_token).contains("(a token)"), "{shown}");
    assert!(!row(&shown, &by_person).contains("(a token)"), "{shown}");
    // The same when searching by name.
    let found = page(&workspace, &format!("/w/{}/files?q=a.md", workspace.id)).await;
    assert!(row(&found, &by_token).contains("(a token)"), "{found}");
    let viewer = people::join(&workspace, "viewer").await.seat(&workspace);
    assert!(row(&page(&viewer, &list).await, &by_token).contains("Searchable"));
}

async fn services_tell_of_many_files_what_the_caller_may_see(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("Mine", None).await;
    let mine = workspace.file_id("mine.md", Some(&folder), "The kakapo walks.\n").await;
    let other = workspace.file_id("other.md", None, "The kakapo booms.\n").await;
    let elsewhere = deployment.workspace().await.file_id("a.md", None, "x").await;
    let asked = vec![mine.clone(), other.clone(), elsewhere, "no id".to_owned()];
    let whole = exchange(deployment, &workspace.token).await;
    let scoped = exchange(deployment, &workspace.token_for(&[&folder]).await).await;

    let mut index = IndexServiceClient::new(connect(deployment, "retrieval").await);
    let of = |ids: &[String]| BatchGetDocumentStatesRequest { kind: Kind::File.into(), ids: ids.to_vec() };
    eventually("both are searchable", async || {
        let told = index.batch_get_document_states(as_caller(&whole, of(&asked))).await.unwrap().into_inner();
        let found = told.documents.iter().filter(|one| one.state() == DocumentState::Searchable).count();
        assert!(told.documents.len() == 2, "{told:?}");
        (found == 2).then_some(())
    })
    .await;
    let told = index.batch_get_document_states(as_caller(&scoped, of(&asked))).await.unwrap().into_inner();
    let ids: Vec<&str> = told.documents.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, [mine.as_str()]);
    let many = vec![mine.clone(); 201];
    let refused = index.batch_get_document_states(as_caller(&whole, of(&many))).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");

    let mut versions = FileVersionServiceClient::new(connect(deployment, "content").await);
    let of = |file_ids: &[String]| BatchGetCurrentFileVersionsRequest { file_ids: file_ids.to_vec() };
    let all = versions.batch_get_current_file_versions(as_caller(&whole, of(&asked))).await.unwrap();
    assert_eq!(all.into_inner().versions.len(), 2);
    let seen = versions.batch_get_current_file_versions(as_caller(&scoped, of(&asked))).await.unwrap();
    let seen = seen.into_inner().versions;
    assert_eq!(seen.iter().map(|one| one.file_id.as_str()).collect::<Vec<_>>(), [mine.as_str()]);
    assert_eq!(seen[0].created_by.as_ref().unwrap().kind, "token");
    let refused = versions.batch_get_current_file_versions(as_caller(&whole, of(&many))).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
}

async fn a_search_is_copied_without_a_secret(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let made = workspace.file("a.md", None, "The quokka smiles at O'Hara.\n").await;
    workspace.search_after(&made.change(), json!({"query": "quokka"})).await;
    let query: String = encoded([("q", "quokka O'Hara"), ("strategy", "keyword"), ("mode", "balanced")]);
    let shown = page(&workspace, &format!("/w/{}/search?{query}", workspace.id)).await;
    for part in [
        "Copy this search",
        "/api/v1/search_context",
        "Bearer $CAIRN_TOKEN",
        r"O'\''Hara",
        "cairn search --strategy 'keyword' -- ",
        "tools/call",
        "data-copy=\"#copy-curl\"",
        "data-copy=\"#copy-tool\"",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains(workspace.token.secret.as_str()), "{shown}");
    // The copied tool call gives the same answer.
    let call = shown.split("id=\"copy-tool\">").nth(1).unwrap().split("</code>").next().unwrap();
    let call: Value = serde_json::from_str(&call.replace("&quot;", "\"").replace("&amp;", "&")).unwrap();
    assert_eq!(call["params"]["name"], "search_context");
    let answer =
        workspace.token.post("/api/v1/search_context").json(call["params"]["arguments"].clone()).await;
    assert!(answer.expect(200).text().contains("The quokka smiles"));
}

async fn a_mended_file_is_asked_about_again(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let made = workspace.file("otter.md", None, "The otter sleeps at noon.\n").await;
    let file = id(&made.json());
    workspace.search_after(&made.change(), json!({"query": "otter"})).await;
    let search = format!("/w/{}/search?q=otter&strategy=keyword", workspace.id);
    let found = page(&workspace, &search).await;
    let ask = "ask=q%3Dotter%26strategy%3Dkeyword";
    assert!(found.contains(&format!("&amp;{ask}#L1")), "{found}");
    let read = page(&workspace, &format!("/file/{file}?{ask}")).await;
    assert!(read.contains(&format!("href=\"/file/{file}/edit?{ask}\"")), "{read}");
    let editor = page(&workspace, &format!("/file/{file}/edit?{ask}")).await;
    assert!(editor.contains("Save and ask again"), "{editor}");
    assert!(!page(&workspace, &format!("/file/{file}/edit")).await.contains("Save and ask again"));

    let begun = hash(&workspace, &file).await;
    let typed = "The otter sleeps at midnight, say the zqwardens.\r\n";
    let fields =
        [("hash", begun.as_str()), ("content", typed), ("ask", "q=otter&strategy=keyword"), ("again", "yes")];
    let saved = send(&workspace, &format!("/file/{file}/edit"), &fields).await.expect(303);
    let to = saved.header("location").unwrap().to_owned();
    assert!(to.starts_with(&format!("{search}&after=c1-")), "{to}");
    eventually("the answer sees the write", async || {
        let again = page(&workspace, &to).await;
        (again.contains("zqwardens") && again.contains("Asked again")).then_some(())
    })
    .await;
    for odd in ["x", "", "c1-", "c1-zzzzzzzzzzzzzzzzzzzz", "%00"] {
        page(&workspace, &format!("{search}&after={odd}")).await;
    }

    // A save that lost the race keeps the link, too.
    let page_of_both = send(&workspace, &format!("/file/{file}/edit"), &fields).await.expect(409).text();
    for part in ["name=\"ask\" value=\"q=otter&amp;strategy=keyword\"", "name=\"again\" value=\"yes\""] {
        assert!(page_of_both.contains(part), "{part}: {page_of_both}");
    }
    // The link cannot lead to another site.
    let now = hash(&workspace, &file).await;
    let elsewhere =
        [("hash", now.as_str()), ("content", "y"), ("ask", "//evil.example/?q"), ("again", "yes")];
    let saved = send(&workspace, &format!("/file/{file}/edit"), &elsewhere).await.expect(303);
    assert_eq!(saved.header("location"), Some(format!("/file/{file}").as_str()));
}

async fn yaml_that_programs_cannot_read_is_told_and_kept(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "x\n").await;
    let broken = "---\r\ntitle: A\r\nowner: Ada: Bob\r\n---\r\n# Text\r\n";
    let shown = send(&workspace, &format!("/file/{file}/preview"), &[("content", broken)]).await.expect(200);
    assert!(shown.text().contains("no valid YAML: line 3"), "{}", shown.text());
    let begun = hash(&workspace, &file).await;
    let edit = format!("/file/{file}/edit");
    let saved = send(&workspace, &edit, &[("hash", &begun), ("content", broken)]).await.expect(303);
    let cookie = saved.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let with_notice = format!("{}; {cookie}", workspace.session.cookie);
    let read = deployment.anonymous().get(&format!("/file/{file}")).header("cookie", with_notice).await;
    let read = read.expect(200).text();
    assert!(read.contains("Saved. ") && read.contains("no valid YAML: line 3"), "{read}");
    let stored = workspace.token.get(&format!("/api/v1/files/{file}")).await.expect(200).json();
    assert_eq!(text(&stored, "content"), broken.replace("\r\n", "\n"));
    // The viewer may not fix it, and sees no warning.
    let viewer = people::join(&workspace, "viewer").await.seat(&workspace);
    assert!(!page(&viewer, &format!("/file/{file}")).await.contains("no valid YAML"));

    let yaml = id(&workspace.typed_file("a.yaml", "yaml", None, "a: 1\n").await.json());
    let wrong = [("content", "a: [1\r\nb: 2\r\n")];
    let shown = send(&workspace, &format!("/file/{yaml}/preview"), &wrong).await.expect(200).text();
    assert!(shown.contains("This is no valid YAML: line "), "{shown}");
    let fine = send(&workspace, &format!("/file/{yaml}/preview"), &[("content", "a: [1]\r\n")]).await;
    assert!(fine.expect(200).text().contains("No problem was found."));
}

async fn names_of_files_are_offered_for_links(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("Wombat plans", None).await;
    let file = workspace.file_id("wombat-<b>.md", Some(&folder), "x").await;
    let go = format!("/w/{}/go?kind=file", workspace.id);
    let found = page(&workspace, &format!("{go}&q=WOMBAT")).await;
    let list = found.split("<ul id=\"found\">").nth(1).unwrap().split("</ul>").next().unwrap();
    assert!(list.contains(&format!("href=\"/file/{file}\"")), "{found}");
    assert!(list.contains("<bdi>/Wombat plans/wombat-&lt;b&gt;.md</bdi>"), "{list}");
    assert_eq!(list.matches("<li>").count(), 1, "no folder: {list}");
    let editor = page(&workspace, &format!("/file/{file}/edit")).await;
    assert!(editor.contains(&format!("data-names=\"/w/{}/go\"", workspace.id)), "{editor}");
    let stranger = people::join(&deployment.workspace().await, "owner").await.session;
    assert_eq!(stranger.get(&format!("{go}&q=wombat")).await.status, 404);
}
