//! The rules of file versions: every former content of a file can be read and restored.

use cairn_chassis::wording::{self, Unit};
use cairn_proto::domain::limits::BESIDE_A_LIST;
use cairn_proto::ids::FileId;

use crate::Error;
use crate::context::Context;
use crate::files::{FilePatch, Files};
use crate::model::{File, FileVersion, Page, PageRequest, Written};
use crate::scope::Caller;
use crate::store;

/// The rules of file versions on a store.
#[derive(Debug, Clone)]
pub(crate) struct Versions {
    context: Context,
    files: Files,
}

impl Versions {
    pub(crate) fn new(context: Context) -> Self {
        Self { files: Files::new(context.clone()), context }
    }

    /// The versions of a live file, the newest first.
    pub(crate) async fn list(
        &self,
        caller: &Caller,
        id: &str,
        request: PageRequest,
    ) -> Result<Page<FileVersion>, Error> {
        let file = self.readable(caller, id).await?;
        let before = match &request.after {
            None => u64::MAX,
            Some(cursor) => read_place(&cursor.name)?,
        };
        let db = &self.context.db;
        let found = store::versions::list(db, caller.workspace, file, before, request.fetch()).await?;
        let total = match request.known_total(found.len()) {
            Some(total) => total,
            None => store::versions::count(db, caller.workspace, file).await?,
        };
        Ok(request.page(found, total, |version| (version.version.to_string(), String::new())))
    }

    /// The current versions of these files, in no particular order, without files that the caller may not see.
    pub(crate) async fn current(&self, caller: &Caller, ids: &[String]) -> Result<Vec<FileVersion>, Error> {
        if ids.len() > BESIDE_A_LIST {
            return Err(Error::invalid("fileIds", "too_many", wording::at_most(BESIDE_A_LIST, Unit::Files)));
        }
        let ids: Vec<FileId> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        let (db, workspace) = (&self.context.db, caller.workspace);
        // A caller of the whole workspace sees every live file.
        if caller.listed().is_none() {
            return Ok(store::versions::current(db, workspace, &ids).await?);
        }
        let files = store::files::get_many(db, workspace, &ids).await?;
        let seen: Vec<FileId> =
            files.iter().filter(|file| caller.covers(&file.folders)).map(|file| file.id).collect();
        Ok(store::versions::current(db, workspace, &seen).await?)
    }

    /// A version with its content.
    pub(crate) async fn get(
        &self,
        caller: &Caller,
        id: &str,
        version: u64,
    ) -> Result<(FileVersion, String), Error> {
        let file = self.readable(caller, id).await?;
        let found = store::versions::get(&self.context.db, caller.workspace, file, version).await?;
        let (found, body) = found.ok_or_else(|| Error::NotFound {
            kind: "version",
            id: format!("{version} of the file {id} with a content of its own"),
        })?;
        Ok((found, body.into_text()?))
    }

    /// The content of a file as of a version, which need not have changed the content.
    pub(crate) async fn content_as_of(
        &self,
        caller: &Caller,
        id: &str,
        version: u64,
    ) -> Result<String, Error> {
        let file = self.readable(caller, id).await?;
        let (db, workspace) = (&self.context.db, caller.workspace);
        let found = store::versions::list(db, workspace, file, version.saturating_add(1), 1).await?;
        let of = found.first().map_or(version, |found| found.version);
        Ok(self.get(caller, id, of).await?.1)
    }

    /// Restores the content of a version, as a new version. Restoring the current content changes nothing.
    pub(crate) async fn restore(
        &self,
        caller: &Caller,
        id: &str,
        version: u64,
        if_content_hash: Vec<String>,
    ) -> Result<Written<File>, Error> {
        // Versions live as long as their file: what is read here cannot be deleted before it is written.
        let (_, content) = self.get(caller, id, version).await?;
        let patch = FilePatch { content: Some(content), if_content_hash, ..FilePatch::default() };
        self.files.update(caller, id, patch).await
    }

    async fn readable(&self, caller: &Caller, id: &str) -> Result<FileId, Error> {
        let file_id: FileId = id.parse().map_err(|_| Error::no_file(id))?;
        let found = store::files::get_many(&self.context.db, caller.workspace, &[file_id]).await?;
        let file = found.into_iter().next().ok_or_else(|| Error::no_file(id))?;
        caller.require("file", id, &file.folders)?;
        Ok(file_id)
    }
}

fn read_place(text: &str) -> Result<u64, Error> {
    text.parse()
        .map_err(|_| Error::invalid("pageToken", "invalid", "send the token of the previous page as it came"))
}
