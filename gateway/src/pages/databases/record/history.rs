//! The versions of a record, newest first, each with its diff.

use cairn_proto::domain::Permission;
use maud::{Markup, html};
use serde_json::Value;

use super::RecordPanel;
use crate::answers::{Record, RecordVersion};
use crate::operations::{Context, Paging, records};
use crate::pages::databases::address;
use crate::pages::databases::model::as_text;
use crate::pages::databases::view_state::property;
use crate::pages::{parts as part, words};

/// Versions shown at once. One more is read for the diff of the last.
const MAX_VERSIONS: usize = 50;

pub(super) async fn versions(beside: &RecordPanel<'_>, context: &Context, record: &Record) -> Markup {
    let (Ok(database), Ok(id)) = (beside.database.id.parse(), record.id.parse()) else {
        return html! {};
    };
    let paging = Paging { limit: u32::try_from(MAX_VERSIONS + 1).ok(), cursor: None };
    let listed = match records::versions(context, database, id, paging).await {
        Ok(listed) => listed,
        Err(problem) => return part::failed(&problem, &beside.visitor.address),
    };
    html! {
        ol.versions {
            @for (place, version) in listed.items.iter().take(MAX_VERSIONS).enumerate() {
                (one(beside, record, version, listed.items.get(place + 1)))
            }
        }
        @if listed.total > MAX_VERSIONS as u64 { p.quiet { "The latest " (MAX_VERSIONS) " of " (words::grouped(listed.total)) "." } }
    }
}

fn one(
    beside: &RecordPanel<'_>,
    record: &Record,
    version: &RecordVersion,
    before: Option<&RecordVersion>,
) -> Markup {
    let by = &version.created_by;
    let path = format!("{}/records/{}/restore", address(&beside.database.id), record.id);
    let number = version.version.to_string();
    html! {
        li {
            h3 {
                "Version " (version.version)
                @if version.version == record.version { " " (part::badge(part::Tone::Plain, "Now")) }
            }
            p.quiet { (part::time(&version.created_at)) " by " bdi { (by.name) } @if by.kind == "token" { " (a token)" } @else if by.kind == "sync" { " (a sync)" } }
            dl.facts {
                @for (key, was, is) in changes(version, before) {
                    dt { bdi { (property(&beside.database.properties, key).map_or(key, |one| one.name.as_str())) } }
                    dd {
                        @if let Some(was) = was { del { "− " bdi { (as_text(Some(was))) } } " " }
                        @if let Some(is) = is { ins { "+ " bdi { (as_text(Some(is))) } } }
                    }
                }
                @if before.is_some_and(|before| before.content_file_id != version.content_file_id) {
                    dt { "Page" } dd { (if version.content_file_id.is_some() { "Another file" } else { "Removed" }) }
                }
            }
            @if version.version != record.version && beside.visitor.may(Permission::Write) {
                (part::action(&path, "Restore", &format!("version {number}"), &[("version", &number), ("back", &beside.view_state.query())]))
            }
        }
    }
}

/// The values that differ between a version and its predecessor: key, before, after.
fn changes<'a>(
    version: &'a RecordVersion,
    before: Option<&'a RecordVersion>,
) -> Vec<(&'a str, Option<&'a Value>, Option<&'a Value>)> {
    let was = |key: &str| before.and_then(|before| before.values.get(key));
    let changed = version.values.iter().filter(|(key, is)| was(key) != Some(*is));
    let mut all: Vec<_> = changed.map(|(key, is)| (key.as_str(), was(key), Some(is))).collect();
    let gone = before.into_iter().flat_map(|before| &before.values);
    let gone = gone.filter(|(key, _)| !version.values.contains_key(*key));
    all.extend(gone.map(|(key, was)| (key.as_str(), Some(was), None)));
    all
}

#[cfg(test)]
mod tests {
    use cairn_proto::content::v1 as proto;

    use super::*;

    fn version(values: &str) -> RecordVersion {
        let version = proto::RecordVersion { values_json: values.into(), ..proto::RecordVersion::default() };
        version.try_into().unwrap()
    }

    #[test]
    fn a_version_says_what_it_changed() {
        let (before, after) = (version("{\"a\":1,\"b\":2,\"c\":3}"), version("{\"a\":1,\"b\":4,\"d\":5}"));
        let told: Vec<_> = changes(&after, Some(&before))
            .into_iter()
            .map(|(key, was, is)| (key.to_owned(), as_text(was), as_text(is)))
            .collect();
        let expected = [("b", "2", "4"), ("d", "", "5"), ("c", "3", "")];
        assert_eq!(told, expected.map(|(key, was, is)| (key.to_owned(), was.to_owned(), is.to_owned())));
        assert_eq!(changes(&before, None).len(), 3);
    }
}
