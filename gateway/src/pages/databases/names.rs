//! Names of the files and records that values reference. A page resolves a limited number; the rest, and unreadable
//! ones, remain links without names.

use std::collections::{BTreeSet, HashMap};

use cairn_proto::domain::PropertyType;
use cairn_proto::domain::limits::FILES_AT_ONCE;
use futures::future::join_all;

use super::model::{elements, kind_of, title_of, value_of};
use crate::answers::{Property, Record};
use crate::operations::{Context, files, records};

const MAX_RECORDS: usize = 25;
/// Only the names are needed, not the contents.
const NO_CONTENT: u64 = 1;

/// Names by id.
#[derive(Debug, Default)]
pub(super) struct Names {
    files: HashMap<String, String>,
    records: HashMap<String, String>,
}

/// The ids to resolve.
#[derive(Debug, Default)]
pub(super) struct References {
    files: BTreeSet<String>,
    /// Pairs of database and record.
    records: BTreeSet<(String, String)>,
}

impl References {
    /// All references in the values of these records.
    pub(super) fn by(properties: &[Property], shown: &[&Record]) -> Self {
        let mut wanted = Self::default();
        for property in properties {
            let values =
                shown.iter().flat_map(|record| elements(value_of(record, property))).map(ToOwned::to_owned);
            match kind_of(property) {
                PropertyType::FileReference => wanted.files.extend(values),
                PropertyType::Relation => {
                    let database =
                        property.config.as_ref().and_then(|config| config.relation_database_id.as_ref());
                    wanted.records.extend(values.filter_map(|record| Some((database?.clone(), record))));
                }
                PropertyType::Text
                | PropertyType::Number
                | PropertyType::Boolean
                | PropertyType::Date
                | PropertyType::Select
                | PropertyType::MultiSelect
                | PropertyType::Url
                | PropertyType::AssetReference => {}
            }
        }
        wanted
    }
}

impl Names {
    /// Resolves the names with the caller's rights.
    pub(super) async fn of(context: &Context, wanted: References) -> Self {
        let (files, records) =
            tokio::join!(names_of_files(context, wanted.files), names_of_records(context, wanted.records));
        Self { files, records }
    }

    pub(super) fn file(&self, id: &str) -> Option<&str> {
        self.files.get(id).map(String::as_str)
    }

    pub(super) fn record(&self, id: &str) -> Option<&str> {
        self.records.get(id).map(String::as_str)
    }
}

async fn names_of_files(context: &Context, ids: BTreeSet<String>) -> HashMap<String, String> {
    let ids: Vec<String> = ids.into_iter().take(FILES_AT_ONCE).collect();
    if ids.is_empty() {
        return HashMap::new();
    }
    let found = files::get_many(context, ids, NO_CONTENT, None).await.unwrap_or_default();
    found.into_iter().filter_map(|(id, outcome)| Some((id, outcome.ok()?.name))).collect()
}

async fn names_of_records(context: &Context, ids: BTreeSet<(String, String)>) -> HashMap<String, String> {
    let read = ids.into_iter().take(MAX_RECORDS).map(|(database, record)| async move {
        let found = records::get(context, database.parse().ok()?, record.parse().ok()?).await.ok()?;
        Some((record, title_of(&found).to_owned()))
    });
    join_all(read).await.into_iter().flatten().collect()
}
