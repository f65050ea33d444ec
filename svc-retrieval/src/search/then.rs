//! The workspace as it was, as one search looks at it (ADR 106).

use std::collections::HashSet;
use std::sync::Arc;

use cairn_browse::{PastContainer, PastFile, PastWorkspace};
use cairn_chassis::status::{Problem, Violation};
use cairn_chassis::wording;
use cairn_index::words::{Container, ContainerNames};
use uuid::Uuid;

use super::narrowing::Narrowing;
use super::rank::Within;
use super::tuning::MOST_NAMES;
use crate::error::Error;

/// The workspace as it was, and what of it is searched.
#[derive(Debug)]
pub(super) struct Then {
    pub(super) workspace: PastWorkspace,
    /// The folders of then in which something is looked for; none for anywhere.
    folders: Option<HashSet<Uuid>>,
    /// Files must have borne all of these.
    tags: Vec<String>,
    /// What folders were called, and databases that have not changed since.
    pub(super) names: Arc<ContainerNames>,
}

impl Then {
    /// What of it a search is narrowed to.
    ///
    /// # Errors
    /// NOT_FOUND where the caller sees no such folder of then.
    pub(super) async fn of(workspace: PastWorkspace, narrowing: &Narrowing) -> Result<Self, Error> {
        let folder = narrowing.folder_id.as_deref().map(folder_id).transpose()?;
        let tags = narrowing.tags.clone();
        // As many folders as a workspace has are looked at: off the async threads.
        let looking = move || {
            let folders = folder.map(|id| workspace.folders_below(id).ok_or(id)).transpose();
            let containers = workspace.containers(MOST_NAMES).into_iter().map(container).collect();
            let names = Arc::new(ContainerNames::new(containers));
            folders.map(|folders| Self { workspace, folders, tags, names })
        };
        tokio::task::spawn_blocking(looking).await?.map_err(no_folder)
    }

    /// Narrows a search of the index to what has not changed since and stood where it is looked for.
    pub(super) fn narrow(&self, within: &mut Within) {
        within.names = Some(Arc::clone(&self.names));
        if let Some(documents) = &mut within.documents {
            // What has changed is known to the index by its text of now.
            documents.retain(|id| !self.workspace.has_changed(*id));
        }
        if let Some(folders) = &self.folders {
            // What has not changed stands in the folder that it stood in, wherever that is by now.
            within.containers = Some(match within.containers.take() {
                None => folders.clone(),
                Some(seen) => seen.intersection(folders).copied().collect(),
            });
        }
    }

    /// Whether a file that has changed since is looked for.
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

/// Whether it was not there yet or the caller may not see it, nobody is told.
fn no_folder(id: Uuid) -> Error {
    Error::Upstream(Problem::not_found(format!("no folder {id} at that time")))
}

fn container(container: PastContainer) -> Container {
    let PastContainer { id, parent, name, is_database } = container;
    Container { id, parent, name, is_holder: is_database }
}
