use uuid::Uuid;

use super::shelf::{FolderShelf, Maker, Shelf};
use crate::index::{Batch, Cursor};

fn maker(embedder: &str) -> Maker {
    Maker { embedder: embedder.to_owned(), dimensions: 4, origin: "somewhere".to_owned() }
}

#[test]
fn a_slug_names_a_maker_and_suits_a_folder() {
    let slugs =
        ["openai-a/b", "openai-a-b", "openai-a:b", "../../etc", "", "ä"].map(|name| maker(name).slug());
    for (place, slug) in slugs.iter().enumerate() {
        assert!(slug.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'), "{slug}");
        assert!(!slugs[..place].contains(slug), "{slug} is not unique");
    }
    let longer = Maker { dimensions: 8, ..maker("openai-a/b") };
    assert_ne!(longer.slug(), slugs[0]);
    let elsewhere = Maker { origin: "elsewhere".to_owned(), ..maker("openai-a/b") };
    assert_eq!(elsewhere.slug(), slugs[0], "a model that moved is the same model");
}

#[test]
fn a_shelf_keeps_generations_apart_and_knows_the_current_one() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (maker("old"), maker("new"));
    let workspace = Uuid::from_u128(1);
    {
        let shelf = FolderShelf::open(folder.path()).unwrap();
        assert_eq!(shelf.current().unwrap(), None);
        shelf.make_current(&old).unwrap();
        let cursor = |position| Cursor { feed: "content".to_owned(), workspace, position };
        for (maker, position) in [(&old, 3), (&new, 5)] {
            let engine = shelf.open(maker).unwrap();
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
