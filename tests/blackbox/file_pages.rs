//! The console's pages about files: reading, citing, editing, listing, finding.

use crate::support::http::{Reply, id, text};
use crate::support::oauth::encoded;
use crate::support::people;
use crate::support::prelude::*;

scenarios![
    a_citation_opens_the_lines_that_it_cites,
    a_citation_that_is_older_than_the_text_shows_both,
    a_file_in_trash_is_told_and_comes_back,
    a_text_is_saved_byte_for_byte,
    who_was_slower_loses_nothing,
    who_may_not_write_may_not_edit,
    versions_show_what_changed_and_come_back,
    files_are_made_moved_and_deleted_from_their_list,
    uploads_name_what_they_leave_out,
    links_within_texts_open_files,
    a_question_finds_what_an_agent_would_find,
    what_people_wrote_is_shown_as_text,
    addresses_of_nothing_are_pages,
];

const FORM: &str = "application/x-www-form-urlencoded";
const HOSTILE: &str = "<img src=x onerror=alert(1)>.md";

impl Workspace {
    async fn send(&self, path: &str, fields: &[(&str, &str)]) -> Reply {
        let body = encoded(fields.iter().copied());
        self.session.post(path).header("sec-fetch-site", "same-origin").body(FORM, body).await
    }

    async fn page(&self, path: &str) -> String {
        self.session.get(path).await.expect(200).text()
    }

    async fn content(&self, file: &str) -> String {
        let file = self.token.get(&format!("/api/v1/files/{file}")).await.expect(200).json();
        text(&file, "content")
    }

    async fn hash(&self, file: &str) -> String {
        let file = self.token.get(&format!("/api/v1/files/{file}")).await.expect(200).json();
        text(&file, "contentHash")
    }

    async fn write(&self, file: &str, content: &str) {
        let path = format!("/api/v1/files/{file}");
        self.token.patch(&path).json(json!({"content": content})).await.expect(200);
    }
}

fn location(reply: &Reply) -> &str {
    reply.header("location").unwrap_or_default()
}

async fn a_citation_opens_the_lines_that_it_cites(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("plan.md", None, "# Plan\n\nfirst\n\nsecond\n\n- a\n- b\n").await;
    let hash = workspace.hash(&file).await;
    let page = workspace.page(&format!("/file/{file}?lines=5-7&hash={hash}")).await;
    for part in [
        "<p data-l=\"5\" data-cited aria-current=\"true\" id=\"L5\">second</p>",
        "<li data-l=\"7\" data-cited aria-current=\"true\">a</li>",
        "<li data-l=\"8\">b</li>",
        "<p data-l=\"3\">first</p>",
    ] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    let source = workspace.page(&format!("/file/{file}?view=source&lines=5")).await;
    assert_eq!(source.matches(" data-cited").count(), 1, "{source}");
    assert!(source.contains("id=\"L5\" data-n=\"5\" data-cited"), "{source}");
    // An invalid citation highlights nothing.
    for odd in
        ["lines=0", "lines=9-2", "lines=x&hash=y", "lines=1-999999999999999999999999", "line=x", "view=x"]
    {
        let page = workspace.page(&format!("/file/{file}?{odd}")).await;
        assert!(!page.contains("data-cited"), "{odd}");
    }
}

async fn a_citation_that_is_older_than_the_text_shows_both(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("limits.md", None, "intro\n\nlimit is 100\n").await;
    let hash = workspace.hash(&file).await;
    workspace.write(&file, "new intro\n\nmore\n\nlimit is 250\n").await;
    let page = workspace.page(&format!("/file/{file}?lines=3-3&hash={hash}")).await;
    assert!(page.contains("<del>limit is 100</del>") && page.contains("<ins>limit is 250</ins>"), "{page}");
    assert!(page.contains(&format!("/file/{file}/versions/1")), "{page}");
    assert!(page.contains(&format!("/file/{file}?lines=5")), "{page}");
    let whole = workspace.page(&format!("/file/{file}?hash={hash}")).await;
    assert!(whole.contains("has changed since it was cited"), "{whole}");
    assert!(whole.contains(&format!("/file/{file}/versions/1")), "{whole}");
    let unknown = format!("blake3:{}", "0".repeat(64));
    let page = workspace.page(&format!("/file/{file}?lines=3-3&hash={unknown}")).await;
    assert!(page.contains("not kept"), "{page}");
}

