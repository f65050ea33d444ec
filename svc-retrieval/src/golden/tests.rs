//! Golden questions on every engine.

use cairn_chassis::clock::ManualClock;
use cairn_chassis::entropy::SeededEntropy;
use cairn_chassis::status::Reason;
use cairn_chassis::testing::identity::Issuer;
use cairn_chassis::testing::{TestDb, engines};
use cairn_proto::ids::FolderId;

use super::*;

struct Bench {
    _test: TestDb,
    issuer: Issuer,
    golden: Golden,
}

fn workspace() -> WorkspaceId {
    WorkspaceId(Uuid::from_u128(1))
}

async fn benches() -> Vec<Bench> {
    let mut benches = Vec::new();
    for test in engines().await {
        let issuer = Issuer::new().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
        let ambient = Ambient::new(clock, Arc::new(SeededEntropy::new(7)), issuer.ambient().verifier);
        let db = test.open(store::SCHEMA, store::MIGRATIONS).await.unwrap();
        benches.push(Bench { golden: Golden::new(db, &ambient), issuer, _test: test });
    }
    benches
}

impl Bench {
    fn token(&self, permissions: &[Permission]) -> Identity {
        self.issuer.token(workspace(), permissions, Scope::All)
    }
}

fn request(query: &str, document: u128) -> CreateGoldenQuestionRequest {
    CreateGoldenQuestionRequest {
        search: Some(SearchContextRequest { query: query.to_owned(), explain: true, ..Default::default() }),
        kind: Kind::File.into(),
        document_id: Uuid::from_u128(document).to_string(),
        quote: " a passage \n".to_owned(),
        start_line: 3,
        end_line: 4,
        content_hash: "blake3:00".to_owned(),
    }
}

fn new(query: &str, document: u128) -> NewQuestion {
    NewQuestion::try_from(request(query, document)).unwrap()
}

fn reason(error: Error) -> Reason {
    Problem::from(error).reason
}

#[tokio::test]
async fn what_is_pinned_is_listed_once_until_it_is_unpinned() {
    for bench in benches().await {
        let writer = bench.token(&[Permission::Read, Permission::Write]);
        let first = bench.golden.create(&writer, new("how long", 1)).await.unwrap();
        let again = bench.golden.create(&writer, new("how long", 1)).await.unwrap();
        let other = bench.golden.create(&writer, new("how long", 2)).await.unwrap();
        assert_eq!(again, first);
        assert_eq!(first.search.mode(), Mode::Fast);
        assert!(!first.search.explain);
        assert_eq!((first.expected.quote.as_str(), first.expected.lines), ("a passage", (3, 4)));
        let reader = bench.token(&[Permission::Read]);
        // Both were pinned in one moment.
        let mut both = [first.clone(), other];
        both.sort_by_key(|question| question.id.to_string());
        assert_eq!(bench.golden.list(&reader).await.unwrap(), both);
        bench.golden.delete(&writer, &first.id.to_string()).await.unwrap();
        for gone in [first.id.to_string(), "nonsense".to_owned()] {
            let error = bench.golden.delete(&writer, &gone).await.unwrap_err();
            assert_eq!(reason(error), Reason::NotFound, "{gone}");
        }
        assert_eq!(bench.golden.list(&reader).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn there_are_few_of_them() {
    for bench in benches().await {
        let writer = bench.token(&[Permission::Read, Permission::Write]);
        for number in 0..MAX_QUESTIONS as u128 {
            bench.golden.create(&writer, new("x", number)).await.unwrap();
        }
        let error = bench.golden.create(&writer, new("x", 999)).await.unwrap_err();
        assert_eq!(reason(error), Reason::ValidationError);
        assert_eq!(bench.golden.list(&writer).await.unwrap().len(), MAX_QUESTIONS);
    }
}

#[tokio::test]
async fn they_are_for_those_who_see_the_whole_workspace() {
    for bench in benches().await {
        let reader = bench.token(&[Permission::Read]);
        let refused = bench.golden.create(&reader, new("x", 1)).await.unwrap_err();
        assert_eq!(reason(refused), Reason::Forbidden);
        let folders = Scope::Folders([FolderId(Uuid::from_u128(7))].into());
        let scoped = bench.issuer.token(workspace(), &[Permission::Read, Permission::Write], folders);
        assert_eq!(reason(bench.golden.list(&scoped).await.unwrap_err()), Reason::OutOfScope);
        assert_eq!(reason(bench.golden.create(&scoped, new("x", 1)).await.unwrap_err()), Reason::OutOfScope);
        let elsewhere = WorkspaceId(Uuid::from_u128(2));
        let writer = bench.token(&[Permission::Read, Permission::Write]);
        bench.golden.create(&writer, new("x", 1)).await.unwrap();
        let stranger = bench.issuer.token(elsewhere, &[Permission::Read], Scope::All);
        assert_eq!(bench.golden.list(&stranger).await.unwrap(), []);
    }
}

#[test]
fn all_violations_come_at_once() {
    let wrong = CreateGoldenQuestionRequest {
        kind: Kind::Folder.into(),
        document_id: "x".to_owned(),
        quote: "x".repeat(MAX_QUOTE + 1),
        content_hash: "\0".to_owned(),
        ..request("", 1)
    };
    let Err(Error::Invalid(violations)) = NewQuestion::try_from(wrong) else { panic!("it was accepted") };
    let paths: Vec<&str> = violations.iter().map(|violation| violation.path.as_str()).collect();
    assert_eq!(paths, ["query", "documentId", "kind", "quote", "contentHash"]);
}
