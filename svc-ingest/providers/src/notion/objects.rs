//! Notion's representation of pages, properties and lists.

use std::collections::BTreeMap;
use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::place::is_id;
use crate::rest::{Items, NO_ZONE, moment};
use crate::{Entry, ExternalId, ItemFault, Version};

/// Edit times are whole minutes: a page that was edited within the last minutes may be edited again with the same time.
const EDIT_MINUTES: Duration = Duration::from_secs(2 * 60);
/// Characters of a property's value in the text of a page.
const MAX_VALUE_CHARS: usize = 2_000;

/// A page of a list.
#[derive(Deserialize)]
pub(super) struct Listed<'a> {
    #[serde(borrow)]
    pub(super) results: Items<'a>,
    #[serde(default)]
    pub(super) next_cursor: Option<String>,
    #[serde(default)]
    has_more: bool,
    #[serde(default)]
    request_status: Option<RequestStatus>,
}

#[derive(Deserialize)]
struct RequestStatus {
    #[serde(rename = "type", default)]
    kind: Option<String>,
}

impl Listed<'_> {
    /// The cursor of the next page.
    pub(super) fn next(&self) -> Option<String> {
        self.next_cursor.clone().filter(|_| self.has_more)
    }

    /// Whether Notion silently truncated the list.
    pub(super) fn is_cut(&self) -> bool {
        self.request_status.as_ref().is_some_and(|status| status.kind.as_deref() == Some("incomplete"))
    }
}

/// A page, a data source or a block.
#[derive(Deserialize)]
pub(super) struct Object {
    #[serde(default)]
    object: Option<String>,
    id: String,
    #[serde(default)]
    last_edited_time: Option<String>,
    #[serde(default)]
    in_trash: bool,
    #[serde(default)]
    archived: bool,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    properties: Option<BTreeMap<String, Value>>,
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    has_children: bool,
    #[serde(default)]
    child_page: Option<Titled>,
    #[serde(default)]
    data_sources: Option<Vec<Identified>>,
}

#[derive(Deserialize)]
struct Titled {
    #[serde(default)]
    title: Option<String>,
}

#[derive(Deserialize)]
struct Identified {
    id: String,
}

/// How a listing treats a block.
pub(super) enum Child {
    /// A page.
    Page,
    /// A database, whose data sources have rows.
    Database,
    /// A block that may contain either.
    Holder,
    /// Text.
    Other,
}

impl Object {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn is_page(&self) -> bool {
        self.object.as_deref() == Some("page")
    }

    pub(super) fn is_data_source(&self) -> bool {
        self.object.as_deref() == Some("data_source")
    }

    pub(super) const fn is_in_trash(&self) -> bool {
        self.in_trash || self.archived
    }

    pub(super) fn edited_at(&self) -> Option<Timestamp> {
        moment(self.last_edited_time.as_deref()?)
    }

    pub(super) fn edited_text(&self) -> Option<&str> {
        self.last_edited_time.as_deref()
    }

    pub(super) fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    pub(super) fn data_sources(&self) -> impl Iterator<Item = &str> {
        self.data_sources.iter().flatten().map(|source| source.id.as_str())
    }

    pub(super) fn child(&self) -> Child {
        match self.kind.as_deref() {
            Some("child_page") => Child::Page,
            Some("child_database") => Child::Database,
            _ if self.has_children => Child::Holder,
            _ => Child::Other,
        }
    }

    /// The title: the page's title property, or that of the child-page block.
    pub(super) fn title(&self) -> String {
        let properties = self.properties.iter().flatten();
        let of_page =
            properties.filter(|(_, property)| property.get("type").and_then(Value::as_str) == Some("title"));
        let of_page = of_page.map(|(_, property)| plain(property.get("title"))).next();
        let of_block = || self.child_page.as_ref().and_then(|page| page.title.clone());
        of_page.or_else(of_block).unwrap_or_default()
    }

    /// The version. For edits of the last minutes it includes the current time, so that the page is read again.
    pub(super) fn version(&self, now: Timestamp) -> Option<Version> {
        let edited = self.edited_at()?;
        let text = self.last_edited_time.as_deref()?;
        let is_settled = now.since(edited) >= EDIT_MINUTES;
        Some(Version::new(if is_settled {
            text.to_owned()
        } else {
            format!("{text} seen {}", now.as_micros())
        }))
    }

