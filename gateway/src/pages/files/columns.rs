//! Additional columns of a file list: the last author, and the index status.

use std::collections::HashMap;
use std::time::Duration;

use cairn_proto::domain::limits::BESIDE_A_LIST;
use cairn_proto::domain::{DocumentKind, DocumentState};
use maud::{Markup, html};
use tokio::time::timeout;

use crate::answers::{File, FileVersion};
use crate::operations::{Context, document_status, file_versions};
use crate::pages::{file, parts as part};

/// The list does not wait longer for these columns.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The columns by file; missing if a service did not answer in time.
#[derive(Debug, Default)]
pub(super) struct FileColumns {
    versions: Option<HashMap<String, FileVersion>>,
    states: Option<HashMap<String, DocumentState>>,
}

impl FileColumns {
    /// Loads the columns, with one request per service.
    pub(super) async fn of(context: &Context, files: &[File]) -> Self {
        let ids: Vec<String> = files.iter().take(BESIDE_A_LIST).map(|file| file.id.clone()).collect();
        if ids.is_empty() {
            return Self::default();
        }
        let (versions, states) = tokio::join!(
            timeout(TIMEOUT, file_versions::current(context, ids.clone())),
            timeout(TIMEOUT, document_status::of_many(context, DocumentKind::File, ids)),
        );
        let versions = versions.ok().and_then(Result::ok);
        let by_file = |versions: Vec<FileVersion>| {
            versions.into_iter().map(|version| (version.file_id.clone(), version)).collect::<HashMap<_, _>>()
        };
        Self { versions: versions.map(by_file), states: states.ok().and_then(Result::ok) }
    }

    /// The author of the current version.
    pub(super) fn author(&self, file: &File) -> Markup {
        let Some(versions) = &self.versions else { return unknown() };
        html! { @if let Some(version) = versions.get(&file.id) { (file::who(version)) } }
    }

    /// The index status, linked to its explanation.
    pub(super) fn searchable(&self, file: &File) -> Markup {
        let Some(states) = &self.states else { return unknown() };
        let Some(state) = states.get(&file.id) else { return html! {} };
        let (tone, word) = file::in_index(*state);
        part::badge(tone, word)
    }
}

fn unknown() -> Markup {
    html! { span.quiet { "Not known now" } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_said_so() {
        let of = |id: &str| File { id: id.to_owned(), ..File::default() };
        let nothing = FileColumns::default();
        assert!(nothing.author(&of("1")).into_string().contains("Not known now"));
        assert!(nothing.searchable(&of("1")).into_string().contains("Not known now"));
        let states = [("1", DocumentState::Searchable), ("2", DocumentState::Behind)];
        let states = states.map(|(id, state)| (id.to_owned(), state)).into();
        let known = FileColumns { states: Some(states), versions: Some(HashMap::new()) };
        let told = |id: &str| known.searchable(&of(id)).into_string();
        assert!(
            told("1").contains(">Searchable<") && told("2").contains(">Not searchable yet<"),
            "{}",
            told("2")
        );
        // A file trashed meanwhile is in no answer.
        assert_eq!((told("3"), known.author(&of("1")).into_string()), (String::new(), String::new()));
    }
}
