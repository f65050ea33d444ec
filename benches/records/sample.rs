//! The measured database, and filling it over the API.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api::{Api, accepted};
use crate::mesh::Measured;
use crate::tasks::{Row, STATUSES, TAGS};

/// The maximum time to wait until the columns are built.
const BUILD_TIMEOUT: Duration = Duration::from_secs(600);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Records per request.
const ROWS: u32 = 1_000;

/// The database, and the ids of its parts.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Empty if the response does not have it.
    pub(crate) workspace: String,
    pub(crate) database: String,
    /// In the order of creation: Name, Notes, Points, Due, Done, Status, Tags.
    fields: Vec<String>,
    statuses: Vec<String>,
    tags: Vec<String>,
}

impl Sample {
    /// Creates the database with its properties.
    pub(crate) async fn make(api: &Api) -> anyhow::Result<Self> {
        let post = async |path: &str, body: Value| -> anyhow::Result<Value> {
            Ok(accepted(api.request(Method::POST, path).json(&body)).await?.json().await?)
        };
        let text = |value: &Value, name: &str| -> anyhow::Result<String> {
            let found = value.get(name).and_then(Value::as_str);
            Ok(found.with_context(|| format!("an answer without {name}"))?.to_owned())
        };
        let made = post("/api/v1/databases", json!({"name": "Tasks"})).await?;
        let database = text(&made, "id")?;
        let workspace = text(&made, "workspaceId").unwrap_or_default();
        let primary = made.get("fields").or_else(|| made.get("properties")).and_then(|list| list.get(0));
        let mut fields = vec![text(primary.context("a database without a property")?, "id")?];
        let (mut statuses, mut tags) = (Vec::new(), Vec::new());
        for (name, kind) in [
            ("Notes", "text"),
            ("Points", "number"),
            ("Due", "date"),
            ("Done", "boolean"),
            ("Status", "select"),
            ("Tags", "multi_select"),
        ] {
            let choices: &[&str] = match kind {
                "select" => &STATUSES,
                "multi_select" => &TAGS,
                _ => &[],
            };
            let options: Vec<Value> = choices.iter().map(|name| json!({"name": name})).collect();
            let mut body = json!({"name": name, "type": kind});
            if !options.is_empty() {
                body = json!({"name": name, "type": kind, "config": {"options": options}});
            }
            let field = post(&format!("/api/v1/databases/{database}/fields"), body).await?;
            fields.push(text(&field, "id")?);
            let ids = field.pointer("/config/options").and_then(Value::as_array);
            let ids = ids.into_iter().flatten().map(|option| text(option, "id"));
            match kind {
                "select" => statuses = ids.collect::<Result<_, _>>()?,
                "multi_select" => tags = ids.collect::<Result<_, _>>()?,
                _ => {}
            }
        }
        // The first record creates the row of the record count.
        post(&format!("/api/v1/databases/{database}/records"), json!({"values": {}})).await?;
        Ok(Self { workspace, database, fields, statuses, tags })
    }

    /// The id of a property.
    pub(crate) fn field(&self, place: usize) -> &str {
        self.fields.get(place).map(String::as_str).unwrap_or_default()
    }

    /// The option id of a record's status.
    pub(crate) fn status(&self, row: &Row) -> String {
        self.statuses.get(row.status).cloned().unwrap_or_default()
    }

    /// The option ids of a record's tags.
    pub(crate) fn tags(&self, row: &Row) -> [String; 2] {
        row.tags.map(|place| self.tags.get(place).cloned().unwrap_or_default())
    }

    /// A record's values by the ids of their properties.
    pub(crate) fn values(&self, row: &Row) -> Value {
        json!({
            self.field(0): row.name, self.field(1): row.notes, self.field(2): row.points, self.field(3): row.date(),
            self.field(4): row.is_done, self.field(5): self.status(row), self.field(6): self.tags(row),
        })
    }

    /// Imports the records over the API, in tables of a thousand rows.
    pub(crate) async fn send(&self, api: &Api, records: u32) -> anyhow::Result<()> {
        let path = format!("/api/v1/databases/{}/records/csv", self.database);
        let columns = self.fields.iter().enumerate();
        let columns: Vec<Value> = columns.map(|(place, id)| json!({"index": place, "fieldId": id})).collect();
        let all: Vec<u32> = (1..=records).collect();
        for numbers in all.chunks(ROWS as usize) {
            let mut csv = Row::HEAD.to_owned();
            numbers.iter().for_each(|number| csv.push_str(&Row::of(*number, records).csv()));
            let body = json!({"csv": csv, "columns": columns});
            accepted(api.request(Method::POST, &path).json(&body)).await?;
        }
        Ok(())
    }

    /// The id of the record at an offset of the list.
    pub(crate) async fn id_at(&self, api: &Api, place: u32) -> anyhow::Result<String> {
        let path = format!("/api/v1/databases/{}/records?limit=1&offset={place}", self.database);
        let page: Value = accepted(api.request(Method::GET, &path)).await?.json().await?;
        let id = page.pointer("/records/0/id").and_then(Value::as_str);
        Ok(id.context("a page without a record")?.to_owned())
    }

    /// Waits until the columns are built, which is when the server becomes idle. Returns the wall seconds and the CPU seconds.
    pub(crate) async fn wait_for_columns(
        &self,
        server: &impl Measured,
        api: &Api,
    ) -> anyhow::Result<(f64, f64)> {
        let path = format!("/api/v1/databases/{}/records?limit=1&search=4711", self.database);
        let (began, start) = (Instant::now(), server.spent()?);
        // The second query starts the build.
        for _ in 0..2 {
            accepted(api.request(Method::GET, &path)).await?;
        }
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let before = server.spent()?;
            tokio::time::sleep(POLL_INTERVAL).await;
            if server.spent()?.since(&before).total() < POLL_INTERVAL / 5 || began.elapsed() > BUILD_TIMEOUT {
                break;
            }
        }
        Ok((began.elapsed().as_secs_f64(), server.spent()?.since(&start).total().as_secs_f64()))
    }
}
