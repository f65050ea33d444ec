//! `/api/v1/databases` and their records (spec 2.5, 4.9), over REST and MCP.

use crate::support::http::{each, id, items, text};
use crate::support::mcp::{call_error, call_json};
use crate::support::prelude::*;

scenarios![
    a_database_and_its_records_live_and_go,
    wrong_values_are_all_named,
    records_are_filtered_sorted_and_paged,
    records_are_grouped,
    records_are_found_and_cited,
    a_scoped_token_uses_databases_of_its_folders,
    tools_name_properties,
    one_record_is_read,
    a_view_goes_and_one_stays,
    a_record_that_is_left_out_says_so,
    a_tool_leaves_or_takes_a_body,
];

async fn database(workspace: &Workspace, folder: Option<&str>) -> Value {
    let body = json!({"name": "Tasks", "icon": "✅", "folderId": folder, "somethingElse": {"a": 1}});
    let made = workspace.token.post("/api/v1/databases").json(body).await.expect(201).json();
    let path = format!("/api/v1/databases/{}", id(&made));
    for field in [
        json!({"name": "Points", "type": "number"}),
        json!({"name": "Status", "type": "select", "config": {"options": [{"name": "Open"}, {"name": "Done"}]}}),
        json!({"name": "File", "type": "file_reference", "config": {"multiple": true}}),
    ] {
        workspace.token.post(&format!("{path}/fields")).json(field).await.expect(201);
    }
    workspace.token.get(&path).await.expect(200).json()
}

fn field(database: &Value, name: &str) -> String {
    let fields = items(&database["properties"]);
    id(fields.iter().find(|field| field["name"] == name).unwrap())
}

fn records_of(database: &Value) -> String {
    format!("/api/v1/databases/{}/records", id(database))
}

async fn record(workspace: &Workspace, database: &Value, values: Value) -> Value {
    let made = workspace.token.post(&records_of(database)).json(json!({"values": values})).await;
    made.expect(201).json()
}

