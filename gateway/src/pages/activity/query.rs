//! The filters in the URL of the activity page.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_proto::domain::TrashKind;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::answers::ActivityEntry;
use crate::operations::activity::ActivityFilter;
use crate::pages::folders::Tree;
use crate::schema::inputs;

inputs!(PageQuery);

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The filters; empty or unknown values are ignored.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageQuery {
    /// A person, a token or a grant, by id.
    #[serde(default, deserialize_with = "chosen")]
    #[schema(value_type = Option<String>)]
    pub(super) who: Option<String>,
    #[serde(default, deserialize_with = "chosen")]
    #[schema(value_type = Option<String>)]
    kind: Option<String>,
    #[serde(default, deserialize_with = "chosen")]
    #[schema(value_type = Option<String>)]
    pub(super) folder: Option<String>,
    /// A day of UTC: `2026-11-23`.
    #[serde(default, deserialize_with = "chosen")]
    #[schema(value_type = Option<String>)]
    day: Option<String>,
    /// The entry whose diff is shown.
    #[serde(default, deserialize_with = "chosen")]
    #[schema(value_type = Option<String>)]
    open: Option<String>,
}

fn chosen<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.filter(|text| !text.trim().is_empty()))
}

impl PageQuery {
    pub(super) fn kind(&self) -> Option<TrashKind> {
        self.kind.as_deref()?.parse().ok()
    }

    /// The day, if it is valid.
    pub(super) fn day(&self) -> Option<&str> {
        self.day.as_deref().filter(|day| begins(day).is_some())
    }

    /// As filter of the operation; a folder that no longer exists is ignored.
    pub(super) fn asked(&self, tree: &Tree) -> ActivityFilter {
        let since = self.day().and_then(begins);
        ActivityFilter {
            principal: self.who.clone(),
            kind: self.kind(),
            folder: self.folder.clone().filter(|id| tree.get(id).is_some()),
            since,
            until: since.map(|begin| begin.plus(DAY)),
        }
    }

    /// The query parameters of the filters.
    pub(super) fn query(&self) -> Vec<(&'static str, String)> {
        let kind = self.kind().map(|kind| kind.as_str().to_owned());
        let parts = [
            ("who", self.who.clone()),
            ("kind", kind),
            ("folder", self.folder.clone()),
            ("day", self.day().map(ToOwned::to_owned)),
        ];
        parts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// The entry whose diff is to be shown.
    pub(super) fn opened<'a>(&self, entries: &'a [ActivityEntry]) -> Option<&'a ActivityEntry> {
        let open = self.open.as_deref()?;
        entries.iter().find(|entry| entry.id == open && super::row::has_texts(entry))
    }
}

/// The start of a UTC day.
fn begins(day: &str) -> Option<Timestamp> {
    Timestamp::parse_rfc3339(&format!("{day}T00:00:00Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_chooses_nothing() {
        let page_query = PageQuery {
            who: Some("x".into()),
            kind: Some("nothing".into()),
            day: Some("yesterday".into()),
            ..PageQuery::default()
        };
        assert_eq!(page_query.query(), [("who", "x".to_owned())]);
        let page_query =
            PageQuery { day: Some("2026-11-23".into()), kind: Some("file".into()), ..PageQuery::default() };
        assert_eq!(page_query.query(), [("kind", "file".to_owned()), ("day", "2026-11-23".to_owned())]);
    }
}
