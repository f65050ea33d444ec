//! Several files at once, each with its own outcome.

use std::collections::HashMap;

use cairn_proto::domain::limits::FILES_AT_ONCE;
use cairn_proto::ids::FileId;

use super::{Files, parse};
use crate::Error;
use crate::model::{Body, File};
use crate::scope::Caller;
use crate::store;

/// Contents in one answer, which must fit into a message.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// A file, with its content unless that is too long.
pub(crate) type FoundFile = (File, Option<String>);

/// A file that the caller may read.
struct Chosen {
    file: File,
    /// Whether its content is given.
    is_fitting: bool,
}

impl Files {
    /// The files in the order of `ids`; why there is none where there is none. A content above `most_bytes` is left out,
    /// and one that does not fit beside those before it.
    pub(crate) async fn get_many(
        &self,
        caller: &Caller,
        ids: &[String],
        most_bytes: Option<u64>,
    ) -> Result<Vec<Result<FoundFile, Error>>, Error> {
        if ids.is_empty() || ids.len() > FILES_AT_ONCE {
            return Err(Error::invalid("ids", "invalid", format!("name 1 to {FILES_AT_ONCE} files")));
        }
        let parsed: Vec<FileId> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        let files = store::files::get_many(&self.context.db, caller.workspace, &parsed).await?;
        let files: HashMap<FileId, File> = files.into_iter().map(|file| (file.id, file)).collect();

        let mut room = MOST_BYTES;
        let chosen: Vec<Result<Chosen, Error>> =
            ids.iter().map(|id| Ok(choose(readable(caller, &files, id)?, most_bytes, &mut room))).collect();
        let bodies = self.bodies(caller, &chosen).await?;
        let mut found = Vec::with_capacity(ids.len());
        for one in chosen {
            found.push(match one {
                Ok(Chosen { file, is_fitting: true }) => self.with_content(caller, file, &bodies).await,
                Ok(Chosen { file, is_fitting: false }) => Ok((file, None)),
                Err(error) => Err(error),
            });
        }
        Ok(found)
    }

    async fn bodies(
        &self,
        caller: &Caller,
        chosen: &[Result<Chosen, Error>],
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
            // Its content was replaced and the old one removed between the two reads.
            None => self.get(caller, &file.id.to_string()).await.map(|(file, content)| (file, Some(content))),
        }
    }
}

fn readable(caller: &Caller, files: &HashMap<FileId, File>, id: &str) -> Result<File, Error> {
    let file = files.get(&parse(id)?).ok_or_else(|| Error::no_file(id))?;
    caller.require("file", id, &file.folders)?;
    Ok(file.clone())
}

/// Whether the content is short enough, and fits into what is left of the answer.
fn choose(file: File, most_bytes: Option<u64>, room: &mut u64) -> Chosen {
    let is_short = most_bytes.is_none_or(|most| file.size_bytes <= most);
    let is_fitting = is_short && file.size_bytes <= *room;
    if is_fitting {
        *room -= file.size_bytes;
    }
    Chosen { file, is_fitting }
}
