//! Files and HTML, whose text is taken out of them beside the requests.

use std::time::Duration;

use bytes::Bytes;
use cairn_chassis::clock::ManualClock;
use cairn_chassis::feed::Kind;
use cairn_extract::Settings;
use futures::stream;

use super::*;
use crate::ingest::{FileDraft, UploadEnd, UploadPart};
use crate::model::{Body, ContentType, FileType, Growth, IngestStatus, Ingested, Retained, with_id_suffix};
use crate::work::Work;

fn parts(key: &str, name: &str, chunks: &[&[u8]]) -> Vec<UploadPart> {
    let draft = Draft { idempotency_key: key.into(), ..Draft::default() };
    let draft = FileDraft { draft, file_name: name.into(), mime_type: String::new() };
    let bytes = chunks.iter().map(|chunk| UploadPart::Bytes(Bytes::copy_from_slice(chunk)));
    let end = UploadEnd { size_bytes: chunks.iter().map(|chunk| chunk.len() as u64).sum() };
    [UploadPart::Draft(Box::new(draft))].into_iter().chain(bytes).chain([UploadPart::End(end)]).collect()
}

impl Bench {
    async fn send(&self, parts: Vec<UploadPart>) -> Result<Accepted, Error> {
        self.ingests.file(&self.caller, stream::iter(parts.into_iter().map(Ok))).await
    }

    /// Reads all that is to be read.
    async fn read_all(&self) {
        while let Some(job) = self.extractions.claim().await.unwrap() {
            self.extractions.take(&job).await;
        }
    }

    async fn now(&self, document: &Ingested) -> Ingested {
        self.ingests.get(&self.caller, &document.id.to_string()).await.unwrap()
    }

    /// Waits until a transaction waits for another one; SQLite has one writer, and nothing to look at.
    async fn until_somebody_waits(&self) {
        let waiting = async || {
            let db = &self.context.db;
            let waiting: i64 =
                cairn_chassis::fetch!(scalar, db, "SELECT COUNT(*) FROM pg_locks WHERE NOT granted").unwrap();
            waiting > 0
        };
        let polled = async {
            while self.test.engine == "postgres" && !waiting().await {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), polled).await.unwrap();
    }

    async fn pieces(&self) -> i64 {
        let db = &self.context.db;
        cairn_chassis::fetch!(scalar, db, "SELECT COUNT(*) FROM upload_pieces").unwrap()
    }
}

#[tokio::test]
async fn html_becomes_markdown() {
    for bench in benches().await {
        let html = "<main><h1>Plan</h1><p>Two <b>steps</b>, <a href=\"/next\">next</a>.</p></main>";
        let mut sent = TextDraft { content_type: ContentType::Html, ..text("h", "Plan", html) };
        sent.draft.url = Some("https://wiki.example/plan".into());
        let taken = bench.ingests.text(&bench.caller, sent.clone()).await.unwrap();
        assert_eq!((taken.document.status, &taken.document.text), (IngestStatus::Pending, &None));
        let id = taken.document.id.to_string();
        assert!(matches!(bench.ingests.content(&bench.caller, &id).await, Err(Error::NoText { .. })));
        assert!(bench.told(0).await.is_empty(), "there is nothing to index");
        assert!(bench.ingests.text(&bench.caller, sent).await.unwrap().is_replay);
        assert_eq!(bench.faults().await, Vec::<String>::new(), "{}", bench.test.engine);
        bench.read_all().await;
        let read = bench.ingests.content(&bench.caller, &id).await.unwrap();
        assert!(read.text.contains("# Plan"), "{}", read.text);
        assert!(read.text.contains("(https://wiki.example/next)"), "{}", read.text);
        assert_eq!(bench.now(&taken.document).await.status, IngestStatus::Indexing);
        assert_eq!(bench.told(0).await, [Entry::upsert(Kind::Ingested, &id)]);
        assert_eq!(bench.pieces().await, 0);
        assert_eq!(bench.faults().await, Vec::<String>::new(), "{}", bench.test.engine);
    }
}

