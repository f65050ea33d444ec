//! The console's pages about databases: the grid with filters, sorts and views, paging, fields, and permissions.

use crate::support::http::{each, id, items};
use crate::support::oauth::encoded;
use crate::support::people;
use crate::support::prelude::*;
use crate::support::tables::{FORM, Table, location, page, send, titles, typed};

scenarios![
    a_database_is_made_and_filled_by_forms,
    filters_and_sorts_stand_in_the_address,
    views_are_saved_changed_and_deleted,
    many_records_come_in_pages_and_go_together,
    fields_are_renamed_ordered_and_deleted,
    roles_see_what_they_may_do,
    odd_questions_are_answered_with_pages,
];

const NOTHING: &str = "0199c0de-0000-7000-8000-00000000ffff";

async fn a_database_is_made_and_filled_by_forms(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let list = format!("/w/{}/databases", workspace.id);
    assert!(page(&workspace, &list).await.contains("No databases are here."));
    let wrong = send(&workspace, &format!("{list}/new"), &[("name", "")]).await.expect(400).text();
    assert!(wrong.contains("href=\"#f-name\""), "{wrong}");
    let made = send(&workspace, &format!("{list}/new"), &[("name", "Plans & <b>")]).await.expect(303);
    let fields = location(&made);
    for field in [
        &[("name", "Points"), ("type", "number")][..],
        &[("name", "Tags"), ("type", "multi_select"), ("options", "one\r\ntwo\r\n")],
        &[("name", "Note"), ("type", "text")],
    ] {
        send(&workspace, &fields, field).await.expect(303);
    }
    send(&workspace, &fields, &[("name", "X"), ("type", "relation")]).await.expect(400);
    let path = fields.strip_suffix("/fields").unwrap();
    let table = Table::read(&workspace, &path.replace("/databases/", "/api/v1/databases/")).await;
    let (name, points) = (format!("v-{}", table.field("Name")), format!("v-{}", table.field("Points")));
    let (tags, note) = (format!("v-{}", table.field("Tags")), format!("v-{}", table.field("Note")));
    let form = page(&workspace, &format!("{path}?record=new")).await;
    for part in [name.as_str(), &points, &tags, &note, "type=\"number\"", "multiple"] {
        assert!(form.contains(part), "{part}: {form}");
    }
    let mut new = vec![(name.as_str(), "first"), (points.as_str(), "many"), (tags.as_str(), "one")];
    new.extend([(tags.as_str(), "two"), (note.as_str(), "a\r\nb")]);
    let held: Vec<(&str, &str)> = table.fields.iter().map(|(_, id)| ("field", id.as_str())).collect();
    new.extend(held);
    let records = format!("{path}/records");
    let wrong = send(&workspace, &records, &new).await.expect(400).text();
    assert!(wrong.contains("Points must be a number.") && wrong.contains("value=\"first\""), "{wrong}");
    new[1].1 = "12.5";
    let opened = location(&send(&workspace, &records, &new).await.expect(303));
    let record = opened.split("record=").nth(1).unwrap();
    let read = table.record(&workspace, record).await;
    assert_eq!(read["values"][table.field("Points")], json!(12.5));
    assert_eq!(read["values"][table.field("Tags")], json!(["one", "two"]));
    assert_eq!(read["values"][table.field("Note")], json!("a\nb"));
    let shown = page(&workspace, &opened).await;
    assert!(
        shown.contains("<aside aria-label=\"first\">") && shown.contains("Plans &amp; &lt;b&gt;"),
        "{shown}"
    );

    send(&workspace, &format!("{path}/rename"), &[("name", "Renamed"), ("description", "x")])
        .await
        .expect(303);
    let folder = workspace.folder("Stuff", None).await;
    send(&workspace, &format!("{path}/move"), &[("folder", &folder)]).await.expect(303);
    let listed = page(&workspace, &list).await;
    assert!(listed.contains("Renamed") && listed.contains("/Stuff"), "{listed}");
}

