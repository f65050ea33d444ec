//! Several files in one call, each with its own result.

use std::collections::HashMap;

use cairn_proto::domain::limits::FILES_AT_ONCE;
use cairn_proto::ids::FileId;

use super::{Files, parse};
use crate::Error;
use crate::model::{Body, File};
use crate::scope::Caller;
use crate::store;

/// The size limit of the contents of one response, which has to fit into a message.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// A file, with its content unless that is too long.
pub(crate) type FoundFile = (File, Option<String>);

/// The remaining size of a response.
#[derive(Debug)]
pub(crate) struct ContentBudget {
    /// The size limit of one content, in bytes.
    max_content_bytes: Option<u64>,
    /// The bytes left for contents.
    left: u64,
}

impl ContentBudget {
    /// The size of a whole response.
    pub(crate) const fn new(max_content_bytes: Option<u64>) -> Self {
        Self { max_content_bytes, left: MAX_BYTES }
    }

    /// Whether a content of `bytes` bytes is below the limit and fits; if so, its size is subtracted.
    pub(crate) fn try_take(&mut self, bytes: u64) -> bool {
        let is_short = self.max_content_bytes.is_none_or(|max| bytes <= max);
        let is_fitting = is_short && bytes <= self.left;
        if is_fitting {
            self.left -= bytes;
        }
        is_fitting
    }
}

/// Limits the number of files of a call.
pub(crate) fn check_count(ids: &[String]) -> Result<(), Error> {
    if ids.is_empty() || ids.len() > FILES_AT_ONCE {
        return Err(Error::invalid("ids", "invalid", format!("name 1 to {FILES_AT_ONCE} files")));
    }
    Ok(())
}

/// A file that the caller may read.
struct Selected {
    file: File,
    /// Whether its content is returned.
    is_fitting: bool,
}

impl Files {
    /// The files in the order of `ids`, each with its own error. Contents above `max_bytes`, and those that do not
    /// fit into the response, are left out.
    pub(crate) async fn get_many(
        &self,
        caller: &Caller,
        ids: &[String],
        max_bytes: Option<u64>,
    ) -> Result<Vec<Result<FoundFile, Error>>, Error> {
        check_count(ids)?;
        let parsed: Vec<FileId> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        let files = store::files::get_many(&self.context.db, caller.workspace, &parsed).await?;
        let files: HashMap<FileId, File> = files.into_iter().map(|file| (file.id, file)).collect();

        let mut budget = ContentBudget::new(max_bytes);
        let chosen: Vec<Result<Selected, Error>> =
            ids.iter().map(|id| Ok(choose(readable(caller, &files, id)?, &mut budget))).collect();
        let bodies = self.bodies(caller, &chosen).await?;
        let mut found = Vec::with_capacity(ids.len());
        for one in chosen {
            found.push(match one {
                Ok(Selected { file, is_fitting: true }) => self.with_content(caller, file, &bodies).await,
                Ok(Selected { file, is_fitting: false }) => Ok((file, None)),
                Err(error) => Err(error),
            });
        }
        Ok(found)
    }

    async fn bodies(
        &self,
        caller: &Caller,
        chosen: &[Result<Selected, Error>],
    ) -> Result<HashMap<String, Body>, Error> {
        let fitting = chosen.iter().flatten().filter(|one| one.is_fitting);
        let hashes: Vec<&str> = fitting.map(|one| one.file.content_hash.as_str()).collect();
        let bodies = store::bodies::get_many(&self.context.db, caller.workspace, &hashes).await?;
        Ok(bodies.into_iter().map(|body| (body.hash.clone(), body)).collect())
    }

    async fn with_content(
        &self,
        caller: &Caller,
        file: File,
        bodies: &HashMap<String, Body>,
    ) -> Result<FoundFile, Error> {
        match bodies.get(&file.content_hash).cloned() {
            Some(body) => Ok((file, Some(body.into_text()?))),
            // The content was replaced and the old body deleted between the two reads.
            None => self.get(caller, &file.id.to_string()).await.map(|(file, content)| (file, Some(content))),
        }
    }
}

fn readable(caller: &Caller, files: &HashMap<FileId, File>, id: &str) -> Result<File, Error> {
    let file = files.get(&parse(id)?).ok_or_else(|| Error::no_file(id))?;
    caller.require("file", id, &file.folders)?;
    Ok(file.clone())
}

fn choose(file: File, budget: &mut ContentBudget) -> Selected {
    let is_fitting = budget.try_take(file.size_bytes);
    Selected { file, is_fitting }
}
