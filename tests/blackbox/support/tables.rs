//! A workspace's database through the console's pages and their forms.

use serde_json::{Value, json};

use super::callers::Caller as _;
use super::http::{Reply, id, items, text};
use super::oauth::encoded;
use super::workspace::Workspace;

/// The content type of forms.
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";

/// Sends a form as a browser does.
pub(crate) async fn send(workspace: &Workspace, path: &str, fields: &[(&str, &str)]) -> Reply {
    let body = encoded(fields.iter().copied());
    workspace.session.post(path).header("sec-fetch-site", "same-origin").body(FORM, body).await
}

/// A page that must exist.
pub(crate) async fn page(workspace: &Workspace, path: &str) -> String {
    workspace.session.get(path).await.expect(200).text()
}

/// The redirect target of a form.
pub(crate) fn location(reply: &Reply) -> String {
    reply.header("location").unwrap_or_default().to_owned()
}

/// A database of the workspace, and the ids of its fields by their names.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) id: String,
    pub(crate) fields: Vec<(String, String)>,
}

impl Table {
    pub(crate) async fn make(workspace: &Workspace) -> Self {
        let made = workspace.token.post("/api/v1/databases").json(json!({"name": "Tasks"})).await;
        let path = format!("/api/v1/databases/{}", id(&made.expect(201).json()));
        for field in [
            json!({"name": "Points", "type": "number"}),
            json!({"name": "Status", "type": "select", "config": {"options": [{"name": "Open"}, {"name": "Done"}]}}),
            json!({"name": "Due", "type": "date"}),
            json!({"name": "Urgent", "type": "boolean"}),
        ] {
            workspace.token.post(&format!("{path}/fields")).json(field).await.expect(201);
        }
        Self::read(workspace, &path).await
    }

    pub(crate) async fn read(workspace: &Workspace, path: &str) -> Self {
        let read = workspace.token.get(path).await.expect(200).json();
        let fields = items(&read["properties"]).iter().map(|field| (text(field, "name"), id(field)));
        Self { id: id(&read), fields: fields.collect() }
    }

    pub(crate) fn path(&self) -> String {
        format!("/databases/{}", self.id)
    }

    pub(crate) fn api(&self) -> String {
        format!("/api/v1/databases/{}/records", self.id)
    }

    pub(crate) fn field(&self, name: &str) -> &str {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found.map(|(_, id)| id.as_str()).unwrap_or_else(|| panic!("no field {name}: {:?}", self.fields))
    }

    pub(crate) async fn add(&self, workspace: &Workspace, values: &[(&str, Value)]) -> String {
        let values: serde_json::Map<String, Value> =
            values.iter().map(|(name, value)| (self.field(name).to_owned(), value.clone())).collect();
        id(&workspace.token.post(&self.api()).json(json!({"values": values})).await.expect(201).json())
    }

    pub(crate) async fn record(&self, workspace: &Workspace, record: &str) -> Value {
        workspace.token.get(&format!("{}/{record}", self.api())).await.expect(200).json()
    }
}

/// The fields of a form that sets one property.
pub(crate) fn typed<'a>(field: &'a str, name: &'a str, value: &'a str) -> [(&'a str, &'a str); 2] {
    [("field", field), (name, value)]
}

/// The titles of the rows, in order.
pub(crate) fn titles(page: &str) -> Vec<&str> {
    let rows = page.split("<a id=\"r-").skip(1);
    rows.map(|row| row.split("<bdi>").nth(1).unwrap().split("</bdi>").next().unwrap()).collect()
}
