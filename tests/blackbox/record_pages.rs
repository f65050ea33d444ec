//! The console's pages about records: beside the grid and in its cells, versions, pages, trash, export.

use crate::support::http::{id, text};
use crate::support::oauth::encoded;
use crate::support::people;
use crate::support::prelude::*;
use crate::support::tables::{Table, location, page, send, typed};

scenarios![
    a_record_is_edited_cell_by_cell,
    who_was_slower_overwrites_nothing,
    a_record_has_versions_a_page_and_backlinks,
    what_is_in_trash_is_told_and_comes_back,
    records_leave_as_a_table,
    what_people_wrote_in_records_is_text,
];

const HOSTILE: &str = "<script>alert(1)</script>\"' onload=\"x {{&amp; \u{202e}x";

async fn a_record_is_edited_cell_by_cell(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = Table::make(&workspace).await;
    let record =
        table.add(&workspace, &[("Name", json!("a")), ("Points", json!(1)), ("Urgent", json!(true))]).await;
    let (path, points, urgent) = (table.path(), table.field("Points"), table.field("Urgent"));
    let shown = page(&workspace, &format!("{path}?q=a&cell={record}:{points}")).await;
    assert!(shown.contains("aria-label=\"Points\"") && shown.contains("class=\"cell\""), "{shown}");
    let save = format!("{path}/records/{record}");
    let name = format!("v-{points}");
    let [field, wrong] = typed(points, &name, "many");
    let cell = [("cell", points), ("version", "1"), ("back", "q=a")];
    let refused =
        send(&workspace, &save, &[cell.as_slice(), &[field, wrong]].concat()).await.expect(400).text();
    assert!(refused.contains("Must be a number.") && refused.contains("value=\"many\""), "{refused}");
    let saved = send(&workspace, &save, &[cell.as_slice(), &typed(points, &name, "2")].concat()).await;
    assert_eq!(location(&saved.expect(303)), format!("{path}?q=a"));
    let read = table.record(&workspace, &record).await;
    assert_eq!((read["values"][points].clone(), read["version"].clone()), (json!(2), json!(2)));
    // A browser omits an unchecked check box: a hidden field says that it was in the form.
    let fields = [("cell", urgent), ("version", "2"), ("field", urgent)];
    send(&workspace, &save, &fields).await.expect(303);
    let read = table.record(&workspace, &record).await;
    assert_eq!((read["values"][urgent].clone(), read["values"][points].clone()), (json!(false), json!(2)));
    // A save without changes creates no version.
    send(&workspace, &save, &[&[("version", "3")][..], &typed(points, &name, "2")].concat())
        .await
        .expect(303);
    assert_eq!(table.record(&workspace, &record).await["version"], json!(3));
}

async fn who_was_slower_overwrites_nothing(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = Table::make(&workspace).await;
    let record = table.add(&workspace, &[("Name", json!("begun"))]).await;
    let title = table.field("Name");
    let change = json!({"values": {title: "theirs"}});
    workspace.token.patch(&format!("{}/{record}", table.api())).json(change).await.expect(200);
    let (save, name) = (format!("{}/records/{record}", table.path()), format!("v-{title}"));
    let mine = typed(title, &name, "mine");
    let refused =
        send(&workspace, &save, &[&[("version", "1")][..], &mine].concat()).await.expect(409).text();
    for part in ["Keep mine", "Keep theirs", "Edit both", "theirs", "mine", "name=\"version\" value=\"2\""] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    let cell = [("version", "1"), ("cell", title)];
    let refused = send(&workspace, &save, &[&cell[..], &mine].concat()).await.expect(409).text();
    assert!(refused.contains("<bdi>theirs</bdi>") && refused.contains("value=\"mine\""), "{refused}");
    assert_eq!(text(&table.record(&workspace, &record).await, "title"), "theirs");
    let both = [("version", "2"), ("then", "merge")];
    let form = send(&workspace, &save, &[&both[..], &mine].concat()).await.expect(200).text();
    assert!(form.contains("value=\"mine\"") && form.contains("name=\"version\" value=\"2\""), "{form}");
    send(&workspace, &save, &[&[("version", "2")][..], &mine].concat()).await.expect(303);
    assert_eq!(text(&table.record(&workspace, &record).await, "title"), "mine");
}

