//! Where generations are kept.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_embed::EmbedderIdentity;

use crate::index::{self, Engine, Index};

/// Keeps the engines of generations and knows which one is current. Calls block: run them off the async threads.
///
/// An engine of folders keeps each in a folder of its own ([`FolderShelf`]); a server can keep each in a collection named
/// by [`EmbedderIdentity::slug`], with an alias for the current one.
pub trait Shelf: Send + Sync + Debug {
    /// What made the current generation; none at the very first start.
    fn current(&self) -> Result<Option<EmbedderIdentity>, index::Error>;

    /// The engine of a generation, empty when there is none of it yet. It keeps its cursors when it is opened again.
    fn open(&self, identity: &EmbedderIdentity) -> Result<Arc<dyn Engine>, index::Error>;

    /// Notes that a generation is current, for the next start. All or nothing.
    fn make_current(&self, identity: &EmbedderIdentity) -> Result<(), index::Error>;

    /// Removes every other generation. Nobody has them open.
    fn keep_only(&self, identity: &EmbedderIdentity) -> Result<(), index::Error>;
}

/// Tells which generation is current.
const CURRENT_FILE: &str = "current.json";

/// Embedded indexes, each in a folder of its own.
#[derive(Debug)]
pub struct FolderShelf(PathBuf);

impl FolderShelf {
    /// The generations in that folder, which belongs to this shelf alone; made when it is not there.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn open(root: &Path) -> Result<Self, index::Error> {
        fs_err::create_dir_all(root)?;
        Ok(Self(root.to_owned()))
    }
}

impl Shelf for FolderShelf {
    fn current(&self) -> Result<Option<EmbedderIdentity>, index::Error> {
        match fs_err::read(self.0.join(CURRENT_FILE)) {
            // What cannot be read is rebuilt from the feeds, as everything here can be.
            Ok(written) => Ok(serde_json::from_slice(&written).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn open(&self, identity: &EmbedderIdentity) -> Result<Arc<dyn Engine>, index::Error> {
        Ok(Arc::new(Index::open(&self.0.join(identity.slug()), &identity.embedder, identity.dimensions)?))
    }

    fn make_current(&self, identity: &EmbedderIdentity) -> Result<(), index::Error> {
        let written = serde_json::to_vec(identity)?;
        let draft = self.0.join(format!("{CURRENT_FILE}.new"));
        fs_err::write(&draft, written)?;
        fs_err::rename(draft, self.0.join(CURRENT_FILE))?;
        Ok(())
    }

    fn keep_only(&self, identity: &EmbedderIdentity) -> Result<(), index::Error> {
        let kept = identity.slug();
        for entry in fs_err::read_dir(&self.0)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() && *entry.file_name() != *kept {
                fs_err::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }
}