async fn a_file_in_trash_is_told_and_comes_back(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("Plans", None).await;
    let file = workspace.file_id("a.md", Some(&folder), "x").await;
    workspace.token.delete(&format!("/api/v1/files/{file}")).await.expect(204);
    for path in [format!("/file/{file}"), format!("/file/{file}?lines=1"), format!("/file/{file}/edit")] {
        let page = workspace.session.get(&path).await.expect(404).text();
        assert!(page.contains("a.md") && page.contains("Restore") && page.contains("(a token)"), "{page}");
    }
    workspace.token.delete(&format!("/api/v1/folders/{folder}")).await.expect(204);
    let list = format!("/w/{}/files?folder={folder}", workspace.id);
    let page = workspace.session.get(&list).await.expect(404).text();
    assert!(page.contains("Plans") && page.contains("Restore"), "{page}");
    let restored = workspace.send(&format!("/file/{file}/restore"), &[]).await.expect(303);
    assert_eq!(location(&restored), format!("/file/{file}"));
    workspace.page(&format!("/file/{file}")).await;
    // A stranger learns nothing of it.
    let stranger = people::join(&deployment.workspace().await, "owner").await;
    let page = stranger.session.get(&format!("/file/{file}")).await.expect(404).text();
    assert!(!page.contains("a.md"), "{page}");
}

async fn a_text_is_saved_byte_for_byte(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    for content in ["\n\nafter empty lines", "a\r\nb\r\n", "a\nb", "é\u{1f600}<&\"'>\t|\n", "a\rb\r\nc\n", ""]
    {
        let file = workspace.file_id("a.md", None, content).await;
        let page = workspace.page(&format!("/file/{file}/edit")).await;
        let hash = workspace.hash(&file).await;
        // What a browser makes of the field: it drops a leading line break, and sends CRLF.
        let field = page.split("autocomplete=\"off\">").last().unwrap().split("</textarea>").next().unwrap();
        let shown = field.strip_prefix('\n').unwrap().replace("&lt;", "<").replace("&gt;", ">");
        let shown = shown.replace("&quot;", "\"").replace("&amp;", "&");
        let sent = shown.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n");
        let fields = [("hash", hash.as_str()), ("content", &sent)];
        let saved = workspace.send(&format!("/file/{file}/edit"), &fields).await.expect(303);
        assert_eq!(location(&saved), format!("/file/{file}"));
        assert_eq!(workspace.content(&file).await, content);
    }
    let file = id(&workspace.typed_file("a.json", "json", None, "{}").await.json());
    let hash = workspace.hash(&file).await;
    let fields = [("hash", hash.as_str()), ("content", "{\r\n  \"a\": \r\n}")];
    let page = workspace.send(&format!("/file/{file}/edit"), &fields).await.expect(400).text();
    assert!(
        page.contains("line 3") && page.contains("Save anyway") && page.contains("&quot;a&quot;"),
        "{page}"
    );
    assert_eq!(workspace.content(&file).await, "{}");
    let anyway = [fields[0], fields[1], ("anyway", "yes")];
    workspace.send(&format!("/file/{file}/edit"), &anyway).await.expect(303);
    assert_eq!(workspace.content(&file).await, "{\n  \"a\": \n}");
}

async fn who_was_slower_loses_nothing(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "one\ntwo\n").await;
    let begun = workspace.hash(&file).await;
    workspace.write(&file, "one\ntheirs\n").await;
    let edit = format!("/file/{file}/edit");
    let fields = [("hash", begun.as_str()), ("content", "one\r\nmine\r\n")];
    let page = workspace.send(&edit, &fields).await.expect(409).text();
    for part in ["Keep mine", "Keep theirs", "Edit both", "theirs", "mine"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(workspace.content(&file).await, "one\ntheirs\n");
    let now = workspace.hash(&file).await;
    let merged = [("hash", now.as_str()), ("content", "one\r\nmine\r\n"), ("then", "merge")];
    let page = workspace.send(&edit, &merged).await.expect(200).text();
    assert!(page.contains("&lt;&lt;&lt;&lt;&lt;&lt;&lt; theirs\ntheirs\n=======\nmine\n"), "{page}");
    let mine = [("hash", now.as_str()), ("content", "one\r\nmine\r\n"), ("anyway", "yes")];
    workspace.send(&edit, &mine).await.expect(303);
    assert_eq!(workspace.content(&file).await, "one\nmine\n");
}

