//! Opens the engines of generations.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_embed::EmbedderIdentity;

use crate::embedded::Index;
use crate::{Engine, Error};

/// Keeps the engines of generations and knows which one is current. Calls block: run them off the async threads.
///
/// An engine of folders keeps each in a folder of its own ([`FolderFactory`]); a server can keep each in a collection named
/// by [`EmbedderIdentity::slug`], with an alias for the current one.
pub trait EngineFactory: Send + Sync + Debug {
    /// What made the current generation; none at the very first start.
    fn current(&self) -> Result<Option<EmbedderIdentity>, Error>;

    /// The engine of a generation, empty when there is none of it yet. It keeps its cursors when it is opened again.
    fn open(&self, identity: &EmbedderIdentity) -> Result<Arc<dyn Engine>, Error>;

    /// Notes that a generation is current, for the next start. All or nothing.
    fn make_current(&self, identity: &EmbedderIdentity) -> Result<(), Error>;

    /// Removes every other generation. Nobody has them open.
    fn keep_only(&self, identity: &EmbedderIdentity) -> Result<(), Error>;
}

/// Tells which generation is current.
const CURRENT_FILE: &str = "current.json";

/// Embedded indexes, each in a folder of its own.
#[derive(Debug)]
pub struct FolderFactory(PathBuf);

impl FolderFactory {
    /// The generations in that folder, which belongs to this factory alone; made when it is not there.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn open(root: &Path) -> Result<Self, Error> {
        fs_err::create_dir_all(root)?;
        Ok(Self(root.to_owned()))
    }
}

impl EngineFactory for FolderFactory {
    fn current(&self) -> Result<Option<EmbedderIdentity>, Error> {
        match fs_err::read(self.0.join(CURRENT_FILE)) {
            // What cannot be read is rebuilt from the feeds, as everything here can be.
            Ok(written) => Ok(serde_json::from_slice(&written).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn open(&self, identity: &EmbedderIdentity) -> Result<Arc<dyn Engine>, Error> {
        Ok(Arc::new(Index::open(&self.0.join(identity.slug()), &identity.embedder, identity.dimensions)?))
    }

    fn make_current(&self, identity: &EmbedderIdentity) -> Result<(), Error> {
        let written = serde_json::to_vec(identity)?;
        let draft = self.0.join(format!("{CURRENT_FILE}.new"));
        fs_err::write(&draft, written)?;
        fs_err::rename(draft, self.0.join(CURRENT_FILE))?;
        Ok(())
    }

    fn keep_only(&self, identity: &EmbedderIdentity) -> Result<(), Error> {
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

#[cfg(test)]
mod tests {
    use cairn_embed::EmbedderIdentity;
    use uuid::Uuid;

    use super::*;
    use crate::{Batch, Cursor};

    fn identity(embedder: &str) -> EmbedderIdentity {
        EmbedderIdentity { embedder: embedder.to_owned(), dimensions: 4, origin: "somewhere".to_owned() }
    }

    #[test]
    fn a_factory_keeps_generations_apart_and_knows_the_current_one() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (identity("old"), identity("new"));
        let workspace = Uuid::from_u128(1);
        {
            let factory = FolderFactory::open(folder.path()).unwrap();
            assert_eq!(factory.current().unwrap(), None);
            factory.make_current(&old).unwrap();
            let cursor = |position| Cursor { feed: "content".to_owned(), workspace, position };
            for (identity, position) in [(&old, 3), (&new, 5)] {
                let engine = factory.open(identity).unwrap();
                engine.apply(Batch { cursors: vec![cursor(position)], ..Batch::default() }).unwrap();
            }
        }
        let factory = FolderFactory::open(folder.path()).unwrap();
        assert_eq!(factory.current().unwrap(), Some(old.clone()));
        assert_eq!(factory.open(&new).unwrap().cursor("content", workspace), 5);
        factory.make_current(&new).unwrap();
        factory.keep_only(&new).unwrap();
        assert_eq!(factory.current().unwrap(), Some(new.clone()));
        assert_eq!(factory.open(&new).unwrap().cursor("content", workspace), 5);
        assert_eq!(factory.open(&old).unwrap().cursor("content", workspace), 0, "it was not removed");
    }

    #[test]
    fn what_cannot_be_read_is_no_current_generation() {
        let folder = tempfile::tempdir().unwrap();
        fs_err::write(folder.path().join("current.json"), b"half a fi").unwrap();
        assert_eq!(FolderFactory::open(folder.path()).unwrap().current().unwrap(), None);
    }
}