#[tokio::test]
async fn a_file_is_kept_in_pieces_and_read_once() {
    let line = b"a line of a long text\n".repeat(80_000);
    for bench in benches().await {
        let chunks: Vec<&[u8]> = line.chunks(300_000).collect();
        let mut sent = parts("f", "docs/notes.txt", &chunks);
        let first = bench.send(sent.clone()).await.unwrap();
        assert_eq!(first.document.title, "notes.txt");
        assert_eq!(first.document.status, IngestStatus::Pending);
        let draft = sent.remove(0);
        sent.insert(sent.len() - 1, draft);
        let again = bench.send(sent).await.unwrap();
        assert!(again.is_replay && again.document.id == first.document.id, "in another order of its parts");
        assert_eq!(bench.pieces().await, 2, "{}: those of the first", bench.test.engine);
        assert_eq!(bench.faults().await, Vec::<String>::new(), "{}", bench.test.engine);
        bench.read_all().await;
        let now = bench.now(&first.document).await;
        let text = now.text.unwrap();
        assert_eq!((text.name.as_str(), text.format), ("notes.txt", FileType::Text));
        let read = bench.ingests.content(&bench.caller, &now.id.to_string()).await.unwrap();
        assert_eq!(read.text.as_bytes(), line);
        let account = bench.accounts.get(&bench.caller).await.unwrap();
        assert_eq!((account.documents, account.bytes), (1, line.len() as u64));
        assert_eq!(bench.faults().await, Vec::<String>::new(), "{}", bench.test.engine);
    }
}

#[tokio::test]
async fn a_file_without_a_text_fails_and_says_why() {
    for bench in benches().await {
        let sent = bench.send(parts("f", "x.bin", &[&[0, 159, 146, 150, 0, 1, 2, 3]])).await.unwrap();
        bench.read_all().await;
        let now = bench.now(&sent.document).await;
        assert_eq!((now.status, now.text.clone()), (IngestStatus::Failed, None));
        let why = now.error.unwrap();
        let id = now.id.to_string();
        let refused = bench.ingests.content(&bench.caller, &id).await.unwrap_err();
        assert!(refused.to_string().contains(&why), "{refused}");
        assert!(bench.told(0).await.is_empty());
        let account = bench.accounts.get(&bench.caller).await.unwrap();
        assert_eq!((account.documents, account.bytes, bench.pieces().await), (1, 0, 0));
        assert_eq!(bench.faults().await, Vec::<String>::new(), "{}", bench.test.engine);
        bench.ingests.delete(&bench.caller, &id).await.unwrap();
        assert_eq!(bench.faults().await, Vec::<String>::new(), "{}", bench.test.engine);
    }
}

#[tokio::test]
async fn an_upload_that_is_cut_or_wrong_leaves_nothing() {
    let large = vec![b'x'; 1_200_000];
    for bench in benches().await {
        let whole = || parts("f", "a.txt", &[&large]);
        let mut cut = whole();
        cut.pop();
        let mut short = whole();
        short.pop();
        short.push(UploadPart::End(UploadEnd { size_bytes: 7 }));
        let mut twice = whole();
        twice.insert(0, twice[0].clone());
        let mut nameless = whole();
        nameless.remove(0);
        let empty = parts("f", "a.txt", &[]);
        let keyless = parts("", "a.txt", &[&large]);
        for (odd, path) in [
            (cut, "file"),
            (short, "end.sizeBytes"),
            (twice, "draft"),
            (nameless, "draft"),
            (empty, "file"),
            (keyless, "idempotencyKey"),
        ] {
            match bench.send(odd).await {
                Err(Error::Invalid(said)) => assert_eq!(said[0].path, path),
                other => panic!("{path}: {other:?}"),
            }
        }
        let small = Caller::of_test(workspace(1), Scope::All, "small");
        let sent = stream::iter(whole().into_iter().map(Ok));
        assert!(matches!(bench.ingests.file(&small, sent).await, Err(Error::TooLarge(_))));
        assert_eq!(bench.pieces().await, 0);
        assert_eq!(bench.faults().await, Vec::<String>::new(), "{}", bench.test.engine);
    }
}