async fn filters_and_sorts_stand_in_the_address(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = Table::make(&workspace).await;
    for (name, points, urgent) in [("a", 10, true), ("b", 9, false), ("c", 100, true)] {
        let values = [("Name", json!(name)), ("Points", json!(points)), ("Urgent", json!(urgent))];
        table.add(&workspace, &values).await;
    }
    let (path, points, urgent) = (table.path(), table.field("Points"), table.field("Urgent"));
    for (query, expected) in [
        (String::new(), "a b c"),
        (format!("sort={points}"), "b a c"),
        (format!("sort={points}%3Adesc"), "c a b"),
        // As the filter bar sends it, and as the page then writes it.
        (format!("field={points}&operator=gte&value=10"), "a c"),
        (format!("filter={points}%3Agte%3A10&sort={points}%3Adesc"), "c a"),
        (format!("filter={points}%3Agte%3A10&filter={urgent}%3Aequals%3Ano"), ""),
        (format!("filter={urgent}%3Aequals%3Ayes"), "a c"),
        ("q=B".to_owned(), "b"),
        (format!("filter={points}%3Ain%3A9%2C+10"), "a b"),
    ] {
        let shown = page(&workspace, &format!("{path}?{query}")).await;
        assert_eq!(titles(&shown).join(" "), expected, "{query}: {shown}");
    }
    let shown = page(&workspace, &format!("{path}?sort={points}")).await;
    assert_eq!(shown.matches("aria-sort=").count(), 1, "{shown}");
    assert!(shown.contains("aria-sort=\"ascending\"") && shown.contains("3 records."), "{shown}");
    let none = page(&workspace, &format!("{path}?q=zqnothing")).await;
    assert!(none.contains("No record fits.") && none.contains("0 records found."), "{none}");
    let wrong =
        workspace.session.get(&format!("{path}?filter={points}%3Agte%3Amany")).await.expect(400).text();
    assert!(wrong.contains("on Points must be a number"), "{wrong}");
}

async fn views_are_saved_changed_and_deleted(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = Table::make(&workspace).await;
    for (name, points) in [("a", 1), ("b", 2), ("c", 3)] {
        table.add(&workspace, &[("Name", json!(name)), ("Points", json!(points))]).await;
    }
    let (path, points) = (table.path(), table.field("Points"));
    let back = format!("filter={points}:gte:2&sort={points}:desc");
    let views = format!("{path}/views");
    send(&workspace, &views, &[("name", ""), ("back", &back)]).await.expect(400);
    let made = send(&workspace, &views, &[("name", "Large"), ("back", &back)]).await.expect(303);
    let view = location(&made);
    let shown = page(&workspace, &view).await;
    assert_eq!(titles(&shown), ["c", "b"], "{shown}");
    assert!(shown.contains("(of the view)") && shown.contains("aria-sort=\"descending\""), "{shown}");
    let id = view.split("view=").nth(1).unwrap();
    // The URL narrows the view, and can be saved to it.
    let narrow = format!("view={id}&filter={points}:lt:3");
    assert!(page(&workspace, &format!("{path}?{narrow}")).await.contains("Save to this view"));
    let change = format!("{views}/{id}");
    send(&workspace, &change, &[("what", "filters"), ("back", &narrow)]).await.expect(303);
    assert_eq!(titles(&page(&workspace, &view).await), ["b"]);
    let hide = [("what", "name"), ("name", "Less"), ("hide", points), ("back", &format!("view={id}"))];
    send(&workspace, &change, &hide).await.expect(303);
    let shown = page(&workspace, &view).await;
    assert!(
        shown.contains("<bdi>Less</bdi>") && !shown.contains(&format!("data-id=\"{points}\"")),
        "{shown}"
    );
    send(&workspace, &format!("{change}/delete"), &[]).await.expect(303);
    // A bookmarked URL of a deleted view shows the records.
    assert_eq!(titles(&page(&workspace, &view).await), ["a", "b", "c"]);
    let shown = page(&workspace, &path).await;
    assert!(!shown.contains("Delete view"), "the last one stays: {shown}");
}