async fn a_record_has_versions_a_page_and_backlinks(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = Table::make(&workspace).await;
    let record = table.add(&workspace, &[("Name", json!("first"))]).await;
    let base = format!("{}/records/{record}", table.path());
    let change = json!({"values": {table.field("Name"): "second"}});
    workspace.token.patch(&format!("{}/{record}", table.api())).json(change).await.expect(200);
    let open = format!("{}?record={record}", table.path());
    let versions = page(&workspace, &format!("{open}&show=versions")).await;
    for part in ["Version 2", "Version 1", "− <bdi>first</bdi>", "+ <bdi>second</bdi>", "(a token)"] {
        assert!(versions.contains(part), "{part}: {versions}");
    }
    send(&workspace, &format!("{base}/restore"), &[("version", "1")]).await.expect(303);
    assert_eq!(text(&table.record(&workspace, &record).await, "title"), "first");

    let edit = location(&send(&workspace, &format!("{base}/page"), &[]).await.expect(303));
    let file = edit.trim_start_matches("/file/").trim_end_matches("/edit").to_owned();
    let body = json!({"content": "# Heading\n\nThe *axolotl*.\n"});
    workspace.token.patch(&format!("/api/v1/files/{file}")).json(body).await.expect(200);
    let shown = page(&workspace, &open).await;
    assert!(shown.contains("<em>axolotl</em>") && shown.contains(&format!("/file/{file}/edit")), "{shown}");
    let uses = page(&workspace, &format!("/file/{file}?view=uses")).await;
    assert!(uses.contains(&format!("href=\"{open}\"")), "{uses}");
    send(&workspace, &format!("{base}/no-page"), &[]).await.expect(303);
    assert_eq!(table.record(&workspace, &record).await["contentFileId"], Value::Null);
    page(&workspace, &format!("/file/{file}")).await;

    let fields = format!("/api/v1/databases/{}/fields", table.id);
    let relation = json!({"name": "After", "type": "relation", "config": {"relationDatabaseId": table.id}});
    let after = id(&workspace.token.post(&fields).json(relation).await.expect(201).json());
    let other = table.add(&workspace, &[("Name", json!("later"))]).await;
    let name = format!("v-{after}");
    let form = [&[("version", "1")][..], &typed(&after, &name, &record)].concat();
    send(&workspace, &format!("{}/records/{other}", table.path()), &form).await.expect(303);
    let grid = page(&workspace, &table.path()).await;
    assert!(grid.contains(&format!("href=\"{open}\"><bdi>first</bdi>")), "the relation: {grid}");
    let links = page(&workspace, &format!("{open}&show=backlinks")).await;
    assert!(links.contains("later") && links.contains("as <bdi>After</bdi>"), "{links}");
}

