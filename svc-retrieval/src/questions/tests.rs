//! The log on every engine: what is kept, for whom, and how it goes.

use cairn_chassis::clock::ManualClock;
use cairn_chassis::entropy::SeededEntropy;
use cairn_chassis::identity::Permission;
use cairn_chassis::status::Reason;
use cairn_chassis::testing::identity::Issuer;
use cairn_chassis::testing::{TestDb, engines};
use cairn_proto::feed::v1::Kind;
use cairn_proto::retrieval::v1::question_details::Asked as AskedMessage;
use cairn_proto::retrieval::v1::{self as proto, SearchContextRequest, Subquery};
use uuid::Uuid;

use super::*;

const NOON: &str = "2026-11-23T12:00:00Z";

struct Bench {
    test: TestDb,
    issuer: Issuer,
    clock: Arc<ManualClock>,
    questions: Questions,
    suspensions: Suspensions,
}

fn workspace() -> WorkspaceId {
    WorkspaceId(Uuid::from_u128(1))
}

fn person(number: u128) -> UserId {
    UserId(Uuid::from_u128(number))
}

async fn benches() -> Vec<Bench> {
    let mut benches = Vec::new();
    for test in engines().await {
        let issuer = Issuer::new().unwrap();
        let clock = Arc::new(ManualClock::new(Timestamp::parse_rfc3339(NOON).unwrap()));
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let ambient =
            Ambient::new(Arc::clone(&shared), Arc::new(SeededEntropy::new(7)), issuer.ambient().verifier);
        let db = test.open(store::SCHEMA, store::MIGRATIONS).await.unwrap();
        let suspensions = Suspensions::open(db.clone(), shared).await.unwrap();
        let questions =
            Questions::new(db, suspensions.clone(), &ambient, Arc::new(StaticRows::open().unwrap()));
        benches.push(Bench { test, issuer, clock, questions, suspensions });
    }
    benches
}

impl Bench {
    /// A token of that person in the workspace, which keeps questions for so many days.
    fn token(&self, of: UserId, days: Option<u32>) -> Identity {
        let mut token = self.issuer.token(workspace(), &[Permission::Read], Scope::All);
        token.principal.id = format!("token-of-{of}");
        Identity { question_log_days: days, on_behalf_of: Some(of), ..token }
    }

    /// That person, with that role, while questions are kept for so many days.
    fn member(&self, id: UserId, role: Role, days: Option<u32>) -> Identity {
        let mut member = self.issuer.member(workspace(), role);
        member.principal.id = id.to_string();
        Identity { question_log_days: days, ..member }
    }

    /// Asks, and is answered with passages of these scores a millisecond later.
    fn ask(&self, identity: &Identity, request: SearchContextRequest, scores: &[f64]) {
        let call = Call::within(Duration::from_secs(9)).with_client("agent/1.0");
        let asking = self.questions.begin(identity, &call, || LoggedRequest::Search(Box::new(request)));
        self.clock.advance(Duration::from_millis(1));
        if let Some(asking) = asking {
            let results: Vec<_> = scores.iter().map(|score| result(*score)).collect();
            asking.answered(&self.questions, &results, &[]);
        }
    }

    async fn write(&self) {
        self.questions.writer.lock().await.finish().await;
    }

    async fn list(&self, identity: &Identity, wanted: QuestionFilter) -> Vec<String> {
        let page = self.questions.list(identity, wanted, (0, "")).await.unwrap();
        page.items.into_iter().map(|question| question.query).collect()
    }
}

fn query(text: &str) -> SearchContextRequest {
    SearchContextRequest { query: text.to_owned(), ..SearchContextRequest::default() }
}

