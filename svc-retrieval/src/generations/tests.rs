use cairn_embed::EmbedderIdentity;
use uuid::Uuid;

use super::shelf::{FolderShelf, Shelf};
use crate::index::{Batch, Cursor};

fn identity(embedder: &str) -> EmbedderIdentity {
    EmbedderIdentity { embedder: embedder.to_owned(), dimensions: 4, origin: "somewhere".to_owned() }
}

#[test]
fn a_shelf_keeps_generations_apart_and_knows_the_current_one() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (identity("old"), identity("new"));
    let workspace = Uuid::from_u128(1);
    {
        let shelf = FolderShelf::open(folder.path()).unwrap();
        assert_eq!(shelf.current().unwrap(), None);
        shelf.make_current(&old).unwrap();
        let cursor = |position| Cursor { feed: "content".to_owned(), workspace, position };
        for (identity, position) in [(&old, 3), (&new, 5)] {
            let engine = shelf.open(identity).unwrap();
            engine.apply(Batch { cursors: vec![cursor(position)], ..Batch::default() }).unwrap();
        }
    }
    let shelf = FolderShelf::open(folder.path()).unwrap();
    assert_eq!(shelf.current().unwrap(), Some(old.clone()));
    assert_eq!(shelf.open(&new).unwrap().cursor("content", workspace), 5);
    shelf.make_current(&new).unwrap();
    shelf.keep_only(&new).unwrap();
    assert_eq!(shelf.current().unwrap(), Some(new.clone()));
    assert_eq!(shelf.open(&new).unwrap().cursor("content", workspace), 5);
    assert_eq!(shelf.open(&old).unwrap().cursor("content", workspace), 0, "it was not removed");
}

#[test]
fn what_cannot_be_read_is_no_current_generation() {
    let folder = tempfile::tempdir().unwrap();
    fs_err::write(folder.path().join("current.json"), b"half a fi").unwrap();
    assert_eq!(FolderShelf::open(folder.path()).unwrap().current().unwrap(), None);
}
