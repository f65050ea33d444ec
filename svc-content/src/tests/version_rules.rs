use cairn_chassis::identity::{Principal, PrincipalKind};

use super::*;
use crate::files::FilePatch;
use crate::model::{Author, FileVersion};
use crate::versions::Versions;

impl Bench {
    fn versions(&self) -> Versions {
        Versions::new(self.context.clone())
    }

    async fn write(&self, caller: &Caller, file: &File, content: &str) -> File {
        let patch = FilePatch { content: Some(content.to_owned()), ..FilePatch::default() };
        self.files.update(caller, &file.id.to_string(), patch).await.unwrap().item
    }

    async fn versions_of(&self, file: &File) -> Vec<FileVersion> {
        self.versions().list(&self.caller, &file.id.to_string(), first_page()).await.unwrap().items
    }

    async fn read_version(&self, file: &File, version: u64) -> String {
        self.versions().get(&self.caller, &file.id.to_string(), version).await.unwrap().1
    }
}

fn person(bench: &Bench, name: &str) -> Caller {
    let principal =
        Principal { kind: PrincipalKind::User, id: format!("id of {name}"), name: name.to_owned() };
    Caller { principal, ..bench.caller.clone() }
}

#[tokio::test]
async fn every_content_is_kept_with_its_author() {
    for bench in benches().await {
        let (ada, bob) = (person(&bench, "Ada"), person(&bench, "Bob"));
        let file = bench.files.create(&ada, draft("a.md", None)).await.unwrap().item;
        let second = bench.write(&bob, &file, "second").await;
        let rename = FilePatch { name: Some("b.md".into()), ..FilePatch::default() };
        bench.files.update(&ada, &file.id.to_string(), rename).await.unwrap();
        let fourth = bench.write(&ada, &file, "fourth").await;
        bench.write(&bob, &file, "fourth").await;

        let listed = bench.versions_of(&file).await;
        let told: Vec<_> = listed.iter().map(|one| (one.version, one.content_hash.clone())).collect();
        let expected = [
            (4, fourth.content_hash.clone()),
            (2, second.content_hash.clone()),
            (1, file.content_hash.clone()),
        ];
        assert_eq!(told, expected, "{}", bench.engine());
        let names: Vec<_> = listed.iter().map(|one| one.author.clone().unwrap().name).collect();
        assert_eq!(names, ["Ada", "Bob", "Ada"]);
        let bob = Author { kind: "user".into(), id: "id of Bob".into(), name: "Bob".into() };
        assert_eq!(listed[1].author, Some(bob));
        assert_eq!((listed[1].size_bytes, listed[1].created_at), (6, second.updated_at));
        assert_eq!(bench.read_version(&file, 1).await, "content of a.md");
        assert_eq!(bench.read_version(&file, 2).await, "second");
        assert_eq!(bench.read_version(&file, 4).await, "fourth");
        for none in [0, 3, 5, u64::MAX] {
            let id = file.id.to_string();
            assert_not_found(bench.versions().get(&bench.caller, &id, none).await, "version");
        }
    }
}

#[tokio::test]
async fn a_version_becomes_the_content_again() {
    for bench in benches().await {
        let file = bench.file("a.md", None).await;
        let second = bench.write(&bench.caller, &file, "second").await;
        let id = file.id.to_string();
        let versions = bench.versions();
        let stale = versions.restore(&bench.caller, &id, 1, vec![file.content_hash.clone()]).await;
        assert!(matches!(stale, Err(Error::VersionConflict { .. })), "{stale:?}");
        let current = vec![second.content_hash.clone()];
        let back = versions.restore(&bench.caller, &id, 1, current).await.unwrap();
        assert_eq!((back.item.version, &back.item.content_hash), (3, &file.content_hash));
        assert_eq!(bench.files.get(&bench.caller, &id).await.unwrap().1, "content of a.md");
        let told: Vec<_> = bench.versions_of(&file).await.into_iter().map(|one| one.version).collect();
        assert_eq!(told, [3, 2, 1], "{}", bench.engine());
        let again = versions.restore(&bench.caller, &id, 3, Vec::new()).await.unwrap();
        assert_eq!((again.item.version, again.position), (3, back.position), "nothing changed");
        assert_not_found(versions.restore(&bench.caller, &id, 9, Vec::new()).await, "version");
    }
}

