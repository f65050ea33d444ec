//! CSV tables that become records: by a form with a preview, and by the API.

use crate::support::http::{Reply, each, id, items};
use crate::support::people::join;
use crate::support::prelude::*;
use crate::support::tables::{Table, location, page};

scenarios![
    a_table_is_looked_at_and_taken_by_forms,
    what_is_wrong_is_told_by_its_row,
    what_is_exported_comes_back,
    roles_and_scopes_take_tables_as_far_as_they_may,
    a_database_is_made_of_a_table_by_forms,
    a_database_is_made_of_a_table_by_the_api,
];

async fn send(workspace: &Workspace, table: &Table, fields: &[(&str, &str)]) -> Reply {
    send_to(workspace, &format!("{}/import", table.path()), fields).await
}

/// Uploads the table as a file.
async fn send_to(workspace: &Workspace, path: &str, fields: &[(&str, &str)]) -> Reply {
    let mut body = String::new();
    for (name, value) in fields {
        let file = if *name == "csv" { "; filename=\"Tasks of May.csv\"" } else { "" };
        body += &format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{value}\r\n");
    }
    body += "--b--\r\n";
    let request = workspace.session.post(path);
    request.header("sec-fetch-site", "same-origin").body("multipart/form-data; boundary=b", body).await
}

async fn a_table_is_looked_at_and_taken_by_forms(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = Table::make(&workspace).await;
    assert!(page(&workspace, &table.path()).await.contains(">Import CSV<"));
    assert!(page(&workspace, &format!("{}/import", table.path())).await.contains("type=\"file\""));
    let csv = "Name,How many,Status\n<b>first</b>,3,Open\nsecond,4,Done\n";
    let looked = send(&workspace, &table, &[("csv", csv)]).await.expect(200).text();
    for part in ["Where the columns go", "How many", "Left out", "Import 2 records", "2 rows can be taken."] {
        assert!(looked.contains(part), "{part}: {looked}");
    }
    assert!(!looked.contains("<b>first"), "{looked}");
    let points = table.field("Points").to_owned();
    let fields = [
        ("csv", csv),
        ("column-0", table.field("Name")),
        ("column-1", points.as_str()),
        ("column-2", ""),
        ("then", "import"),
    ];
    let done = send(&workspace, &table, &fields).await.expect(303);
    assert_eq!(location(&done), table.path());
    let records = workspace.token.get(&table.api()).await.expect(200).json();
    assert_eq!(
        (&records["total"], each(&records["records"], "title")),
        (&json!(2), vec!["<b>first</b>", "second"])
    );
    assert_eq!(records["records"][1]["values"][&points], json!(4), "{records}");
}

async fn what_is_wrong_is_told_by_its_row(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = Table::make(&workspace).await;
    let csv = "Name;Points;Due\na;1;2026-11-23\nb;many;soon\n";
    for (then, status) in [("check", 200), ("import", 400)] {
        let told = send(&workspace, &table, &[("csv", csv), ("then", then)]).await.expect(status).text();
        for part in ["Row 3", "Must be a number.", "1 row of 2"] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(!told.contains("value=\"import\""), "{told}");
    }
    let refused = workspace.token.post(&format!("{}/csv", table.api())).json(json!({"csv": csv})).await;
    let error = refused.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(each(&error["errors"], "path"), ["rows[3].Points", "rows[3].Due"], "{error}");
    let looked =
        workspace.token.post(&format!("{}/csv", table.api())).json(json!({"csv": csv, "dryRun": true})).await;
    let looked = looked.expect(200).json();
    assert_eq!((&looked["wrongRows"], &looked["created"]), (&json!(1), &json!(0)), "{looked}");
    assert_eq!(items(&looked["problems"])[0]["row"], json!(3), "{looked}");
    for odd in
        [json!({"csv": ""}), json!({"csv": "Nothing\nx"}), json!({"csv": "a\n".repeat(2_002)}), json!({})]
    {
        let reply = workspace.token.post(&format!("{}/csv", table.api())).json(odd).await;
        reply.expect_error(400, "VALIDATION_ERROR");
    }
    assert_eq!(workspace.token.get(&table.api()).await.expect(200).json()["total"], json!(0));
    for odd in ["", "\u{0}", "a", "\"", "a,b\n\"never ended"] {
        let reply = send(&workspace, &table, &[("csv", odd)]).await;
        assert!(matches!(reply.status, 200 | 400), "{odd:?}: {}", reply.text());
    }
}

