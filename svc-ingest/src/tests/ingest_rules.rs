//! Keeping, reading, listing and removing documents.

use cairn_chassis::feed::Kind;

use super::*;
use crate::model::{ContentType, FileType, IngestStatus, PAGES, PageRequest};

const UNKNOWN: &str = "0199c0de-0000-7000-8000-00000000ffff";

#[tokio::test]
async fn a_text_is_kept_byte_for_byte() {
    let content = "\u{feff}# Títle\r\n\u{200b}{\"a\": 1}\n";
    for bench in benches().await {
        for (kind, format, name) in [
            (ContentType::Markdown, FileType::Markdown, "A.md"),
            (ContentType::Text, FileType::Text, "A.txt"),
            (ContentType::Json, FileType::Json, "A.json"),
            (ContentType::Yaml, FileType::Yaml, "A.yaml"),
        ] {
            let sent = TextDraft { content_type: kind, ..text(kind.as_str(), "A", content) };
            let taken = bench.ingests.text(&bench.caller, sent).await.unwrap();
            let id = taken.document.id.to_string();
            assert_eq!((taken.is_replay, taken.document.status), (false, IngestStatus::Pending));
            let read = bench.ingests.content(&bench.caller, &id).await.unwrap();
            assert_eq!((read.text.as_str(), read.format), (content, format));
            assert_eq!(bench.ingests.get(&bench.caller, &id).await.unwrap(), taken.document);
            let kept = taken.document.text.unwrap();
            assert_eq!(
                (kept.name.as_str(), kept.hash, kept.size_bytes),
                (name, read.hash, content.len() as u64)
            );
        }
        assert_eq!(bench.faults().await, Vec::<String>::new(), "{}", bench.test.engine);
    }
}

#[tokio::test]
async fn the_same_again_is_a_replay_and_other_content_a_conflict() {
    for bench in benches().await {
        let first = bench.take("k", "A", "one").await.unwrap();
        let again = bench.take("k", "Another title", "one").await.unwrap();
        assert_eq!((again.is_replay, &again.document), (true, &first.document));
        assert_eq!(again.position, first.position, "nothing was written");
        let refused = bench.take("k", "A", "two").await.unwrap_err();
        assert!(refused.to_string().contains(&first.document.id.to_string()), "{refused}");
        assert!(matches!(refused, Error::KeyTaken { .. }));
        let elsewhere = bench.ingests.text(&caller(2), text("k", "A", "two")).await.unwrap();
        assert!(!elsewhere.is_replay, "a key is its workspace's");
        bench.ingests.delete(&bench.caller, &first.document.id.to_string()).await.unwrap();
        let new = bench.take("k", "A", "two").await.unwrap();
        assert!(!new.is_replay && new.document.id != first.document.id, "the key is free again");
        assert_eq!(bench.faults().await, Vec::<String>::new(), "{}", bench.test.engine);
    }
}

#[tokio::test]
async fn names_are_unique() {
    for bench in benches().await {
        let mut names = Vec::new();
        for key in ["a", "b", "c"] {
            names.push(bench.take(key, "Plan", key).await.unwrap().document.text.unwrap().name);
        }
        assert_eq!(names[0], "Plan.md");
        assert!(names[1].starts_with("Plan ") && names[2].starts_with("Plan ") && names[1] != names[2]);
    }
}

#[tokio::test]
async fn a_removed_document_is_gone_and_equal_texts_stay() {
    for bench in benches().await {
        let [one, two] = [bench.take("a", "A", "same").await, bench.take("b", "B", "same").await]
            .map(|taken| taken.unwrap());
        let ids = [&one, &two].map(|taken| taken.document.id.to_string());
        let position = bench.ingests.delete(&bench.caller, &ids[0]).await.unwrap();
        assert_eq!(bench.told(position - 1).await, [Entry::delete(Kind::Ingested, &ids[0])]);
        assert!(matches!(bench.ingests.get(&bench.caller, &ids[0]).await, Err(Error::NoDocument(_))));
        assert!(matches!(bench.ingests.delete(&bench.caller, &ids[0]).await, Err(Error::NoDocument(_))));
        assert_eq!(bench.ingests.content(&bench.caller, &ids[1]).await.unwrap().text, "same");
        bench.ingests.delete(&bench.caller, &ids[1]).await.unwrap();
        let account = bench.accounts.get(&bench.caller).await.unwrap();
        assert_eq!((account.documents, account.bytes), (0, 0));
        assert_eq!(bench.faults().await, Vec::<String>::new(), "{}", bench.test.engine);
    }
}

