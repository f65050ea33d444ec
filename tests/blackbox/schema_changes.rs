//! Records after changes to the properties and options of their database (spec 2.5).

use crate::support::http::{each, id, items};
use crate::support::prelude::*;

scenarios![
    options_stay_unless_a_list_leaves_them_out,
    an_option_keeps_its_id_when_its_name_changes_case,
    records_that_lose_an_option_get_a_version,
    a_property_that_is_gone_is_read_in_earlier_versions,
    the_type_of_a_property_is_fixed,
];

/// A database with a select, a multi_select and a text property, and one record with all of them.
struct Table {
    workspace: Workspace,
    path: String,
    status: Value,
    tags: Value,
    notes: Value,
    record: Value,
}

impl Table {
    async fn new(deployment: &Deployment) -> Self {
        let workspace = deployment.workspace().await;
        let made = workspace.token.post("/api/v1/databases").json(json!({"name": "Tasks"})).await.expect(201);
        let path = format!("/api/v1/databases/{}", id(&made.json()));
        let field = async |name: &str, kind: &str| {
            let options = json!([{"name": "Open", "color": "red"}, {"name": "Done"}, {"name": "Later"}]);
            let config = if kind == "text" { json!({}) } else { json!({"options": options}) };
            let body = json!({"name": name, "type": kind, "config": config});
            workspace.token.post(&format!("{path}/fields")).json(body).await.expect(201).json()
        };
        let (status, tags) = (field("Status", "select").await, field("Tags", "multi_select").await);
        let notes = field("Notes", "text").await;
        let values = json!({id(&status): "Open", id(&tags): ["Done", "Open"], id(&notes): "the pangolin"});
        let made = workspace.token.post(&format!("{path}/records")).json(json!({"values": values})).await;
        let record = made.expect(201).json();
        Self { workspace, path, status, tags, notes, record }
    }

    async fn patch(&self, field: &Value, body: Value) -> Value {
        let path = format!("{}/fields/{}", self.path, id(field));
        self.workspace.token.patch(&path).json(body).await.expect(200).json()
    }

    async fn record(&self) -> Value {
        let page = self.workspace.token.get(&format!("{}/records", self.path)).await.expect(200).json();
        page["records"][0].clone()
    }

    /// Newest first.
    async fn versions(&self) -> Vec<Value> {
        let path = format!("{}/records/{}/versions", self.path, id(&self.record));
        items(&self.workspace.token.get(&path).await.expect(200).json()).to_vec()
    }

    async fn count(&self, field: &Value, option: &str) -> Value {
        let filter = format!("filterFieldId={}&filterOperator=equals&filterValue={option}", id(field));
        let page = self.workspace.token.get(&format!("{}/records?{filter}", self.path)).await;
        page.expect(200).json()["total"].clone()
    }
}

async fn options_stay_unless_a_list_leaves_them_out(deployment: &Deployment) {
    let table = Table::new(deployment).await;
    for body in [
        json!({"config": {}}),
        json!({"config": null}),
        json!({"config": {"options": null}}),
        json!({"name": "Status"}),
        json!({"name": "State", "config": {}}),
        json!({"config": {"options": [{"name": "Open"}, {"name": "Done"}, {"name": "Later"}]}}),
    ] {
        let changed = table.patch(&table.status, body.clone()).await;
        assert_eq!(changed["config"], table.status["config"], "{body}");
    }
    let record = table.record().await;
    assert_eq!(
        (&record["values"], &record["version"]),
        (&table.record["values"], &json!(1)),
        "a schema that stays leaves the records alone"
    );
}

