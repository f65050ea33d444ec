//! Records of a page as they are stored and as they are returned: their values stay JSON text until one of them is
//! needed.

use std::fmt;

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::{DatabaseId, FileId, RecordId};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A record of a page, borrowing from the text of the page.
#[derive(Debug, Clone)]
pub(crate) struct PageRecord<'a> {
    pub(crate) id: RecordId,
    pub(crate) values: Fields<'a>,
    pub(crate) content_file_id: Option<FileId>,
    pub(crate) version: u64,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

/// A record of a page, as it is returned.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Listed {
    pub(crate) id: RecordId,
    pub(crate) database_id: DatabaseId,
    /// A JSON object by property id, with the names of options.
    pub(crate) values: String,
    pub(crate) content_file_id: Option<FileId>,
    /// The value of the primary property.
    pub(crate) title: String,
    pub(crate) version: u64,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

/// The members of an object, in their order.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a>(Vec<(&'a str, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// The name and the JSON text of each.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.iter().map(|(name, value)| (*name, value.get()))
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Fields<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(name) = map.next_key::<&'de str>()? {
            members.push((name, map.next_value()?));
        }
        Ok(Fields(members))
    }
}