    /// The entry.
    pub(super) fn entry(&self, now: Timestamp) -> Result<Entry, ItemFault> {
        let title = self.title();
        if !is_id(&self.id) {
            return Err(ItemFault::unusable_id(&title));
        }
        let id = ExternalId::new(self.id.clone()).map_err(|_| ItemFault::unusable_id(&title))?;
        let Some(version) = self.version(now) else { return Err(ItemFault::passing(id, &title, NO_ZONE)) };
        let mut entry = Entry::new(id, version, if title.is_empty() { "Untitled" } else { &title });
        entry.mime = Some("text/markdown".to_owned());
        entry.url =
            self.url.clone().or_else(|| Some(format!("https://www.notion.so/{}", self.id.replace('-', ""))));
        entry.updated_at = self.edited_at();
        Ok(entry)
    }

    /// The properties of a row, one per line.
    pub(super) fn facts(&self) -> String {
        let mut facts = String::new();
        for (name, property) in self.properties.iter().flatten() {
            let value: String = value(property).chars().take(MAX_VALUE_CHARS).collect();
            if !value.is_empty() {
                let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
                facts.push_str(&format!("- {name}: {value}\n"));
            }
        }
        facts
    }
}

/// A property's value for people; empty if it has none worth showing.
fn value(property: &Value) -> String {
    let Some(kind) = property.get("type").and_then(Value::as_str) else { return String::new() };
    let value = property.get(kind);
    match kind {
        "rich_text" => plain(value),
        "select" | "status" => named(value),
        "multi_select" | "people" => {
            let all = value.and_then(Value::as_array).into_iter().flatten();
            all.map(|one| named(Some(one))).filter(|name| !name.is_empty()).collect::<Vec<_>>().join(", ")
        }
        "date" => {
            let text = |name: &str| value.and_then(|date| date.get(name)).and_then(Value::as_str);
            [text("start"), text("end")].into_iter().flatten().collect::<Vec<_>>().join(" to ")
        }
        "number" | "checkbox" | "url" | "email" | "phone_number" => scalar(value),
        "formula" => {
            let kind =
                value.and_then(|formula| formula.get("type")).and_then(Value::as_str).unwrap_or_default();
            scalar(value.and_then(|formula| formula.get(kind)))
        }
        "unique_id" => {
            let prefix = value.and_then(|id| id.get("prefix")).and_then(Value::as_str);
            let number = scalar(value.and_then(|id| id.get("number")));
            prefix
                .filter(|_| !number.is_empty())
                .map_or(number.clone(), |prefix| format!("{prefix}-{number}"))
        }
        _ => String::new(),
    }
}

fn named(value: Option<&Value>) -> String {
    let name = value.and_then(|value| value.get("name")).and_then(Value::as_str);
    name.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn scalar(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Bool(true)) => "yes".to_owned(),
        Some(Value::Bool(false)) => "no".to_owned(),
        Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => String::new(),
    }
}

/// Rich text as one line of plain text.
fn plain(value: Option<&Value>) -> String {
    let parts = value.and_then(Value::as_array).into_iter().flatten();
    let text: String = parts.filter_map(|part| part.get("plain_text").and_then(Value::as_str)).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn properties_are_told_as_people_read_them() {
        let page: Object = serde_json::from_value(json!({"object": "page", "id": "a-1", "properties": {
            "Name": {"type": "title", "title": [{"plain_text": "Launch"}, {"plain_text": " plan"}]},
            "Due": {"type": "date", "date": {"start": "2026-12-01", "end": null}},
            "Tags": {"type": "multi_select", "multi_select": [{"name": "a"}, {"name": "b"}]},
            "Done": {"type": "checkbox", "checkbox": false},
            "Empty": {"type": "select", "select": null},
            "Score": {"type": "formula", "formula": {"type": "number", "number": 4.5}},
            "No": {"type": "unique_id", "unique_id": {"prefix": "T", "number": 7}},
            "Odd": {"type": "rich_text", "rich_text": 7},
            "Odder": 7,
        }}))
        .unwrap();
        assert_eq!(page.title(), "Launch plan");
        assert_eq!(page.facts(), "- Done: no\n- Due: 2026-12-01\n- No: T-7\n- Score: 4.5\n- Tags: a, b\n");
    }

    #[test]
    fn an_edit_of_this_minute_is_looked_at_again() {
        let page: Object =
            serde_json::from_value(json!({"id": "a", "last_edited_time": "2026-11-23T12:00:00.000Z"}))
                .unwrap();
        let at = |seconds: i64| Timestamp::from_seconds(1_795_435_200 + seconds);
        assert_ne!(page.version(at(10)), page.version(at(200)));
        assert_eq!(page.version(at(300)), page.version(at(200)));
    }
}