#[tokio::test]
async fn the_newest_comes_first_and_what_arrives_disturbs_no_page() {
    for bench in benches().await {
        let mut ids = Vec::new();
        for key in ["a", "b", "c", "d", "e"] {
            ids.push(bench.take(key, key, key).await.unwrap().document.id);
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        ids.reverse();
        let list = |page| bench.ingests.list(&bench.caller, None, "", page);
        let first = list(PageRequest::new(PAGES, 2, "").unwrap()).await.unwrap();
        bench.take("f", "f", "f").await.unwrap();
        let mut seen: Vec<_> = first.items.iter().map(|document| document.id).collect();
        assert_eq!(first.total, 5);
        let mut next = first.next;
        while !next.is_empty() {
            let page = list(PageRequest::new(PAGES, 2, &next).unwrap()).await.unwrap();
            assert_eq!(page.total, 5);
            seen.extend(page.items.iter().map(|document| document.id));
            next = page.next;
        }
        assert_eq!(seen, ids, "{}", bench.test.engine);
        let failed = Some(IngestStatus::Failed);
        let none = bench
            .ingests
            .list(&bench.caller, failed, "", PageRequest::new(PAGES, 0, "").unwrap())
            .await
            .unwrap();
        assert_eq!((none.items.len(), none.total), (0, 0));
    }
}

#[tokio::test]
async fn a_list_is_narrowed_by_a_part_of_titles() {
    for bench in benches().await {
        for (key, title) in [("a", "100% Plan_b"), ("b", "1000 plans"), ("c", "back\\slash"), ("d", "other")]
        {
            bench.take(key, title, key).await.unwrap();
        }
        let (most, engine) = (PageRequest::new(PAGES, 0, "").unwrap(), bench.test.engine);
        for (part, wanted) in [
            ("PLAN", vec!["1000 plans", "100% Plan_b"]),
            (" 0% p", vec!["100% Plan_b"]),
            ("n_b", vec!["100% Plan_b"]),
            ("k\\s", vec!["back\\slash"]),
            ("%", vec!["100% Plan_b"]),
            ("zq", vec![]),
        ] {
            let page = bench.ingests.list(&bench.caller, None, part, most.clone()).await.unwrap();
            let titles: Vec<_> = page.items.iter().map(|document| document.title.as_str()).collect();
            assert_eq!((titles, page.total), (wanted.clone(), wanted.len() as u64), "{engine}: {part}");
        }
        let first = bench.ingests.list(&bench.caller, None, "plan", PageRequest::new(PAGES, 1, "").unwrap());
        assert_eq!(first.await.unwrap().total, 2, "{engine}");
        let waiting = Some(IngestStatus::Pending);
        let page = bench.ingests.list(&bench.caller, waiting, "other", most.clone()).await.unwrap();
        assert_eq!((page.items.len(), page.total), (1, 1), "{engine}");
        for odd in ["\0".to_owned(), "x".repeat(256)] {
            let refused = bench.ingests.list(&bench.caller, None, &odd, most.clone()).await;
            assert!(matches!(refused, Err(Error::Invalid(_))), "{engine}: {odd}");
        }
    }
}

#[tokio::test]
async fn who_is_bound_to_folders_and_who_is_elsewhere_sees_nothing() {
    for bench in benches().await {
        let id = bench.take("a", "A", "text").await.unwrap().document.id.to_string();
        let page = PageRequest::new(PAGES, 0, "").unwrap();
        let bound = bound_to_folders(1);
        let refused = |error: Error| matches!(error, Error::BoundToFolders(_));
        assert!(refused(bench.ingests.text(&bound, text("b", "B", "x")).await.unwrap_err()));
        assert!(refused(bench.ingests.get(&bound, &id).await.unwrap_err()));
        assert!(refused(bench.ingests.content(&bound, &id).await.unwrap_err()));
        assert!(refused(bench.ingests.delete(&bound, &id).await.unwrap_err()));
        assert!(refused(bench.ingests.list(&bound, None, "", page).await.unwrap_err()));
        for (who, id) in [(caller(2), id.as_str()), (caller(1), UNKNOWN), (caller(1), "no id")] {
            let gone = |error: Error| matches!(error, Error::NoDocument(_));
            assert!(gone(bench.ingests.get(&who, id).await.unwrap_err()));
            assert!(gone(bench.ingests.content(&who, id).await.unwrap_err()));
            assert!(gone(bench.ingests.delete(&who, id).await.unwrap_err()));
        }
    }
}