async fn what_is_in_trash_is_told_and_comes_back(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = Table::make(&workspace).await;
    let record = table.add(&workspace, &[("Name", json!("gone"))]).await;
    let open = format!("{}?record={record}", table.path());
    send(&workspace, &format!("{}/records/{record}/delete", table.path()), &[]).await.expect(303);
    let told = workspace.session.get(&open).await.expect(404).text();
    assert!(told.contains("gone") && told.contains("Restore"), "{told}");
    let item = format!("record:{record}");
    send(&workspace, &format!("/w/{}/trash/restore", workspace.id), &[("item", &item)]).await.expect(303);
    assert!(page(&workspace, &open).await.contains("<aside aria-label=\"gone\">"));

    send(&workspace, &format!("{}/delete", table.path()), &[]).await.expect(303);
    for path in
        [table.path(), open.clone(), format!("{}/fields", table.path()), format!("{}/csv", table.path())]
    {
        let told = workspace.session.get(&path).await.expect(404).text();
        assert!(told.contains("Tasks") && told.contains("Restore"), "{path}: {told}");
    }
    let stranger = people::join(&deployment.workspace().await, "owner").await;
    let hidden = stranger.session.get(&table.path()).await.expect(404).text();
    assert!(!hidden.contains("Tasks"), "{hidden}");
    let item = format!("database:{}", table.id);
    send(&workspace, &format!("/w/{}/trash/restore", workspace.id), &[("item", &item)]).await.expect(303);
    page(&workspace, &open).await;
}

async fn records_leave_as_a_table(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = Table::make(&workspace).await;
    for (name, points) in [("a, \"b\"", 2), ("=1+1", -1)] {
        table.add(&workspace, &[("Name", json!(name)), ("Points", json!(points))]).await;
    }
    let file = workspace.session.get(&format!("{}/csv", table.path())).await.expect(200);
    assert!(file.header("content-type").unwrap().starts_with("text/csv"));
    assert!(file.header("content-disposition").unwrap().contains("Tasks.csv"));
    assert_eq!(file.text(), "Name,Points,Status,Due,Urgent\r\n\"a, \"\"b\"\"\",2,,,\r\n'=1+1,-1,,,\r\n");
    let query = format!("filter={}%3Agt%3A0", table.field("Points"));
    let narrow = workspace.session.get(&format!("{}/csv?{query}", table.path())).await.expect(200).text();
    assert_eq!(narrow.lines().count(), 2, "{narrow}");
}

async fn what_people_wrote_in_records_is_text(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    // The name of a database may not contain a slash.
    let name = "<script>alert(0)\"";
    let body = json!({"name": name, "description": HOSTILE});
    let made = workspace.token.post("/api/v1/databases").json(body).await.expect(201).json();
    let path = format!("/api/v1/databases/{}", id(&made));
    for field in [
        json!({"name": HOSTILE, "type": "text"}),
        json!({"name": "Of", "type": "multi_select", "config": {"options": [{"name": HOSTILE}]}}),
        json!({"name": "Web", "type": "url"}),
    ] {
        workspace.token.post(&format!("{path}/fields")).json(field).await.expect(201);
    }
    workspace.token.post(&format!("{path}/views")).json(json!({"name": HOSTILE})).await.expect(201);
    let table = Table::read(&workspace, &path).await;
    let long = format!("{HOSTILE}\n</textarea><script>alert(2)</script>");
    let values = [
        ("Name", json!(HOSTILE)),
        (HOSTILE, json!(long)),
        ("Of", json!([HOSTILE])),
        ("Web", json!("https://a.example/\"onload=\"x")),
    ];
    let record = table.add(&workspace, &values).await;
    let query: String = encoded([("filter", format!("{}:contains:{HOSTILE}", table.field("Name")).as_str())]);
    for address in [
        format!("/w/{}/databases", workspace.id),
        table.path(),
        format!("{}?{query}", table.path()),
        format!("{}?q=%3Cscript%3Ealert(1)", table.path()),
        format!("{}?record={record}", table.path()),
        format!("{}?record={record}&show=versions", table.path()),
        format!("{}?cell={record}:{}", table.path(), table.field(HOSTILE)),
        format!("{}/fields", table.path()),
    ] {
        let shown = page(&workspace, &address).await;
        assert!(!shown.contains("<script>alert") && !shown.contains("\"onload=\"x"), "{address}: {shown}");
        assert!(!shown.contains("\" onload=\""), "{address}: {shown}");
    }
    let grid = page(&workspace, &table.path()).await;
    assert!(grid.contains("rel=\"noopener noreferrer\""), "{grid}");
}