#[tokio::test]
async fn a_file_whose_reader_cannot_be_started_is_tried_again_and_then_told() {
    for bench in benches().await {
        let sent = bench.send(parts("f", "plan.html", &[b"<p>Two steps.</p>"])).await.unwrap();
        let clock = Arc::new(ManualClock::new(bench.context.clock.now().plus(Duration::from_secs(1))));
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let missing = Settings { program: "/nowhere/cairn".into(), ..Settings::default() };
        let context = Context { clock: shared, ..bench.context.clone() };
        let extractions = Extractions::new(context, Extractor::start(missing));
        for pause in [5, 10, 15] {
            let job = extractions.claim().await.unwrap().unwrap();
            extractions.take(&job).await;
            assert_ne!(bench.now(&sent.document).await.status, IngestStatus::Failed);
            clock.advance(Duration::from_secs(pause - 1));
            assert!(extractions.claim().await.unwrap().is_none(), "{}: too soon", bench.test.engine);
            clock.advance(Duration::from_secs(1));
        }
        let job = extractions.claim().await.unwrap().unwrap();
        extractions.take(&job).await;
        let now = bench.now(&sent.document).await;
        assert_eq!(now.status, IngestStatus::Failed, "{}: within 60 s", bench.test.engine);
        assert!(now.error.is_some_and(|why| why.contains("could not be read") && !why.contains("/nowhere")));
        assert_eq!(bench.pieces().await, 0);
        assert_eq!(bench.faults().await, Vec::<String>::new(), "{}", bench.test.engine);
    }
}

/// On PostgreSQL a name that is being taken is seen only when it is taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_whose_name_is_taken_at_this_moment_is_read_once() {
    for bench in benches().await {
        let sent = bench.send(parts("f", "report.txt", &[b"the one"])).await.unwrap();
        let job = bench.extractions.claim().await.unwrap().unwrap();

        let mut work = Work::without_limits(&bench.context, bench.caller.workspace).await.unwrap();
        let body = Body::of("the other".to_owned()).await.unwrap();
        work.keep_text(&body).await.unwrap();
        let name = "report.txt".to_owned();
        let text = Retained { name, format: FileType::Text, hash: body.hash, size_bytes: body.size_bytes };
        let other = Ingested {
            id: bench.context.ids.next(),
            idempotency_key: "other".to_owned(),
            text: Some(text),
            ..sent.document.clone()
        };
        assert!(store::ingest::insert(work.tx(), bench.caller.workspace, &other).await.unwrap());
        work.grow(Growth { documents: 1, ..Growth::default() });
        work.publish_upsert(Kind::Ingested, other.id);

        let extractions = bench.extractions.clone();
        let reading = tokio::spawn(async move { extractions.take(&job).await });
        bench.until_somebody_waits().await;
        work.commit().await.unwrap();
        reading.await.unwrap();
        let now = bench.now(&sent.document).await;
        let name = now.text.map(|text| text.name);
        assert_eq!(name, Some(with_id_suffix("report.txt", now.id)), "{}", bench.test.engine);
        assert_eq!(store::extractions::count(&bench.context.db).await.unwrap(), 0, "it is read");
        assert_eq!(bench.faults().await, Vec::<String>::new(), "{}", bench.test.engine);
    }
}

#[tokio::test]
async fn a_document_that_is_removed_while_it_is_read_is_gone() {
    for bench in benches().await {
        let sent = bench.send(parts("f", "a.txt", &[b"text"])).await.unwrap();
        let job = bench.extractions.claim().await.unwrap().unwrap();
        assert_eq!(bench.now(&sent.document).await.status, IngestStatus::Indexing);
        assert!(bench.extractions.claim().await.unwrap().is_none(), "somebody has it");
        bench.ingests.delete(&bench.caller, &sent.document.id.to_string()).await.unwrap();
        bench.extractions.take(&job).await;
        assert!(bench.told(0).await.is_empty());
        assert_eq!(bench.faults().await, Vec::<String>::new(), "{}", bench.test.engine);
    }
}

#[tokio::test]
async fn workspaces_take_turns() {
    for bench in benches().await {
        let mut senders = Vec::new();
        for (workspace, files) in [(1, 4), (2, 1), (3, 2)] {
            for number in 0..files {
                let sent = parts(&format!("{workspace}/{number}"), "a.html", &[b"<p>text</p>"]);
                let sent = stream::iter(sent.into_iter().map(Ok));
                bench.ingests.file(&caller(workspace), sent).await.unwrap();
            }
        }
        while let Some(job) = bench.extractions.claim().await.unwrap() {
            senders.push(job.place.workspace);
            bench.extractions.take(&job).await;
        }
        let expected = [1, 2, 3, 1, 3, 1, 1].map(workspace);
        assert_eq!(senders, expected, "{}", bench.test.engine);
    }
}