async fn many_records_come_in_pages_and_go_together(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = Table::make(&workspace).await;
    let mut records = Vec::new();
    for number in 0..60 {
        records.push(table.add(&workspace, &[("Name", json!(format!("n{number:02}")))]).await);
    }
    let first = page(&workspace, &table.path()).await;
    assert_eq!((titles(&first).len(), titles(&first)[0]), (50, "n00"));
    assert!(
        first.contains("rel=\"next\"") && !first.contains("rel=\"prev\"") && first.contains("1–50 of 60")
    );
    let second = page(&workspace, &format!("{}?page=2", table.path())).await;
    assert_eq!(titles(&second).len(), 10);
    assert!(second.contains("rel=\"prev\"") && !second.contains("rel=\"next\""), "{second}");
    // A link to a record opens the page that contains it.
    let deep = page(&workspace, &format!("{}?record={}", table.path(), records[55])).await;
    assert_eq!(titles(&deep), titles(&second));
    assert!(deep.contains("<aside aria-label=\"n55\">"), "{deep}");
    let left_out = page(&workspace, &format!("{}?q=n01&record={}", table.path(), records[55])).await;
    assert!(left_out.contains("is not among those") && left_out.contains("<aside aria-label=\"n55\">"));
    assert!(!page(&workspace, &format!("{}?page=9", table.path())).await.contains("rel=\"next\""));

    let mut fields = vec![("do", "trash"), ("back", "page=2")];
    fields.extend(records[50..].iter().map(|record| ("item", record.as_str())));
    let many = format!("{}/records/many", table.path());
    let gone = send(&workspace, &many, &fields).await.expect(303);
    let cookie = gone.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let with_notice = format!("{}; {cookie}", workspace.session.cookie);
    let told =
        deployment.anonymous().get(&table.path()).header("cookie", with_notice).await.expect(200).text();
    assert!(told.contains("10 items moved to trash.") && told.contains("Undo"), "{told}");
    let undo: Vec<(String, String)> =
        records[50..].iter().map(|record| ("item".to_owned(), format!("record:{record}"))).collect();
    let undo: Vec<(&str, &str)> = undo.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    send(&workspace, &format!("/w/{}/trash/restore", workspace.id), &undo).await.expect(303);
    assert!(page(&workspace, &table.path()).await.contains("1–50 of 60"));
    send(&workspace, &many, &[("do", "trash")]).await.expect(400);
}

async fn fields_are_renamed_ordered_and_deleted(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = Table::make(&workspace).await;
    let record = table.add(&workspace, &[("Name", json!("a")), ("Status", json!("Open"))]).await;
    let path = format!("{}/fields", table.path());
    let status = format!("{path}/{}", table.field("Status"));
    let read =
        async || workspace.token.get(&format!("/api/v1/databases/{}", table.id)).await.expect(200).json();
    let config = read().await;
    let field = items(&config["properties"]).iter().find(|field| field["name"] == "Status").unwrap();
    let options: Vec<String> = items(&field["config"]["options"]).iter().map(id).collect();
    let change = [
        ("name", "State"),
        ("has-options", "yes"),
        ("option-id", options[0].as_str()),
        ("option", "Begun"),
        ("option-id", options[1].as_str()),
        ("option", ""),
        ("options", "Later"),
    ];
    send(&workspace, &status, &change).await.expect(303);
    assert_eq!(table.record(&workspace, &record).await["values"][table.field("Status")], json!("Begun"));
    send(&workspace, &format!("{status}/move"), &[("position", "1")]).await.expect(303);
    assert_eq!(each(&read().await["properties"], "name"), ["Name", "State", "Points", "Due", "Urgent"]);
    let shown = page(&workspace, &path).await;
    assert!(
        shown.contains("Later") && !shown.contains("Done") && shown.contains("The type stays"),
        "{shown}"
    );
    send(&workspace, &status, &[("name", "")]).await.expect(400);
    send(&workspace, &format!("{status}/move"), &[("position", "x")]).await.expect(400);
    send(&workspace, &format!("{status}/delete"), &[]).await.expect(303);
    assert!(!page(&workspace, &path).await.contains("State"));
    let title = format!("{path}/{}/delete", table.field("Name"));
    send(&workspace, &title, &[]).await.expect(400);
    send(&workspace, &format!("{path}/{NOTHING}/delete"), &[]).await.expect(404);
}

