//! The filter of a search of the workspace as it was (ADR 106).

use std::collections::HashSet;
use std::sync::Arc;

use cairn_browse::{PastContainer, PastFile, PastWorkspace};
use cairn_chassis::status::{Problem, Violation};
use cairn_chassis::wording;
use cairn_index::words::{Container, ContainerNames};
use uuid::Uuid;

use super::narrowing::Narrowing;
use super::rank::Within;
use super::tuning::MAX_NAMES;
use crate::error::Error;

/// The workspace as it was, and the part of it that is searched.
#[derive(Debug)]
pub(super) struct PastSearch {
    pub(super) workspace: PastWorkspace,
    /// The folders of that time that are searched; `None` for all.
    folders: Option<HashSet<Uuid>>,
    /// Files must have had all of these.
    tags: Vec<String>,
    /// The names of folders at that time, and of databases that have not changed since.
    pub(super) names: Arc<ContainerNames>,
}

impl PastSearch {
    /// Applies the filter of a request.
    ///
    /// # Errors
    /// NOT_FOUND where the caller sees no such folder at that time.
    pub(super) async fn of(workspace: PastWorkspace, narrowing: &Narrowing) -> Result<Self, Error> {
        let folder = narrowing.folder_id.as_deref().map(folder_id).transpose()?;
        let tags = narrowing.tags.clone();
        // Scans all folders of the workspace: off the async threads.
        let filter = move || {
            let folders = folder.map(|id| workspace.folders_below(id).ok_or(id)).transpose();
            let containers = workspace.containers(MAX_NAMES).into_iter().map(container).collect();
            let names = Arc::new(ContainerNames::new(containers));
            folders.map(|folders| Self { workspace, folders, tags, names })
        };
        tokio::task::spawn_blocking(filter).await?.map_err(no_folder)
    }

    /// Restricts a search of the index to documents that have not changed since and were in the searched folders.
    pub(super) fn narrow(&self, within: &mut Within) {
        within.names = Some(Arc::clone(&self.names));
        if let Some(documents) = &mut within.documents {
            // The index has the current text of changed documents.
            documents.retain(|id| !self.workspace.has_changed(*id));
        }
        if let Some(folders) = &self.folders {
            // An unchanged document is still in its folder, even if the folder was moved.
            within.containers = Some(match within.containers.take() {
                None => folders.clone(),
                Some(seen) => seen.intersection(folders).copied().collect(),
            });
        }
    }

    /// Whether a file that has changed since matches the filter.
    pub(super) fn includes(&self, file: &PastFile) -> bool {
        let folder = file.document.folder_id.as_deref().and_then(|id| Uuid::try_parse(id).ok());
        let is_inside = |folders: &HashSet<Uuid>| folder.is_some_and(|id| folders.contains(&id));
        self.folders.as_ref().is_none_or(is_inside) && self.tags.iter().all(|tag| file.tags.contains(tag))
    }
}

fn folder_id(text: &str) -> Result<Uuid, Error> {
    Uuid::try_parse(text)
        .map_err(|_| Error::Invalid(vec![Violation::new("folderId", "invalid", wording::ID)]))
}

/// The same error whether it did not exist yet or the caller may not see it.
fn no_folder(id: Uuid) -> Error {
    Error::Upstream(Problem::not_found(format!("no folder {id} at that time")))
}

fn container(container: PastContainer) -> Container {
    let PastContainer { id, parent, name, is_database } = container;
    Container { id, parent, name, is_holder: is_database }
}
