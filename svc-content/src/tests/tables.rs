//! A database with a property of most types, for tests of records.

use cairn_proto::domain::Filter;
use serde_json::{Value, json};

use super::*;
use crate::databases::properties::{OptionDraft, PropertyDraft, SettingsDraft};
use crate::databases::views::SortDraft;
use crate::databases::{self, Databases};
use crate::model::{Database, PropertyType};
use crate::records::{self, RecordListRequest, Records, VisibleRecord};

/// A filter as callers write it.
pub(super) fn tree(value: &Value) -> Filter {
    Filter::read(value, "filter").unwrap()
}

pub(super) struct Table {
    pub(super) databases: Databases,
    pub(super) records: Records,
    pub(super) database: Database,
    pub(super) caller: Caller,
}

pub(super) fn named(name: &str, folder: Option<FolderId>) -> databases::DatabaseDraft {
    databases::DatabaseDraft {
        name: name.to_owned(),
        description: None,
        icon: None,
        folder_id: folder.map(|id| id.to_string()),
        new_id: None,
    }
}

impl Table {
    pub(super) async fn new(bench: &Bench, folder: Option<FolderId>) -> Self {
        let databases = Databases::new(bench.context.clone());
        let database = databases.create(&bench.caller, named("Tasks", folder)).await.unwrap().item;
        let records = Records::new(bench.context.clone());
        let mut table = Self { databases, records, database, caller: bench.caller.clone() };
        for (name, kind) in [
            ("Points", PropertyType::Number),
            ("Done", PropertyType::Boolean),
            ("Due", PropertyType::Date),
            ("Link", PropertyType::Url),
            ("File", PropertyType::FileReference),
        ] {
            table.add(name, kind, SettingsDraft::default()).await;
        }
        for (name, kind) in [("Status", PropertyType::Select), ("Tags", PropertyType::MultiSelect)] {
            let options = ["Todo", "Doing", "Finished"]
                .map(|name| OptionDraft { name: name.to_owned(), ..OptionDraft::default() });
            table
                .add(name, kind, SettingsDraft { options: Some(options.into()), ..SettingsDraft::default() })
                .await;
        }
        table
    }

    /// A database as it is.
    pub(super) fn on(bench: &Bench, database: Database) -> Self {
        Self {
            databases: Databases::new(bench.context.clone()),
            records: Records::new(bench.context.clone()),
            database,
            caller: bench.caller.clone(),
        }
    }

    pub(super) fn id(&self) -> String {
        self.database.id.to_string()
    }

    pub(super) async fn reload(&mut self) {
        self.database = self.databases.get(&self.caller, &self.id()).await.unwrap();
    }

    pub(super) async fn add(&mut self, name: &str, kind: PropertyType, config: SettingsDraft) {
        let draft = PropertyDraft { name: name.to_owned(), kind: Some(kind), config: Some(config) };
        self.databases.create_property(&self.caller, &self.id(), draft).await.unwrap();
        self.reload().await;
    }

    pub(super) fn field(&self, name: &str) -> String {
        let found = self.database.properties.iter().find(|property| property.name == name);
        found.unwrap().id.to_string()
    }

    pub(super) async fn make(&self, values: Value) -> VisibleRecord {
        let draft = records::RecordDraft {
            values: values.to_string(),
            allow_names: true,
            ..records::RecordDraft::default()
        };
        self.records.create(&self.caller, &self.id(), draft).await.unwrap().item
    }

    pub(super) async fn change(&self, id: &str, values: Value) -> Result<VisibleRecord, Error> {
        let draft = records::RecordDraft {
            values: values.to_string(),
            allow_names: true,
            ..records::RecordDraft::default()
        };
        Ok(self.records.update(&self.caller, &self.id(), id, draft).await?.item)
    }

    pub(super) async fn titles(&self, ask: RecordListRequest) -> (Vec<String>, u64) {
        let ask = RecordListRequest { allow_names: true, ..ask };
        let listed = self.records.list(&self.caller, &self.id(), ask).await.unwrap();
        (listed.records.into_iter().map(|shown| shown.title).collect(), listed.total)
    }

    pub(super) async fn filtered(&self, value: Value) -> String {
        let (titles, total) = self
            .titles(RecordListRequest { filters: vec![tree(&value)], ..RecordListRequest::default() })
            .await;
        assert_eq!(titles.len() as u64, total, "{value}");
        titles.join("")
    }

    pub(super) async fn sorted(&self, sorts: &[(&str, &str)]) -> String {
        let sorts = sorts
            .iter()
            .map(|(field, order)| SortDraft { field_id: (*field).to_owned(), order: order.parse().unwrap() });
        self.titles(RecordListRequest { sorts: sorts.collect(), ..RecordListRequest::default() })
            .await
            .0
            .join("")
    }

    pub(super) async fn fill(&self) {
        for values in [
            json!({"Name": "A", "Points": 10, "Status": "Finished", "Due": "2026-03-01", "Done": true}),
            json!({"Name": "B", "Points": 9, "Status": "Todo", "Due": "2026-03-02T10:00:00Z", "Tags": ["Doing", "Todo"]}),
            json!({"Name": "C", "Points": -1.5, "Status": "Doing", "Done": false, "Tags": ["Finished"]}),
            json!({"Name": "D", "Link": "https://cairn.example/x_y"}),
        ] {
            self.make(values).await;
        }
    }
}