async fn who_may_not_write_may_not_edit(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "x").await;
    let edit = format!("/file/{file}/edit");
    for (role, status) in [("viewer", 403), ("contributor", 200), ("editor", 200), ("admin", 200)] {
        let person = people::join(&workspace, role).await;
        let seat = person.seat(&workspace);
        let page = seat.session.get(&edit).await.expect(status).text();
        assert!(status == 200 || (page.contains("viewer") && page.contains("owner")), "{page}");
        let page = seat.page(&format!("/file/{file}")).await;
        assert_eq!(page.contains(&format!("href=\"{edit}\"")), status == 200, "{role}");
        assert_eq!(page.contains("Move to trash"), ["editor", "admin"].contains(&role), "{role}");
        if status == 403 {
            let hash = workspace.hash(&file).await;
            let refused = seat.send(&edit, &[("hash", &hash), ("content", "y")]).await;
            refused.expect(403);
            let refused = seat.send(&format!("/file/{file}/rename"), &[("name", "b.md")]).await;
            refused.expect(403);
        }
    }
    assert_eq!(workspace.content(&file).await, "x");
    let signed_out = deployment.anonymous().get(&edit).await;
    let back: String = encoded([("return_to", edit.as_str())]);
    assert!(location(&signed_out).contains(&back), "{:?}", signed_out.header("location"));
    let hash = workspace.hash(&file).await;
    let body = encoded([("hash", hash.as_str()), ("content", "y")]);
    let foreign = workspace.session.post(&edit).header("sec-fetch-site", "cross-site").body(FORM, body).await;
    foreign.expect(403);
    assert_eq!(workspace.content(&file).await, "x");
}

async fn versions_show_what_changed_and_come_back(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.file_id("a.md", None, "The limit is 100.\n").await;
    workspace.write(&file, "The limit is 250.\n").await;
    let list = workspace.page(&format!("/file/{file}?view=changes")).await;
    assert!(list.contains(&format!("/file/{file}/versions/2")) && list.contains("(a token)"), "{list}");
    let page = workspace.page(&format!("/file/{file}/versions/2")).await;
    assert!(page.contains("<del>− The limit is <b>100</b>.</del>"), "{page}");
    assert!(page.contains("<ins>+ The limit is <b>250</b>.</ins>"), "{page}");
    let page = workspace.page(&format!("/file/{file}/versions/1?show=text")).await;
    assert!(page.contains("The limit is 100.") && page.contains("Restore"), "{page}");
    let restore = format!("/file/{file}/versions/1/restore");
    let stale = format!("blake3:{}", "0".repeat(64));
    workspace.send(&restore, &[("hash", &stale)]).await.expect(409);
    let hash = workspace.hash(&file).await;
    workspace.send(&restore, &[("hash", &hash)]).await.expect(303);
    assert_eq!(workspace.content(&file).await, "The limit is 100.\n");
    for odd in ["0", "99", "x", "-1", "99999999999999999999999"] {
        workspace.session.get(&format!("/file/{file}/versions/{odd}")).await.expect(404);
    }
}

