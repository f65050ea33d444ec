//! Tables (CSV) that become records: by a form that is looked at first, and by the API.

use crate::support::http::{Reply, each, id, items};
use crate::support::people::join;
use crate::support::prelude::*;
use crate::support::tables::{Table, location, page};

scenarios![
    a_table_is_looked_at_and_taken_by_forms,
    what_is_wrong_is_told_by_its_row,
    what_is_exported_comes_back,
    roles_and_scopes_take_tables_as_far_as_they_may,
];

async fn send(workspace: &Workspace, table: &Table, fields: &[(&str, &str)]) -> Reply {
    let mut body = String::new();
    for (name, value) in fields {
        body += &format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    }
    body += "--b--\r\n";
    let request = workspace.session.post(&format!("{}/import", table.path()));
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