async fn roles_see_what_they_may_do(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = Table::make(&workspace).await;
    let record = table.add(&workspace, &[("Name", json!("a"))]).await;
    let open = format!("{}?record={record}", table.path());
    let fields = format!("{}/fields", table.path());
    let name = format!("v-{}", table.field("Name"));
    for (role, writes, deletes) in [
        ("viewer", false, false),
        ("contributor", true, false),
        ("editor", true, true),
        ("admin", true, true),
    ] {
        let seat = people::join(&workspace, role).await.seat(&workspace);
        let shown = page(&seat, &open).await;
        assert_eq!(shown.contains("New record"), writes, "{role}: {shown}");
        // Beside a record there is no view form.
        assert_eq!(page(&seat, &table.path()).await.contains("Save as view"), writes, "{role}");
        assert_eq!(shown.contains("class=\"record\""), writes, "{role}");
        assert_eq!(shown.contains("Move to trash"), deletes, "{role}");
        assert!(shown.contains("Export CSV"), "{role}");
        assert_eq!(page(&seat, &fields).await.contains("Add field"), writes, "{role}");
        let cell = format!("{}?cell={record}:{}", table.path(), table.field("Name"));
        assert_eq!(page(&seat, &cell).await.contains("class=\"cell\""), writes, "{role}");
        if !writes {
            let mine = [&[("version", "1")][..], &typed(table.field("Name"), &name, "mine")].concat();
            send(&seat, &format!("{}/records/{record}", table.path()), &mine).await.expect(403);
            send(&seat, &format!("{}/records", table.path()), &mine).await.expect(403);
            send(&seat, &fields, &[("name", "X"), ("type", "text")]).await.expect(403);
            send(&seat, &format!("{}/views", table.path()), &[("name", "X")]).await.expect(403);
            send(&seat, &format!("{}/rename", table.path()), &[("name", "X")]).await.expect(403);
        }
        if !deletes {
            send(&seat, &format!("{}/records/{record}/delete", table.path()), &[]).await.expect(403);
            let many = [("do", "trash"), ("item", record.as_str())];
            send(&seat, &format!("{}/records/many", table.path()), &many).await.expect(403);
            send(&seat, &format!("{}/delete", table.path()), &[]).await.expect(403);
        }
    }
    assert_eq!(table.record(&workspace, &record).await["title"], json!("a"));
    let signed_out = deployment.anonymous().get(&open).await.expect(303);
    assert!(location(&signed_out).contains(&encoded([("return_to", open.as_str())])));
    let foreign =
        workspace.session.post(&format!("{}/delete", table.path())).header("sec-fetch-site", "cross-site");
    foreign.body(FORM, "").await.expect(403);
    page(&workspace, &table.path()).await;
}

async fn odd_questions_are_answered_with_pages(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = Table::make(&workspace).await;
    let record = table.add(&workspace, &[("Name", json!("a"))]).await;
    for odd in [
        "q=%00",
        "q=%ff&%=",
        "view=x",
        "view=%00&sort=x&sort=",
        "filter=a",
        "filter=a%3Ab%3Ac",
        "filter=%3A%3A",
        "field=x&operator=y",
        "page=0",
        "page=99999999999999999999",
        "page=18446744073709551615",
        "record=x",
        "record=%00",
        "cell=x",
        "cell=x%3Ay",
        "show=nothing",
    ] {
        let reply = workspace.session.get(&format!("{}?{odd}", table.path())).await;
        assert!(reply.status < 500, "{odd}: {}", reply.text());
        assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"), "{odd}");
    }
    for path in [
        "/databases/x".to_owned(),
        format!("/databases/{NOTHING}"),
        format!("/databases/{NOTHING}/fields"),
        format!("/databases/{NOTHING}/csv"),
        format!("{}?record={NOTHING}", table.path()),
        format!("/w/{NOTHING}/databases"),
    ] {
        let reply = workspace.session.get(&path).await.expect(404);
        assert!(reply.text().contains("href=\"/"), "{path} has a way back");
    }
    let base = format!("{}/records", table.path());
    for (path, fields) in [
        (format!("{base}/{NOTHING}"), vec![("version", "1")]),
        (format!("{base}/x"), vec![]),
        (format!("{base}/{record}/restore"), vec![("version", "99")]),
        (format!("{base}/{record}/restore"), vec![]),
        (format!("{}/views/{NOTHING}/delete", table.path()), vec![]),
    ] {
        let reply = send(&workspace, &path, &fields).await;
        assert!(matches!(reply.status, 400 | 404), "{path}: {} {}", reply.status, reply.text());
    }
}