async fn files_are_made_moved_and_deleted_from_their_list(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let base = format!("/w/{}/files", workspace.id);
    assert!(workspace.page(&base).await.contains("No files are here."));
    let made = workspace.send(&format!("{base}/new"), &[("name", "notes.md")]).await.expect(303);
    let file = location(&made).trim_start_matches("/file/").trim_end_matches("/edit").to_owned();
    let wrong = workspace.send(&format!("{base}/new"), &[("name", "a/b")]).await.expect(400).text();
    assert!(wrong.contains("Name "), "{wrong}");
    let made = workspace.send(&format!("{base}/new-folder"), &[("name", "Plans")]).await.expect(303);
    let folder = location(&made).split("folder=").nth(1).unwrap().to_owned();
    let page = workspace.page(&base).await;
    assert!(page.contains("notes.md") && page.contains("Plans"), "{page}");

    let item = format!("file:{file}");
    let many = format!("{base}/many");
    workspace.send(&many, &[("do", "tag"), ("tag-selected", "a, b"), ("item", &item)]).await.expect(303);
    workspace.send(&many, &[("do", "move"), ("to", &folder), ("item", &item)]).await.expect(303);
    let read = workspace.token.get(&format!("/api/v1/files/{file}")).await.expect(200).json();
    assert_eq!((text(&read, "path"), read["tags"].clone()), ("/Plans/notes.md".into(), json!(["a", "b"])));
    assert!(workspace.page(&format!("{base}?tag=a")).await.contains(&file));
    assert!(workspace.page(&format!("{base}?q=OTES")).await.contains(&file));
    assert!(!workspace.page(&format!("{base}?q=OTES&tag=c")).await.contains(&file));
    workspace.send(&format!("{base}/rename"), &[("folder", &folder), ("name", "Old")]).await.expect(303);
    workspace.send(&format!("/file/{file}/rename"), &[("name", "n.md")]).await.expect(303);
    let page = workspace.page(&format!("{base}?folder={folder}")).await;
    assert!(page.contains("n.md") && page.contains("Old"), "{page}");

    let both = [("do", "trash"), ("item", item.as_str()), ("item", &format!("folder:{folder}"))];
    let gone = workspace.send(&many, &both).await.expect(303);
    let cookies = gone.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let with_notice = format!("{}; {cookies}", workspace.session.cookie);
    let page = deployment.anonymous().get(&base).header("cookie", with_notice).await;
    let page = page.expect(200).text();
    assert!(page.contains("2 items moved to trash.") && page.contains("Undo"), "{page}");
    let write = page.split("name=\"write\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let undo = [("write", write), ("back", base.as_str())];
    let undone = workspace.send(&format!("/w/{}/activity/undo", workspace.id), &undo).await.expect(303);
    assert_eq!(location(&undone), base);
    let read = workspace.token.get(&format!("/api/v1/files/{file}")).await.expect(200).json();
    assert_eq!(text(&read, "path"), "/Old/n.md");
    workspace.send(&many, &[("do", "trash")]).await.expect(400);
}

async fn uploads_name_what_they_leave_out(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let base = format!("/w/{}/files", workspace.id);
    let part = |name: &str, bytes: &[u8]| {
        let head =
            format!("--x\r\nContent-Disposition: form-data; name=\"files\"; filename=\"{name}\"\r\n\r\n");
        [head.as_bytes(), bytes, b"\r\n"].concat()
    };
    let upload = async |parts: Vec<Vec<u8>>| {
        let body = [parts.concat(), b"--x--\r\n".to_vec()].concat();
        let request =
            workspace.session.post(&format!("{base}/upload")).header("sec-fetch-site", "same-origin");
        request.body("multipart/form-data; boundary=x", body).await
    };
    upload(vec![part("a.md", b"# A"), part("b.yaml", b"a: 1")]).await.expect(303);
    let page = upload(vec![part("c.txt", b"c"), part("d.bin", &[0xff, 0xfe])]).await.expect(400).text();
    assert!(page.contains("d.bin") && page.contains("1 file was uploaded"), "{page}");
    let files = workspace.token.get("/api/v1/files").await.expect(200).json();
    let told: Vec<(String, String)> =
        files.as_array().unwrap().iter().map(|file| (text(file, "name"), text(file, "fileType"))).collect();
    let expected = [("a.md", "markdown"), ("b.yaml", "yaml"), ("c.txt", "text")];
    assert_eq!(told, expected.map(|(name, of)| (name.to_owned(), of.to_owned())));
    upload(vec![]).await.expect(400);
}

async fn links_within_texts_open_files(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("Plans", None).await;
    let other = workspace.file_id("Other notes.md", None, "x").await;
    let text = "[a](../Other%20notes.md) [[other notes]] [b](javascript:alert(1))";
    let file = workspace.file_id("a.md", Some(&folder), text).await;
    let page = workspace.page(&format!("/file/{file}")).await;
    let open = format!("/w/{}/open", workspace.id);
    for query in ["path=%2FOther+notes.md", "name=other+notes"] {
        assert!(page.contains(&format!("href=\"{open}?{query}\"")), "{query}: {page}");
        let opened = workspace.session.get(&format!("{open}?{query}")).await.expect(303);
        assert_eq!(location(&opened), format!("/file/{other}"));
    }
    assert!(page.contains("<a href=\"#\">b</a>"), "{page}");
    let opened = workspace.session.get(&format!("{open}?path=%2FPlans")).await.expect(303);
    assert!(location(&opened).ends_with(&format!("folder={folder}")));
    for nothing in ["path=%2Fnothing.md", "name=zqnothing", "", "name=%00", "path=/"] {
        workspace.session.get(&format!("{open}?{nothing}")).await.expect(404);
    }
}

async fn a_question_finds_what_an_agent_would_find(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let file = workspace.token.post("/api/v1/files");
    let body = json!({"name": "a.md", "content": "intro\n\nzqowl flies\n", "fileType": "markdown"});
    let made = file.json(body).await.expect(201);
    let answer = workspace.search_after(&made.change(), json!({"query": "zqowl"})).await;
    let permalink = text(&answer["results"][0]["citation"], "permalink");
    // Absolute where the deployment knows its address.
    let place = permalink.find("/file/").unwrap_or_else(|| panic!("{answer}"));
    let cited = workspace.page(permalink[place..].split('#').next().unwrap()).await;
    assert!(cited.contains("aria-current=\"true\" id=\"L") && !cited.contains("has changed"), "{cited}");
    let base = format!("/w/{}/search", workspace.id);
    let page = workspace.page(&format!("{base}?q=zqowl&strategy=keyword&mode=fast")).await;
    let link = format!("/file/{}?lines=", id(&made.json()));
    for part in [link.as_str(), "zqowl flies", "role=\"img\"", "keyword", "1 result"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let page = workspace.page(&format!("{base}?q=zqnothing&strategy=keyword")).await;
    assert!(page.contains("Nothing was found"), "{page}");
    let script: String = encoded([("view", "script"), ("script", "grep -rn zqowl /files")]);
    let page = workspace.page(&format!("{base}?{script}")).await;
    assert!(page.contains("zqowl flies") && page.contains("What it read"), "{page}");
    for odd in ["q=%00", "q=x&strategy=y", "q=x&folder=z", "view=script&script=%22", "q=%ff"] {
        workspace.page(&format!("{base}?{odd}")).await;
    }
}

async fn what_people_wrote_is_shown_as_text(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("<b>\"x\"", None).await;
    let content = "<script>alert(1)</script>\n\n# <img src=x onerror=alert(1)>\n\n\u{202e}backwards\n";
    let file = workspace.file_id(HOSTILE, Some(&folder), content).await;
    workspace.write(&file, &format!("{content}</textarea><script>alert(2)</script>\n")).await;
    let base = format!("/w/{}/files", workspace.id);
    for path in [
        format!("/file/{file}"),
        format!("/file/{file}?view=source"),
        format!("/file/{file}?view=changes"),
        format!("/file/{file}?view=uses"),
        format!("/file/{file}/edit"),
        format!("/file/{file}/versions/2"),
        base.clone(),
        format!("{base}?folder={folder}"),
        format!("{base}?q=%3Cimg"),
        format!("/w/{}/search?q=%3Cscript%3E", workspace.id),
    ] {
        let page = workspace.page(&path).await;
        assert!(
            !page.contains("<script>alert") && !page.contains("<img src=x") && !page.contains("<b>\"x\""),
            "{path}: {page}"
        );
    }
    let download = workspace.session.get(&format!("/file/{file}/download")).await.expect(200);
    assert!(download.header("content-disposition").unwrap().starts_with("attachment"));
    assert!(download.text().starts_with(content));
}

async fn addresses_of_nothing_are_pages(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let nothing = "0199c0de-0000-7000-8000-00000000ffff";
    for path in [
        "/file/x".to_owned(),
        format!("/file/{nothing}"),
        format!("/file/{nothing}/edit"),
        format!("/file/{nothing}/versions/1"),
        "/file/%00".to_owned(),
        format!("/w/{}/files?folder={nothing}", workspace.id),
        format!("/w/{}/files?folder=x", workspace.id),
        format!("/w/{nothing}/files"),
    ] {
        let page = workspace.session.get(&path).await.expect(404);
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
        assert!(page.text().contains("href=\"/"), "{path} has a way back");
    }
}
