//! What a token reaches: the folders that it names, and how many files stand in them.

use cairn_chassis::status::{Problem, Reason};
use futures::future::try_join_all;

use crate::operations::{Context, Paging, files, folders};
use crate::pages::words;

/// What a token can see.
#[derive(Debug)]
pub(super) struct Reach {
    /// The paths of its folders; none: the whole workspace.
    pub(super) folders: Vec<String>,
    /// Files in them, at any depth.
    files: u64,
    /// Folders that are no longer there.
    gone: usize,
}

impl Reach {
    /// Counts what is in those folders, each once though one may be below another.
    pub(super) async fn of(context: &Context, folder_ids: &[String]) -> Result<Self, Problem> {
        if folder_ids.is_empty() {
            let files = count(context, files::Selection::default()).await?;
            return Ok(Self { folders: Vec::new(), files, gone: 0 });
        }
        let found = try_join_all(folder_ids.iter().map(|id| path_of(context, id))).await?;
        let known: Vec<(&String, String)> =
            folder_ids.iter().zip(found).filter_map(|(id, path)| Some((id, path?))).collect();
        let is_below = |path: &str| {
            known
                .iter()
                .any(|(_, above)| path.strip_prefix(above.as_str()).is_some_and(|rest| rest.starts_with('/')))
        };
        let tops = known.iter().filter(|(_, path)| !is_below(path));
        let counts = tops.map(|(id, _)| count(context, files::Selection::of_folder((*id).clone(), true)));
        let files = try_join_all(counts).await?.into_iter().sum();
        let gone = folder_ids.len() - known.len();
        Ok(Self { folders: known.into_iter().map(|(_, path)| path).collect(), files, gone })
    }

    pub(super) fn sentence(&self) -> String {
        let files = words::count(self.files, "file", "files");
        if self.folders.is_empty() && self.gone == 0 {
            return format!(
                "It reaches the whole workspace: {files}, and every database, memory and source."
            );
        }
        let folders = words::count(self.folders.len() as u64, "folder", "folders");
        let gone = match self.gone {
            0 => String::new(),
            gone => format!(" {} gone.", words::count(gone as u64, "folder is", "folders are")),
        };
        format!("It reaches {files} in {folders}, with the databases there, and nothing else.{gone}")
    }
}

/// `None` for a folder that is no more.
async fn path_of(context: &Context, id: &str) -> Result<Option<String>, Problem> {
    let Ok(id) = id.parse() else { return Ok(None) };
    match folders::get(context, id).await {
        Ok(folder) => Ok(Some(folder.path)),
        Err(problem) if problem.reason == Reason::NotFound => Ok(None),
        Err(problem) => Err(problem),
    }
}

async fn count(context: &Context, selection: files::Selection) -> Result<u64, Problem> {
    let first = Paging { limit: Some(1), cursor: None };
    Ok(files::list(context, selection, first).await?.total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reached_is_told_in_words() {
        let of = |folders: &[&str], files, gone| {
            Reach { folders: folders.iter().map(ToString::to_string).collect(), files, gone }.sentence()
        };
        assert!(of(&[], 1, 0).starts_with("It reaches the whole workspace: 1 file,"));
        assert!(of(&["/a", "/b"], 1_204, 0).starts_with("It reaches 1\u{202f}204 files in 2 folders,"));
        assert!(
            of(&[], 0, 2).contains("0 files in 0 folders") && of(&[], 0, 2).ends_with("2 folders are gone.")
        );
    }
}
