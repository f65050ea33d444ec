//! A workspace as it was, for searches: its documents, and the texts of files that have changed since.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use cairn_chassis::call::Call;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::fair_semaphore::Permit;
use cairn_proto::content::v1::FileType;
use cairn_proto::document::v1::ConfirmedDocument;
use cairn_proto::feed::v1::Kind;
use uuid::Uuid;

use crate::bodies::{BodyFetcher, BodyRef, Key};
use crate::error::Error;
use crate::tree::{Past, PastContainer, View};

/// A workspace at a past moment, as one caller sees it. Immutable.
#[derive(Debug, Clone)]
pub struct PastWorkspace {
    view: Arc<View>,
    holder: Arc<dyn BodyFetcher>,
    /// The permit of the search, which is as costly as a script: past texts are read, cut and ranked for one answer.
    _turn: Option<Arc<Permit>>,
}

/// The past version of a file that has changed since.
#[derive(Debug, Clone, PartialEq)]
pub struct PastFile {
    /// Its metadata, with the hash of its content.
    pub document: ConfirmedDocument,
    /// Its type.
    pub file_type: FileType,
    /// Its tags.
    pub tags: Vec<String>,
    /// The size of its content in bytes.
    pub size: u64,
    /// The id of the file.
    pub id: Uuid,
}

impl PastWorkspace {
    pub(crate) fn new(view: Arc<View>, holder: Arc<dyn BodyFetcher>) -> Self {
        Self { view, holder, _turn: None }
    }

    /// Holds a permit until it is dropped.
    pub(crate) fn in_turn(self, turn: Permit) -> Self {
        Self { _turn: Some(Arc::new(turn)), ..self }
    }

    /// The moment.
    pub fn at(&self) -> Option<Timestamp> {
        self.view.past().map(|past| past.at)
    }

    /// Whether an item of any kind has changed since.
    pub fn has_changed(&self, id: Uuid) -> bool {
        self.view.past().is_some_and(|past| past.changed.contains(&id))
    }

    /// The past version of a document that exists now: that of a file, or an unchanged record or memory. `None` for what did not
    /// exist, what the caller may not see, and what is unknown.
    pub fn past_version(&self, now: &ConfirmedDocument) -> Option<ConfirmedDocument> {
        let reference = now.r#ref.as_ref()?;
        let id = Uuid::try_parse(&reference.id).ok()?;
        match reference.kind() {
            Kind::File => self.view.file_then(id).map(|(document, _)| document),
            Kind::Record => {
                let database = now.database_id.as_ref().and_then(|id| Uuid::try_parse(id).ok())?;
                let is_so = !self.has_changed(id) && !self.has_changed(database);
                let then = self.view.record_then(id).filter(|_| is_so)?;
                Some(ConfirmedDocument { path: then.path, folder_id: then.folder_id, ..now.clone() })
            }
            Kind::Memory => (!self.has_changed(id)).then(|| now.clone()),
            Kind::Unspecified | Kind::Folder | Kind::Database | Kind::SourceDocument | Kind::Ingested => None,
        }
    }

    /// A past folder and all below it; `None` where the caller sees no such folder.
    pub fn folders_below(&self, folder: Uuid) -> Option<HashSet<Uuid>> {
        self.view.folders_below(folder)
    }

    /// The past folders that the caller sees or that lead to visible ones, and the visible databases that have not changed since; at
    /// most `most`, folders first.
    pub fn containers(&self, most: usize) -> Vec<PastContainer> {
        self.view.containers(most)
    }

    /// The past files that have changed since, by their ids.
    pub fn changed_files(&self) -> Vec<PastFile> {
        let Some(past) = self.view.past() else { return Vec::new() };
        let mut files: Vec<PastFile> =
            past.types.keys().filter_map(|id| self.changed_file(past, *id)).collect();
        files.sort_by_key(|file| file.id);
        files
    }

    fn changed_file(&self, past: &Past, id: Uuid) -> Option<PastFile> {
        let (document, held) = self.view.file_then(id)?;
        let tags = past.tags.get(&id).cloned().unwrap_or_default();
        Some(PastFile { document, file_type: *past.types.get(&id)?, tags, size: held.size, id })
    }

    /// The past contents of files, where they are retained.
    ///
    /// # Errors
    /// When their owner does not answer.
    pub async fn texts(&self, call: &Call, files: &[PastFile]) -> Result<HashMap<Uuid, Bytes>, Error> {
        let held = files.iter().filter_map(|file| self.view.file_then(file.id));
        let held: Vec<BodyRef> = held.map(|(_, held)| held).collect();
        let fetched = self.holder.fetch(call, &held).await?;
        let fetched: HashMap<Key, Bytes> = fetched.into_iter().collect();
        let text = |held: &BodyRef| Some((held.id, fetched.get(&held.key)?.clone()));
        Ok(held.iter().filter_map(text).collect())
    }
}