async fn what_is_exported_comes_back(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = Table::make(&workspace).await;
    let values = [
        ("Name", json!("=SUM(A1), \"x\"\nsecond line")),
        ("Points", json!(-1.5)),
        ("Status", json!("Done")),
        ("Due", json!("2026-11-23")),
        ("Urgent", json!(true)),
    ];
    let made = table.add(&workspace, &values).await;
    let csv = page(&workspace, &format!("{}/csv", table.path())).await;
    let taken =
        workspace.token.post(&format!("{}/csv", table.api())).json(json!({"csv": csv})).await.expect(201);
    assert_eq!(taken.json()["created"], json!(1));
    taken.change();
    let records = workspace.token.get(&table.api()).await.expect(200).json();
    let mut all = items(&records["records"]).iter();
    let (first, second) = (all.next().unwrap(), all.next().unwrap());
    assert!(id(first) == made && first["values"] == second["values"], "{records}");
}

async fn roles_and_scopes_take_tables_as_far_as_they_may(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = Table::make(&workspace).await;
    let viewer = join(&workspace, "viewer").await.seat(&workspace);
    assert!(!page(&viewer, &table.path()).await.contains("Import CSV"));
    let shown = page(&viewer, &format!("{}/import", table.path())).await;
    assert!(!shown.contains("type=\"file\"") && shown.contains("Your role here is viewer"), "{shown}");
    for then in ["check", "import"] {
        send(&viewer, &table, &[("csv", "Name\nx"), ("then", then)]).await.expect(403);
    }
    let contributor = join(&workspace, "contributor").await.seat(&workspace);
    send(&contributor, &table, &[("csv", "Name\nx"), ("then", "import")]).await.expect(303);
    let stranger = join(&deployment.workspace().await, "owner").await.session;
    stranger.get(&format!("{}/import", table.path())).await.expect(404);
    let folder = workspace.folder("elsewhere", None).await;
    let scoped = workspace.token_for(&[&folder]).await;
    let refused = scoped.post(&format!("{}/csv", table.api())).json(json!({"csv": "Name\nx"})).await;
    refused.expect_error(403, "OUT_OF_SCOPE");
    assert_eq!(workspace.token.get(&table.api()).await.expect(200).json()["total"], json!(1));
}

const TASKS: &str = "Points,Task,State,Code\n1,<b>write</b>,Open,01\n2,read,Done,02\n3,mend,Open,03\n4,x,Open,04\n5,y,Done,05\n6,z,Done,06\n";