async fn a_database_and_its_records_live_and_go(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let token = &workspace.token;
    let table = database(&workspace, None).await;
    assert_eq!(table["properties"], table["fields"]);
    assert_eq!((table["views"][0]["type"].clone(), table["recordCount"].clone()), (json!("table"), json!(0)));
    let path = format!("/api/v1/databases/{}", id(&table));
    let (name, points) = (field(&table, "Name"), field(&table, "Points"));
    let made = record(&workspace, &table, json!({&name: "one", &points: 1})).await;
    assert_eq!((text(&made, "title"), made["version"].clone()), ("one".into(), json!(1)));
    let one = format!("{}/{}", records_of(&table), id(&made));
    let changed = token.patch(&one).json(json!({"values": {&points: 2}})).await.expect(200);
    assert_eq!(changed.header("etag"), Some("\"2\""));
    assert_eq!(
        (changed.json()["values"][&points].clone(), changed.json()["values"][&name].clone()),
        (json!(2), json!("one"))
    );
    let stale = token.patch(&one).header("if-match", "\"1\"").json(json!({"values": {&points: 3}})).await;
    stale.expect_error(409, "VERSION_CONFLICT");
    let stale = token.patch(&one).json(json!({"values": {&points: 3}, "version": 1})).await;
    stale.expect_error(409, "VERSION_CONFLICT");
    let versions = token.get(&format!("{one}/versions")).await.expect(200).json();
    assert_eq!(items(&versions).iter().map(|version| version["version"].clone()).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(versions[0]["createdBy"]["kind"], json!("token"));
    let back = token.post(&format!("{one}/versions/1/restore")).await.expect(200).json();
    assert_eq!((back["version"].clone(), back["values"].clone()), (json!(3), made["values"].clone()));

    token.delete(&one).await.expect(204);
    token.delete(&one).await.expect_error(404, "NOT_FOUND");
    token.post(&format!("{one}/restore")).await.expect(200);
    token.delete(&one).await.expect(204);
    token.delete(&format!("{one}/permanent")).await.expect(204);
    token.post(&format!("{one}/restore")).await.expect_error(404, "NOT_FOUND");

    token.delete(&path).await.expect(204);
    token.get(&path).await.expect_error(404, "NOT_FOUND");
    let trash = token.get("/api/v1/databases/trash").await.expect(200).json();
    assert_eq!(each(&trash, "id"), [id(&table)]);
    token.post(&format!("{path}/restore")).await.expect(200);
    token.delete(&path).await.expect(204);
    token.delete(&format!("{path}/permanent")).await.expect(204);
    assert_eq!(token.get("/api/v1/databases/trash").await.expect(200).json(), json!([]));
}

async fn wrong_values_are_all_named(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = database(&workspace, None).await;
    let (points, status) = (field(&table, "Points"), field(&table, "Status"));
    let body = json!({"values": {&points: "x", &status: "Never", "Name": "by name"}});
    let error =
        workspace.token.post(&records_of(&table)).json(body).await.expect_error(400, "VALIDATION_ERROR");
    let mut paths = each(&error["errors"], "path");
    paths.sort_unstable();
    let mut expected = [format!("values.{points}"), format!("values.{status}"), "values.Name".to_owned()];
    expected.sort_unstable();
    assert_eq!(paths, expected, "{error}");
    let path = format!("/api/v1/databases/{}", id(&table));
    let primary = field(&table, "Name");
    workspace.token.delete(&format!("{path}/fields/{primary}")).await.expect_error(400, "VALIDATION_ERROR");
    let stranger = deployment.workspace().await;
    stranger.token.get(&path).await.expect_error(404, "NOT_FOUND");
    stranger.token.get(&records_of(&table)).await.expect_error(404, "NOT_FOUND");
}

async fn records_are_filtered_sorted_and_paged(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = database(&workspace, None).await;
    let (name, points, status) = (field(&table, "Name"), field(&table, "Points"), field(&table, "Status"));
    for (title, number, state) in [("a", 10, "Done"), ("b", 9, "Open"), ("c", 100, "Open")] {
        record(&workspace, &table, json!({&name: title, &points: number, &status: state})).await;
    }
    let titles = async |query: &str| {
        let path = format!("{}?{query}", records_of(&table));
        let page = workspace.token.get(&path).await.expect(200).json();
        (each(&page["records"], "title").join(""), page["total"].clone())
    };
    assert_eq!(titles(&format!("sortFieldId={points}&sortDirection=desc")).await, ("cab".into(), json!(3)));
    assert_eq!(titles(&format!("sortFieldId={points}&limit=1&offset=1")).await, ("a".into(), json!(3)));
    let filter = format!("filterFieldId={status}&filterOperator=equals&filterValue=Open");
    assert_eq!(titles(&filter).await, ("bc".into(), json!(2)));
    let tree =
        format!("%7B%22fieldId%22%3A%22{points}%22%2C%22operator%22%3A%22gte%22%2C%22value%22%3A10%7D");
    assert_eq!(titles(&format!("filter={tree}")).await, ("ac".into(), json!(2)));
    assert_eq!(titles("search=B").await, ("b".into(), json!(1)));
    for odd in ["limit=0", "limit=201", "offset=-1", "sortFieldId=x", "filterOperator=equals", "filter=x"] {
        let path = format!("{}?{odd}", records_of(&table));
        workspace.token.get(&path).await.expect_error(400, "VALIDATION_ERROR");
    }
    let view = json!({"name": "Open", "filters": [{"fieldId": status, "operator": "equals", "value": "Open"}],
        "sorts": [{"fieldId": points, "direction": "desc"}]});
    let path = format!("/api/v1/databases/{}/views", id(&table));
    let view = workspace.token.post(&path).json(view).await.expect(201).json();
    assert_eq!(titles(&format!("viewId={}", id(&view))).await, ("cb".into(), json!(2)));
    let changed = workspace.token.patch(&format!("{path}/{}", id(&view))).json(json!({"filters": []})).await;
    assert_eq!(changed.expect(200).json()["sorts"], view["sorts"]);
}

async fn records_are_grouped(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = database(&workspace, None).await;
    let (name, points, status) = (field(&table, "Name"), field(&table, "Points"), field(&table, "Status"));
    for (title, number, state) in
        [("a", Some(0.1), Some("Done")), ("b", Some(0.2), Some("Done")), ("c", Some(7.0), Some("Open"))]
    {
        record(&workspace, &table, json!({&name: title, &points: number, &status: state})).await;
    }
    let gone = record(&workspace, &table, json!({&name: "gone", &points: 100, &status: "Open"})).await;
    workspace.token.delete(&format!("{}/{}", records_of(&table), id(&gone))).await.expect(204);
    record(&workspace, &table, json!({&name: "d"})).await;
    let path = format!("{}/groups", records_of(&table));
    let asked = format!("{path}?groupBy={status}&summarize={points}");
    // Answered by SQL first, then by the column cache, then by that cache after a write.
    for round in 0..4 {
        let grouped = workspace.token.get(&asked).await.expect(200).json();
        let groups: Vec<Value> = items(&grouped["groups"])
            .iter()
            .map(|group| {
                json!([group["value"], group["label"], group["count"], group["summaries"][0]["sum"]])
            })
            .collect();
        let without = json!([null, "", 1 + round, 0]);
        let expected = [json!(["Open", "Open", 1, 7]), json!(["Done", "Done", 2, 0.3]), without];
        assert_eq!(groups, expected, "{grouped}");
        assert_eq!(grouped["fieldId"], json!(status));
        assert_eq!(grouped["total"]["count"], json!(4 + round));
        assert_eq!(
            grouped["total"]["summaries"],
            json!([{"fieldId": points, "count": 3, "sum": 7.3, "average": 2.433_333_333_333_33, "min": 0.1, "max": 7}])
        );
        assert_eq!(grouped["others"], json!({"groups": 0, "count": 0}));
        record(&workspace, &table, json!({&name: format!("more {round}")})).await;
    }
    let filter = format!("filterFieldId={points}&filterOperator=lt&filterValue=1");
    let grouped = workspace.token.get(&format!("{path}?groupBy={name}&order=desc&{filter}")).await;
    assert_eq!(each(&grouped.expect(200).json()["groups"], "label"), ["b", "a"]);
    for (wrong, at) in [
        (String::new(), "groupBy"),
        ("groupBy=Status".to_owned(), "groupBy"),
        (format!("groupBy={}", id(&table)), "groupBy"),
        (format!("groupBy={status}&order=size"), "order"),
        (format!("groupBy={status}&dateUnit=week"), "dateUnit"),
        (format!("groupBy={status}&summarize={points}&summarize={name}"), "summarize[1]"),
        (format!("groupBy={status}&summarize={}", [points.as_str(); 11].join("&summarize=")), "summarize"),
        (
            format!("groupBy={status}&filterFieldId={points}&filterOperator=contains&filterValue=1"),
            "filterOperator",
        ),
        (format!("groupBy={status}&filter=x"), "filter"),
    ] {
        let refused = workspace.token.get(&format!("{path}?{wrong}")).await;
        let refused = refused.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(each(&refused["errors"], "path"), [at], "{wrong}: {refused}");
    }
    workspace
        .token
        .get(&format!("{path}?groupBy={status}&viewId={}", id(&gone)))
        .await
        .expect_error(404, "NOT_FOUND");
    let stranger = deployment.workspace().await;
    stranger.token.get(&asked).await.expect_error(404, "NOT_FOUND");

    let ask = json!({"databaseId": id(&table), "groupBy": "Status", "search": "a"});
    let told = call_json(&workspace.token, "query_database", ask).await;
    assert_eq!((told["total"].clone(), told["propertyNames"][&points].clone()), (json!(1), json!("Points")));
    assert_eq!((told["groups"][0]["label"].clone(), told["records"].clone()), (json!("Done"), json!([])));
    assert_eq!(told["groups"][0]["summaries"][0]["sum"], json!(0.1), "{told}");
    let ask = json!({"databaseId": id(&table), "groupBy": "State"});
    let refused = call_error(&workspace.token, "query_database", ask).await;
    assert!(refused.contains("groupBy"), "{refused}");
}

async fn records_are_found_and_cited(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = database(&workspace, None).await;
    let name = field(&table, "Name");
    let body = workspace.file_id("body.md", None, "The axolotl regrows its limbs.\n").await;
    let new = json!({"values": {&name: "Pangolin"}, "contentFileId": body});
    let made = workspace.token.post(&records_of(&table)).json(new).await.expect(201);
    let query = |word: &str| json!({"query": word, "strategy": "keyword"});
    let answer = workspace.search_after(&made.change(), query("pangolin")).await;
    let best = &items(&answer["results"])[0];
    assert_eq!(
        (best["recordId"].clone(), best["databaseId"].clone()),
        (made.json()["id"].clone(), table["id"].clone())
    );
    let link = format!("/databases/{}?record={}", id(&table), id(&made.json()));
    assert!(text(&best["citation"], "url").ends_with(&link), "{best}");
    let links =
        workspace.token.get(&format!("/api/v1/files/{body}/database-backlinks")).await.expect(200).json();
    assert_eq!((items(&links).len(), links[0]["via"].clone()), (1, json!("body")));
    let path = format!("/api/v1/databases/{}", id(&table));
    let gone = workspace.token.delete(&path).await.expect(204);
    let answer = workspace.search_after(&gone.change(), query("pangolin")).await;
    assert!(items(&answer["results"]).is_empty(), "{answer}");
    let back = workspace.token.post(&format!("{path}/restore")).await.expect(200);
    let answer = workspace.search_after(&back.change(), query("pangolin")).await;
    assert_eq!(items(&answer["results"]).len(), 1, "{answer}");
}

async fn a_scoped_token_uses_databases_of_its_folders(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let inside = workspace.folder("inside", None).await;
    let outside = workspace.file_id("out.md", None, "x").await;
    let (mine, root) = (database(&workspace, Some(&inside)).await, database(&workspace, None).await);
    let token = workspace.token_for(&[&inside]).await;
    assert_eq!(each(&token.get("/api/v1/databases").await.expect(200).json(), "id"), [id(&mine)]);
    token.get(&format!("/api/v1/databases/{}", id(&root))).await.expect_error(403, "OUT_OF_SCOPE");
    token.get(&records_of(&root)).await.expect_error(403, "OUT_OF_SCOPE");
    let reference = field(&mine, "File");
    let body = json!({"values": {&reference: [outside]}});
    token.post(&records_of(&mine)).json(&body).await.expect_error(403, "OUT_OF_SCOPE");
    let hidden = workspace.token.post(&records_of(&mine)).json(&body).await.expect(201).json();
    let page = token.get(&records_of(&mine)).await.expect(200).json();
    assert_eq!(each(&page["records"], "id"), [id(&hidden)]);
    assert!(!page.to_string().contains(&outside), "{page}");
    assert_eq!(each(&call_json(&token, "list_databases", json!({})).await, "id"), [id(&mine)]);
    let said = call_error(&token, "get_database", json!({"databaseId": id(&root)})).await;
    assert!(said.contains("Forbidden"), "{said}");
}

async fn tools_name_properties(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = database(&workspace, None).await;
    let token = &workspace.token;
    let new = json!({"databaseId": id(&table), "values": {"Name": "one", "Points": 3, "Status": "open"}});
    let made = call_json(token, "create_database_record", new).await;
    assert_eq!(made["values"][field(&table, "Status")], json!("Open"));
    let names = json!({field(&table, "Name"): "Name", field(&table, "Points"): "Points",
        field(&table, "Status"): "Status"});
    assert_eq!(made["propertyNames"], names, "{made}");
    let change = json!({"databaseId": id(&table), "recordId": id(&made), "values": {"Points": 4}});
    assert_eq!(call_json(token, "update_database_record", change).await["version"], json!(2));
    let query = json!({"databaseId": id(&table), "filter": {"fieldId": "Points", "operator": "gt", "value": 3},
        "sortFieldId": "Name"});
    let page = call_json(token, "query_database", query).await;
    assert_eq!(page["total"], json!(1));
    assert_eq!(page["propertyNames"][field(&table, "File")], json!("File"), "{page}");
    let said = call_error(
        token,
        "create_database_record",
        json!({"databaseId": id(&table), "values": {"Nome": "x"}}),
    );
    assert!(said.await.contains("values.Nome"));
    let gone = json!({"databaseId": id(&table), "recordId": id(&made)});
    assert_eq!(call_json(token, "delete_database_record", gone).await["success"], json!(true));
    let schema = call_json(token, "get_database", json!({"databaseId": id(&table)})).await;
    assert_eq!(schema["recordCount"], json!(0));
}

async fn one_record_is_read(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let inside = workspace.folder("inside", None).await;
    let table = database(&workspace, None).await;
    let made = record(&workspace, &table, json!({field(&table, "Name"): "one"})).await;
    let path = format!("{}/{}", records_of(&table), id(&made));
    let read = workspace.token.get(&path).await.expect(200);
    assert_eq!((read.json(), read.header("etag")), (made.clone(), Some("\"1\"")));
    let other = database(&workspace, None).await;
    let stranger = deployment.workspace().await;
    let elsewhere = format!("{}/{}", records_of(&other), id(&made));
    workspace.token.get(&elsewhere).await.expect_error(404, "NOT_FOUND");
    stranger.token.get(&path).await.expect_error(404, "NOT_FOUND");
    let scoped = workspace.token_for(&[&inside]).await;
    scoped.get(&path).await.expect_error(403, "OUT_OF_SCOPE");
    workspace.token.delete(&path).await.expect(204);
    workspace.token.get(&path).await.expect_error(404, "NOT_FOUND");
}

async fn a_view_goes_and_one_stays(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = database(&workspace, None).await;
    let token = &workspace.token;
    let path = format!("/api/v1/databases/{}", id(&table));
    let first = format!("{path}/views/{}", id(&table["views"][0]));
    let refused = token.delete(&first).await.expect_error(400, "VALIDATION_ERROR");
    assert!(refused["errors"][0]["message"].as_str().unwrap().contains("make another one"), "{refused}");
    let body = json!({"name": "Other"});
    token.post(&format!("{path}/views")).json(body).await.expect(201);
    assert!(!token.delete(&first).await.expect(204).change().is_empty());
    token.delete(&first).await.expect_error(404, "NOT_FOUND");
    let left = token.get(&path).await.expect(200).json();
    assert_eq!((each(&left["views"], "name"), &left["views"][0]["isDefault"]), (vec!["Other"], &json!(true)));
    assert_eq!(left["views"][0]["position"], json!(0));
}

async fn a_record_that_is_left_out_says_so(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = database(&workspace, None).await;
    let made = record(&workspace, &table, json!({field(&table, "Name"): "one"})).await;
    let ask = async |query: String| workspace.token.get(&format!("{}?{query}", records_of(&table))).await;
    let record = format!("recordId={}", id(&made));
    assert_eq!(each(&ask(record.clone()).await.expect(200).json()["records"], "id"), [id(&made)]);
    let said = |error: Value| error["message"].as_str().unwrap().to_owned();
    let hidden = said(ask(format!("{record}&search=two")).await.expect_error(404, "NOT_FOUND"));
    assert!(hidden.contains("is in this database") && hidden.contains("without filter"), "{hidden}");
    let none = "recordId=0199c0de-0000-7000-8000-000000000001&search=two".to_owned();
    let none = said(ask(none).await.expect_error(404, "NOT_FOUND"));
    assert!(!none.contains("is in this database"), "{none}");
}

async fn a_tool_leaves_or_takes_a_body(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let table = database(&workspace, None).await;
    let token = &workspace.token;
    let body = workspace.file_id("body.md", None, "x").await;
    let new = json!({"values": {field(&table, "Name"): "one"}, "contentFileId": body});
    let made = token.post(&records_of(&table)).json(new).await.expect(201).json();
    let update = async |change: Value| {
        let mut arguments = json!({"databaseId": id(&table), "recordId": id(&made)});
        arguments.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        call_json(token, "update_database_record", arguments).await
    };
    let left = update(json!({"values": {"Points": 1}})).await;
    assert_eq!(left["contentFileId"], json!(body), "{left}");
    let taken = update(json!({"contentFileId": null})).await;
    assert_eq!(taken.get("contentFileId"), None, "{taken}");
    assert_eq!(taken["values"][field(&table, "Points")], json!(1));
    let read = token.get(&format!("{}/{}", records_of(&table), id(&made))).await.expect(200).json();
    assert_eq!(read["contentFileId"], Value::Null);
}