#[tokio::test]
async fn versions_come_in_pages() {
    for bench in benches().await {
        let file = bench.file("a.md", None).await;
        for number in 0..6 {
            bench.write(&bench.caller, &file, &format!("{number}")).await;
        }
        let mut told = Vec::new();
        let mut token = String::new();
        loop {
            let ask = PageRequest::new(PAGES, 3, &token).unwrap();
            let page = bench.versions().list(&bench.caller, &file.id.to_string(), ask).await.unwrap();
            assert_eq!(page.total, 7);
            told.extend(page.items.into_iter().map(|one| one.version));
            token = page.next;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(told, [7, 6, 5, 4, 3, 2, 1], "{}", bench.engine());
    }
}

#[tokio::test]
async fn versions_are_as_reachable_as_their_file() {
    for bench in benches().await {
        let folder = bench.folder("a", None).await;
        let other = bench.folder("b", None).await;
        let file = bench.file("1", Some(folder.id)).await;
        let id = file.id.to_string();
        let versions = bench.versions();
        let agent = bench.scoped(&[other.id]);
        assert_out_of_scope(versions.list(&agent, &id, first_page()).await);
        assert_out_of_scope(versions.get(&agent, &id, 1).await);
        assert_out_of_scope(versions.restore(&agent, &id, 1, Vec::new()).await);
        versions.get(&bench.scoped(&[folder.id]), &id, 1).await.unwrap();
        let stranger = caller(77);
        assert_not_found(versions.list(&stranger, &id, first_page()).await, "file");
        assert_not_found(versions.get(&stranger, &id, 1).await, "file");
        assert_not_found(versions.list(&bench.caller, "x", first_page()).await, "file");
        bench.files.delete(&bench.caller, &id).await.unwrap();
        assert_not_found(versions.list(&bench.caller, &id, first_page()).await, "file");
        assert_not_found(versions.restore(&bench.caller, &id, 1, Vec::new()).await, "file");
        bench.trash().restore(&bench.caller, cairn_chassis::feed::Kind::File, &id).await.unwrap();
        assert_eq!(bench.versions_of(&file).await.len(), 1, "{}", bench.engine());
    }
}

#[tokio::test]
async fn former_bodies_go_when_the_file_is_removed_for_good() {
    for bench in benches().await {
        let file = bench.file("a.md", None).await;
        let other = bench.file("other.md", None).await;
        bench.write(&bench.caller, &file, "in both histories").await;
        bench.write(&bench.caller, &other, "in both histories").await;
        bench.write(&bench.caller, &file, "own").await;
        bench.write(&bench.caller, &other, "now").await;
        bench.files.delete(&bench.caller, &file.id.to_string()).await.unwrap();
        let kind = cairn_chassis::feed::Kind::File;
        bench.trash().remove(&bench.caller, kind, &file.id.to_string()).await.unwrap();
        assert_eq!(bench.count_of("SELECT COUNT(*) FROM file_versions").await, 3, "{}", bench.engine());
        assert_eq!(bench.count_of("SELECT COUNT(*) FROM bodies").await, 3);
        assert_eq!(bench.read_version(&other, 2).await, "in both histories");
    }
}

#[tokio::test]
async fn who_wrote_last_is_told_of_many_files_at_once() {
    for bench in benches().await {
        let (ada, bob) = (person(&bench, "Ada"), person(&bench, "Bob"));
        let inside = bench.folder("inside", None).await;
        let mine = bench.files.create(&ada, draft("mine.md", Some(inside.id))).await.unwrap().item;
        let other = bench.files.create(&ada, draft("other.md", None)).await.unwrap().item;
        bench.write(&bob, &other, "second").await;
        // A rename does not change the author of the content.
        let rename = FilePatch { name: Some("b.md".into()), ..FilePatch::default() };
        bench.files.update(&ada, &other.id.to_string(), rename).await.unwrap();
        let gone = bench.file("gone.md", None).await;
        bench.files.delete(&ada, &gone.id.to_string()).await.unwrap();
        let mut asked: Vec<String> = [&mine, &other, &gone].map(|file| file.id.to_string()).into();
        asked.extend(["no id".to_owned(), uuid::Uuid::from_u128(7).to_string()]);
        let told = async |caller: &Caller| {
            let found = bench.versions().current(caller, &asked).await.unwrap();
            let mut told: Vec<_> =
                found.into_iter().map(|one| (one.version, one.author.unwrap().name)).collect();
            told.sort();
            told
        };
        let all = [(1, "Ada".to_owned()), (2, "Bob".to_owned())];
        assert_eq!(told(&bench.caller).await, all, "{}", bench.engine());
        assert_eq!(told(&bench.scoped(&[inside.id])).await, all[..1], "{}", bench.engine());
        let many = vec![mine.id.to_string(); 201];
        assert!(bench.versions().current(&bench.caller, &many).await.is_err());
        assert!(bench.versions().current(&bench.caller, &[]).await.unwrap().is_empty());
    }
}
