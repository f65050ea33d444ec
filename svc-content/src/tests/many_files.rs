use super::*;
use crate::files::FileDraft;
use crate::files::many::FoundFile;

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