async fn an_option_keeps_its_id_when_its_name_changes_case(deployment: &Deployment) {
    let table = Table::new(deployment).await;
    let options = json!({"options": [{"name": "OPEN"}, {"name": "done"}, {"name": "Later"}]});
    let changed = table.patch(&table.status, json!({"config": options})).await;
    let ids = |property: &Value| {
        each(&property["config"]["options"], "id").into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(ids(&changed), ids(&table.status));
    assert_eq!(changed["config"]["options"][0]["color"], json!("red"));
    let record = table.record().await;
    assert_eq!(record["values"][id(&table.status)], json!("OPEN"));
    assert_eq!(record["version"], json!(1));
    assert_eq!(table.count(&table.status, "open").await, json!(1));
}

async fn records_that_lose_an_option_get_a_version(deployment: &Deployment) {
    let table = Table::new(deployment).await;
    let (status, tags) = (id(&table.status), id(&table.tags));
    table.patch(&table.status, json!({"config": {"options": [{"name": "Done"}]}})).await;
    table.patch(&table.tags, json!({"config": {"options": [{"name": "Done"}, {"name": "New"}]}})).await;
    let record = table.record().await;
    assert_eq!(record["values"].get(&status), None, "{record}");
    assert_eq!(record["values"][&tags], json!(["Done"]), "{record}");
    assert_eq!(record["version"], json!(3));
    let versions = table.versions().await;
    assert_eq!(versions.len(), 3, "{versions:?}");
    assert_eq!(versions[0]["values"], record["values"]);
    assert_eq!(versions[1]["values"][&tags], json!(["Done", "Open"]));
    assert_eq!(versions[2]["values"], table.record["values"], "what was there is read as it was");
    assert_eq!(versions[0]["createdBy"]["kind"], json!("token"));
    assert_eq!(table.count(&table.tags, "Done").await, json!(1));
    let stale = format!("{}/records/{}", table.path, id(&table.record));
    let stale = table.workspace.token.patch(&stale).json(json!({"values": {}, "version": 1})).await;
    stale.expect_error(409, "VERSION_CONFLICT");
}

async fn a_property_that_is_gone_is_read_in_earlier_versions(deployment: &Deployment) {
    let table = Table::new(deployment).await;
    let token = &table.workspace.token;
    for field in [&table.notes, &table.status] {
        token.delete(&format!("{}/fields/{}", table.path, id(field))).await.expect(204);
    }
    // Another property that takes the name, and is deleted too.
    let body = json!({"name": "Notes", "type": "text"});
    let again = token.post(&format!("{}/fields", table.path)).json(body).await.expect(201).json();
    let one = format!("{}/records/{}", table.path, id(&table.record));
    token.patch(&one).json(json!({"values": {id(&again): "the axolotl"}})).await.expect(200);
    token.delete(&format!("{}/fields/{}", table.path, id(&again))).await.expect(204);
    let tags = json!(["Done", "Open"]);
    let record = table.record().await;
    assert_eq!(record["values"], json!({id(&table.tags): tags}), "{record}");
    let versions = table.versions().await;
    let values: Vec<&Value> = versions.iter().map(|version| &version["values"]).collect();
    assert_eq!(
        values,
        [
            &json!({id(&table.tags): tags}),
            &json!({id(&table.tags): tags, "Notes": "the axolotl"}),
            &json!({id(&table.tags): tags}),
            &json!({id(&table.tags): tags, "Status": "Open"}),
            &json!({id(&table.tags): tags, "Status": "Open", "Notes": "the pangolin"}),
        ]
    );
    let back = token.post(&format!("{one}/versions/1/restore")).await.expect(200).json();
    assert_eq!(back["values"], record["values"], "what has no place any more does not come back");
}

async fn the_type_of_a_property_is_fixed(deployment: &Deployment) {
    let table = Table::new(deployment).await;
    let path = format!("{}/fields/{}", table.path, id(&table.status));
    let refused = table.workspace.token.patch(&path).json(json!({"name": "x", "type": "text"})).await;
    let error = refused.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(each(&error["errors"], "path"), ["type"], "{error}");
    let message = error["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("fixed") && message.contains("add a property"), "{message}");
    let database = table.workspace.token.get(&table.path).await.expect(200).json();
    assert_eq!(database["properties"][1]["name"], json!("Status"), "nothing of it was done");
}