async fn a_database_is_made_of_a_table_by_forms(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let list = format!("/w/{}/databases", workspace.id);
    let path = format!("{list}/import");
    assert!(page(&workspace, &list).await.contains(&format!("href=\"{path}\"")));
    assert!(page(&workspace, &path).await.contains("type=\"file\""));
    let looked = send_to(&workspace, &path, &[("csv", TASKS)]).await.expect(200).text();
    for part in [
        "value=\"Tasks of May\"",
        "Type of State",
        "<option value=\"select\" selected",
        "<option value=\"number\" selected",
        "2 options",
        "Create database with 6 records",
    ] {
        assert!(looked.contains(part), "{part}: {looked}");
    }
    assert!(!looked.contains("<b>write"), "{looked}");
    let listed = workspace.token.get("/api/v1/databases").await.expect(200).json();
    assert!(items(&listed).is_empty(), "{listed}");
    let folder = workspace.folder("tables", None).await;
    let typed = [
        ("csv", TASKS),
        ("name", "May"),
        ("folder", folder.as_str()),
        ("type-0", "date"),
        ("name-0", "Done on"),
        ("type-1", "text"),
        ("type-2", "select"),
        ("type-3", ""),
        ("primary", "1"),
        ("then", "make"),
    ];
    // The points are no dates: each row reports it, and the form keeps its values.
    let refused = send_to(&workspace, &path, &typed).await.expect(400).text();
    for part in ["6 rows of 6", "value=\"Done on\"", "value=\"May\"", "<option value=\"date\" selected"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    assert!(!refused.contains("value=\"make\""), "{refused}");
    let typed = typed.map(|(name, value)| if name == "type-0" { (name, "number") } else { (name, value) });
    let made = location(&send_to(&workspace, &path, &typed).await.expect(303));
    let database = workspace.token.get(&format!("/api/v1{made}")).await.expect(200).json();
    assert_eq!((&database["name"], &database["recordCount"]), (&json!("May"), &json!(6)), "{database}");
    assert_eq!(database["folderId"], json!(folder), "{database}");
    assert_eq!(each(&database["properties"], "name"), ["Task", "Done on", "State"], "{database}");
    assert!(page(&workspace, &made).await.contains("&lt;b&gt;write"));
    let viewer = join(&workspace, "viewer").await.seat(&workspace);
    assert!(!page(&viewer, &path).await.contains("type=\"file\""));
    send_to(&viewer, &path, &[("csv", TASKS)]).await.expect(403);
    for odd in ["", "\u{0}", "a", "\"", "a,b\n\"never ended"] {
        let reply =
            send_to(&workspace, &path, &[("csv", odd), ("type-9", "nothing"), ("primary", "-1")]).await;
        assert!(matches!(reply.status, 200 | 400), "{odd:?}: {}", reply.text());
    }
}

async fn a_database_is_made_of_a_table_by_the_api(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let make = async |body: serde_json::Value| workspace.token.post("/api/v1/databases/csv").json(body).await;
    let looked = make(json!({"name": "Tasks", "csv": TASKS, "dryRun": true})).await.expect(200).json();
    assert_eq!(each(&looked["fields"], "type"), ["number", "text", "select", "text"], "{looked}");
    assert_eq!((&looked["database"], &looked["rows"]), (&json!(null), &json!(6)), "{looked}");
    assert_eq!(looked["fields"][1]["isPrimary"], json!(true), "{looked}");
    let wrong = json!([{"index": 3, "type": "number"}, {"index": 1, "type": "relation"}, {"index": 9}]);
    let refused = make(json!({"name": "Tasks", "csv": TASKS, "fields": wrong})).await;
    let error = refused.expect_error(400, "VALIDATION_ERROR");
    let mut paths = each(&error["errors"], "path");
    paths.sort_unstable();
    assert_eq!(paths, ["fields[1].type", "fields[2].index"], "{error}");
    for odd in [
        json!({}),
        json!({"name": "a/b", "csv": TASKS}),
        json!({"name": "x", "csv": ""}),
        json!({"name": "x", "csv": "a\n".repeat(1_002)}),
        json!({"name": "x", "csv": TASKS, "fields": [{"index": 0, "type": "nothing"}]}),
        json!({"name": "x", "csv": "Name,Points\na,1\n", "fields": [{"index": 0, "type": "date"}]}),
    ] {
        make(odd).await.expect_error(400, "VALIDATION_ERROR");
    }
    let listed = workspace.token.get("/api/v1/databases").await.expect(200).json();
    assert!(items(&listed).is_empty(), "{listed}");
    let made = make(json!({"name": "Tasks", "csv": TASKS})).await.expect(201);
    made.change();
    let database = &made.json()["database"];
    let records = format!("/api/v1/databases/{}/records", id(database));
    let records = workspace.token.get(&records).await.expect(200).json();
    let titles = each(&records["records"], "title");
    assert_eq!(titles, ["<b>write</b>", "read", "mend", "x", "y", "z"], "{records}");
    let folder = workspace.folder("mine", None).await;
    let scoped = workspace.token_for(&[&folder]).await;
    let body = json!({"name": "Tasks", "csv": TASKS});
    scoped.post("/api/v1/databases/csv").json(&body).await.expect_error(403, "OUT_OF_SCOPE");
    let body = json!({"name": "Tasks", "csv": TASKS, "folderId": folder});
    scoped.post("/api/v1/databases/csv").json(&body).await.expect(201);
}