fn result(score: f64) -> proto::Result {
    let citation = proto::Citation {
        kind: Kind::File.into(),
        id: Uuid::from_u128(9).to_string(),
        content_hash: "blake3:00".to_owned(),
        location: Some(proto::Location { start_line: 3, end_line: 5, heading_path: Vec::new() }),
        ..proto::Citation::default()
    };
    proto::Result {
        content: "zqtext".to_owned(),
        score,
        citation: Some(citation),
        ..proto::Result::default()
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Reason {
    Problem::from(outcome.unwrap_err()).reason
}

#[tokio::test]
async fn nothing_is_kept_while_the_log_is_off() {
    for bench in benches().await {
        bench.ask(&bench.token(person(1), None), query("secret plans"), &[0.9]);
        bench.write().await;
        let owner = bench.member(person(1), Role::Owner, Some(30));
        assert_eq!(
            bench.list(&owner, QuestionFilter::default()).await,
            Vec::<String>::new(),
            "{:?}",
            bench.test
        );
    }
}

#[tokio::test]
async fn a_question_is_kept_with_what_was_answered_and_no_text_of_it() {
    for bench in benches().await {
        let token = bench.token(person(1), Some(30));
        let search = Subquery { r#type: proto::SubqueryType::Lex.into(), text: "rollback".to_owned() };
        let request =
            SearchContextRequest { searches: vec![search], limit: 7, ..query("how do we roll back") };
        bench.ask(&token, request.clone(), &[0.9, 0.4]);
        bench.write().await;
        let owner = bench.member(person(2), Role::Owner, Some(30));
        let listed = bench.questions.list(&owner, QuestionFilter::default(), (0, "")).await.unwrap();
        let [question] = listed.items.as_slice() else { panic!("{listed:?}") };
        assert_eq!((question.results, question.best_score), (2, Some(0.9)));
        assert_eq!((question.outcome, question.took_micros), (QuestionOutcome::Answered, 1_000));
        assert_eq!((question.asker.client.as_str(), question.asker.channel.as_str()), ("agent/1.0", "grpc"));

        let (found, details) = bench.questions.get(&owner, question.id).await.unwrap();
        assert_eq!(&found, question);
        assert_eq!(details.asked, Some(AskedMessage::Search(request)));
        assert!(!format!("{details:?}").contains("zqtext"), "no text of a document is kept");
        let places =
            details.passages.iter().map(|passage| (passage.start_line, passage.end_line, passage.score));
        assert_eq!(places.collect::<Vec<_>>(), [(3, 5, 0.9), (3, 5, 0.4)]);
        assert_eq!(details.passages[0].content_hash, "blake3:00");
    }
}

#[tokio::test]
async fn a_viewer_sees_their_own_and_tokens_see_nothing() {
    for bench in benches().await {
        let (mine, theirs) = (person(1), person(2));
        bench.ask(&bench.token(mine, Some(7)), query("of my token"), &[0.9]);
        bench.ask(&bench.member(mine, Role::Viewer, Some(7)), query("of mine"), &[]);
        bench.ask(&bench.token(theirs, Some(7)), query("of theirs"), &[0.9]);
        bench.write().await;
        let viewer = bench.member(mine, Role::Viewer, Some(7));
        assert_eq!(bench.list(&viewer, QuestionFilter::default()).await, ["of mine", "of my token"]);
        let everything = bench.member(mine, Role::Contributor, Some(7));
        let listed = bench.questions.list(&everything, QuestionFilter::default(), (0, "")).await.unwrap();
        assert_eq!(listed.items.len(), 3);
        let hidden = listed.items.iter().find(|question| question.query == "of theirs").unwrap().id;
        assert_eq!(refused(bench.questions.get(&viewer, hidden).await), Reason::NotFound);
        assert!(bench.questions.get(&everything, hidden).await.is_ok());

        let off = bench.member(mine, Role::Owner, None);
        assert_eq!(bench.list(&off, QuestionFilter::default()).await, Vec::<String>::new());
        assert_eq!(refused(bench.questions.get(&off, hidden).await), Reason::NotFound);
        let folders = Scope::Folders(Arc::from(Vec::new()));
        let seen_as = Identity { scope: folders, ..bench.member(mine, Role::Owner, Some(7)) };
        for nobody in [bench.token(mine, Some(7)), seen_as] {
            let listed = bench.questions.list(&nobody, QuestionFilter::default(), (0, "")).await;
            assert_eq!(refused(listed), Reason::Forbidden);
            assert_eq!(refused(bench.questions.get(&nobody, hidden).await), Reason::Forbidden);
        }
    }
}

#[tokio::test]
async fn filters_leave_what_they_say() {
    for bench in benches().await {
        let owner = bench.member(person(1), Role::Owner, Some(90));
        bench.ask(&bench.token(person(1), Some(90)), query("100% of A_B"), &[0.9]);
        bench.clock.advance(DAY);
        let since = Some(bench.clock.now());
        bench.ask(&bench.token(person(2), Some(90)), query("1000 of AxB"), &[0.5]);
        bench.ask(&bench.token(person(2), Some(90)), query("nothing"), &[]);
        bench.write().await;
        let all = ["nothing", "1000 of AxB", "100% of A_B"];
        let principal = format!("token-of-{}", person(2));
        for (wanted, expected) in [
            (QuestionFilter::default(), &all[..]),
            (QuestionFilter { since, ..QuestionFilter::default() }, &all[..2]),
            (QuestionFilter { is_unanswered: true, ..QuestionFilter::default() }, &all[..2]),
            (QuestionFilter { principal, ..QuestionFilter::default() }, &all[..2]),
            (QuestionFilter { text: "100%".to_owned(), ..QuestionFilter::default() }, &all[2..]),
            (QuestionFilter { text: "a_b".to_owned(), ..QuestionFilter::default() }, &all[2..]),
            (QuestionFilter { text: "OF A".to_owned(), ..QuestionFilter::default() }, &all[1..]),
            (QuestionFilter { text: "!".to_owned(), ..QuestionFilter::default() }, &[]),
        ] {
            assert_eq!(bench.list(&owner, wanted.clone()).await, expected, "{wanted:?}");
        }
        let findings = crate::examine(&bench.test.config, &|_: &str| {}).await.unwrap().unwrap();
        assert!(findings.is_empty(), "{:?}", findings.iter().map(ToString::to_string).collect::<Vec<_>>());
        let first = bench.questions.list(&owner, QuestionFilter::default(), (2, "")).await.unwrap();
        assert_eq!((first.items.len(), first.total), (2, 3));
        let second = bench.questions.list(&owner, QuestionFilter::default(), (2, &first.next)).await.unwrap();
        assert_eq!((second.items[0].query.as_str(), second.next.as_str(), second.total), (all[2], "", 3));
        for text in ["x".repeat(MAX_TEXT + 1), "a\0b".to_owned()] {
            let odd = QuestionFilter { text, ..QuestionFilter::default() };
            assert_eq!(refused(bench.questions.list(&owner, odd, (0, "")).await), Reason::ValidationError);
        }
    }
}

#[tokio::test]
async fn managers_delete_and_others_do_not() {
    for bench in benches().await {
        let token = bench.token(person(1), Some(30));
        bench.ask(&token, query("one"), &[]);
        bench.ask(&token, query("two"), &[]);
        bench.write().await;
        let admin = bench.member(person(1), Role::Admin, Some(30));
        let listed = bench.questions.list(&admin, QuestionFilter::default(), (0, "")).await.unwrap();
        let ids = vec![listed.items[0].id.to_string(), "nonsense".to_owned()];
        let editor = bench.member(person(1), Role::Editor, Some(30));
        for other in [&editor, &token] {
            assert_eq!(refused(bench.questions.delete(other, &ids).await), Reason::Forbidden);
        }
        assert_eq!(refused(bench.questions.delete(&admin, &[]).await), Reason::ValidationError);
        assert_eq!(bench.questions.delete(&admin, &ids).await.unwrap(), 1);
        assert_eq!(bench.list(&admin, QuestionFilter::default()).await, ["one"]);
        assert_eq!(bench.questions.delete(&admin, &ids).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn what_is_old_goes_and_switching_off_removes_all() {
    for bench in benches().await {
        let token = |days| bench.token(person(1), days);
        let owner = |days| bench.member(person(1), Role::Owner, days);
        bench.ask(&token(Some(30)), query("old"), &[]);
        bench.clock.advance(DAY * 10);
        bench.ask(&token(Some(30)), query("new"), &[]);
        bench.write().await;
        assert_eq!(bench.list(&owner(Some(30)), QuestionFilter::default()).await, ["new", "old"]);
        assert_eq!(
            bench.list(&owner(Some(7)), QuestionFilter::default()).await,
            ["new"],
            "a shorter time holds at once"
        );
        let now = bench.clock.now();
        assert_eq!(sweep::sweep(&bench.questions.db, &bench.questions.lease, now).await.unwrap(), 0);
        let admin = bench.member(person(1), Role::Admin, Some(7));
        assert_eq!(refused(bench.questions.keep(&admin, None).await), Reason::Forbidden);
        assert_eq!(bench.questions.keep(&owner(Some(7)), Some(7)).await.unwrap(), 1);
        assert_eq!(bench.list(&owner(Some(30)), QuestionFilter::default()).await, ["new"]);

        let later = now.plus(DAY * 8);
        assert_eq!(sweep::sweep(&bench.questions.db, &bench.questions.lease, later).await.unwrap(), 1);
        bench.ask(&token(Some(30)), query("once more"), &[]);
        bench.write().await;
        assert_eq!(bench.questions.keep(&owner(None), None).await.unwrap(), 1);
        assert_eq!(bench.list(&owner(Some(90)), QuestionFilter::default()).await, Vec::<String>::new());
        assert_eq!(store::questions::list_logs(&bench.questions.db, None, 9).await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_workspace_keeps_so_many_and_one_that_is_deleted_none() {
    for bench in benches().await {
        let token = bench.token(person(1), Some(30));
        for number in 0..5 {
            bench.ask(&token, query(&format!("{number}")), &[]);
        }
        bench.write().await;
        let mut tx = bench.questions.db.begin_write().await.unwrap();
        assert_eq!(store::questions::delete_beyond(&mut tx, workspace(), 3, 9).await.unwrap(), 2);
        tx.commit().await.unwrap();
        let owner = bench.member(person(1), Role::Owner, Some(30));
        assert_eq!(bench.list(&owner, QuestionFilter::default()).await, ["4", "3", "2"]);

        bench.suspensions.set(workspace(), true, 1).await.unwrap();
        bench.ask(&token, query("late"), &[]);
        bench.write().await;
        assert_eq!(bench.list(&owner, QuestionFilter::default()).await, ["4", "3", "2"]);
    }
}

#[tokio::test]
async fn groups_are_of_what_the_reader_may_see() {
    for bench in benches().await {
        let token = |of| bench.token(person(of), Some(30));
        bench.ask(&token(1), query("where is the backup"), &[]);
        bench.ask(&token(2), query("where is the backup?"), &[0.5]);
        bench.ask(&token(2), query("who pays for lunch"), &[0.9]);
        bench.write().await;
        let told = async |identity: Identity| {
            let groups = bench.questions.groups(&identity).await.unwrap();
            groups.iter().map(|group| (group.count, group.open, group.is_gap())).collect::<Vec<_>>()
        };
        assert_eq!(
            told(bench.member(person(1), Role::Editor, Some(30))).await,
            [(1, 0, false), (2, 2, true)]
        );
        assert_eq!(told(bench.member(person(1), Role::Viewer, Some(30))).await, [(1, 1, true)]);
        assert_eq!(told(bench.member(person(1), Role::Owner, None)).await, []);
        assert_eq!(refused(bench.questions.groups(&token(1)).await), Reason::Forbidden);
    }
}

#[tokio::test]
async fn long_arguments_are_shortened_and_the_question_is_not() {
    for bench in benches().await {
        let long = "w ".repeat(5_000);
        let search = Subquery { r#type: proto::SubqueryType::Vec.into(), text: long.clone() };
        let request = SearchContextRequest { searches: vec![search; 8], ..query(&long) };
        bench.ask(&bench.token(person(1), Some(30)), request, &[]);
        bench.write().await;
        let owner = bench.member(person(1), Role::Owner, Some(30));
        let listed = bench.questions.list(&owner, QuestionFilter::default(), (0, "")).await.unwrap();
        let (question, details) = bench.questions.get(&owner, listed.items[0].id).await.unwrap();
        assert_eq!(question.query, long);
        assert!(details.shortened && details.encoded_len() < 16 * 1024 + long.len());
    }
}
