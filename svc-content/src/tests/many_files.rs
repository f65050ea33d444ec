use super::*;
use crate::files::many::FoundFile;
use crate::files::{FileDraft, FilePatch};
use crate::past::{Moment, Past};

fn ids(files: &[&File]) -> Vec<String> {
    files.iter().map(|file| file.id.to_string()).collect()
}

fn told(found: &Result<FoundFile, Error>) -> String {
    match found {
        Ok((file, Some(content))) => format!("{}: {content}", file.name),
        Ok((file, None)) => format!("{} has {} bytes", file.name, file.size_bytes),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn each_file_has_its_own_outcome() {
    for bench in benches().await {
        let make = async |name: &str, content: &str| {
            let asked = FileDraft { content: content.to_owned(), ..draft(name, None) };
            bench.files.create(&bench.caller, asked).await.unwrap().item
        };
        let (short, long, same) = (make("a", "one").await, make("b", "three").await, make("c", "one").await);
        let unknown = uuid::Uuid::from_u128(7).to_string();
        let mut asked = ids(&[&long, &short, &same, &short]);
        asked.insert(2, unknown.clone());
        asked.push("no id".to_owned());
        let found = bench.files.get_many(&bench.caller, &asked, Some(4)).await.unwrap();
        let expected = [
            "b has 5 bytes".to_owned(),
            "a: one".to_owned(),
            format!("no file {unknown}"),
            "c: one".to_owned(),
            "a: one".to_owned(),
            "no file no id".to_owned(),
        ];
        assert_eq!(found.iter().map(told).collect::<Vec<_>>(), expected, "{}", bench.engine());
    }
}

#[tokio::test]
async fn a_scope_hides_no_more_than_it_must() {
    for bench in benches().await {
        let inside = bench.folder("inside", None).await;
        let (mine, other) = (bench.file("mine", Some(inside.id)).await, bench.file("other", None).await);
        let caller = bench.scoped(&[inside.id]);
        let found = bench.files.get_many(&caller, &ids(&[&other, &mine]), None).await.unwrap();
        assert!(matches!(found[0], Err(Error::OutOfScope(_))), "{found:?}");
        assert!(matches!(&found[1], Ok((file, Some(_))) if file.id == mine.id), "{found:?}");
    }
}

#[tokio::test]
async fn one_answer_holds_as_much_as_a_message_takes() {
    for bench in benches().await {
        let asked = FileDraft { content: "x".repeat(5 * 1024 * 1024), ..draft("big", None) };
        let big = bench.files.create(&bench.caller, asked).await.unwrap().item;
        let found = bench.files.get_many(&bench.caller, &ids(&[&big; 5]), None).await.unwrap();
        let given = found.iter().filter(|one| matches!(one, Ok((_, Some(_))))).count();
        assert_eq!((given, found.len()), (3, 5));
    }
}

#[tokio::test]
async fn each_file_is_given_as_it_stood() {
    for bench in benches().await {
        let inside = bench.folder("inside", None).await;
        let (kept, edited) = (bench.file("kept", None).await, bench.file("edited", Some(inside.id)).await);
        let then = Moment::After(bench.context.feed.head(bench.caller.workspace).await.unwrap());
        let change = FilePatch {
            name: Some("renamed".to_owned()),
            content: Some("a longer text".to_owned()),
            tags: Some(vec!["new".to_owned()]),
            ..FilePatch::default()
        };
        bench.files.update(&bench.caller, &edited.id.to_string(), change).await.unwrap();
        let later = bench.file("later", None).await;

        let past = Past::new(bench.context.clone());
        let mut asked = ids(&[&edited, &later, &kept]);
        asked.push("no id".to_owned());
        let found = past.files(&bench.caller, &asked, None, then).await.unwrap();
        for (place, id) in [(0, &asked[0]), (2, &asked[2])] {
            let alone = past.file(&bench.caller, id, then).await.unwrap();
            let (file, content) = found[place].as_ref().unwrap();
            assert_eq!((file, content.as_deref()), (&alone.0, Some(alone.1.as_str())));
        }
        assert!(matches!(found[1], Err(Error::NotThen(_))), "{found:?}");
        assert!(matches!(found[3], Err(Error::NotFound { .. })), "{found:?}");
        let size = edited.size_bytes;
        let without =
            past.files(&bench.caller, &asked[..1], Some(size.saturating_sub(1)), then).await.unwrap();
        assert!(matches!(&without[0], Ok((file, None)) if file.size_bytes == size), "{without:?}");

        let scoped = past.files(&bench.scoped(&[inside.id]), &asked, None, then).await.unwrap();
        assert!(scoped[0].is_ok() && matches!(scoped[2], Err(Error::OutOfScope(_))), "{scoped:?}");
        let never = past.files(&bench.caller, &asked, None, Moment::After(1_000_000)).await;
        assert!(matches!(never, Err(Error::Invalid(_))), "{never:?}");
        let none = past.files(&bench.caller, &[], None, then).await;
        assert!(matches!(none, Err(Error::Invalid(_))), "{none:?}");
    }
}

#[tokio::test]
async fn one_to_twenty_files_are_named() {
    for bench in benches().await {
        let id = bench.file("a", None).await.id.to_string();
        for count in [0, 21] {
            let refused = bench.files.get_many(&bench.caller, &vec![id.clone(); count], None).await;
            assert!(matches!(refused, Err(Error::Invalid(_))), "{count}");
        }
        assert_eq!(bench.files.get_many(&bench.caller, &vec![id; 20], None).await.unwrap().len(), 20);
    }
}
