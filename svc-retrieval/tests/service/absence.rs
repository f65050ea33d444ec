//! Why a search does not return a document.

use cairn_chassis::identity::{Identity, Permission, Scope};
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::FolderId;
use cairn_proto::retrieval::v1::search_service_client::SearchServiceClient;
use cairn_proto::retrieval::v1::{
    AbsenceCheck, ExplainAbsenceRequest, ExplainAbsenceResponse, SearchContextRequest, Strategy, Verdict,
};
use uuid::Uuid;

use crate::owner::{Bench, FOLDER, request};

impl Bench {
    async fn explain_as(
        &self,
        identity: &Identity,
        id: u128,
        search: SearchContextRequest,
    ) -> ExplainAbsenceResponse {
        let document_id = Uuid::from_u128(id).hyphenated().to_string();
        let asked = ExplainAbsenceRequest { search: Some(search), document_id };
        let request = self.owner.issuer.request_as(identity, asked).unwrap();
        let mut client = SearchServiceClient::new(self.channel.clone());
        client.explain_absence(request).await.unwrap().into_inner()
    }

    async fn explain(&self, id: u128, search: SearchContextRequest) -> ExplainAbsenceResponse {
        self.explain_as(&self.token(), id, search).await
    }

    fn scoped(&self) -> Identity {
        let folder = FolderId(Uuid::from_u128(FOLDER));
        self.owner.issuer.token(self.workspace, &[Permission::Read], Scope::Folders([folder].into()))
    }
}

fn check<'a>(answer: &'a ExplainAbsenceResponse, code: &str) -> &'a AbsenceCheck {
    answer.checks.iter().find(|check| check.code == code).unwrap()
}

/// The check that keeps the document out; all before it do not.
#[track_caller]
fn cause<'a>(answer: &'a ExplainAbsenceResponse, code: &str) -> &'a AbsenceCheck {
    let failed: Vec<&str> = answer
        .checks
        .iter()
        .filter(|check| check.verdict() == Verdict::Failed)
        .map(|check| check.code.as_str())
        .collect();
    assert_eq!(failed, [code], "{answer:?}");
    assert_eq!(answer.place, None, "{answer:?}");
    let cause = check(answer, code);
    assert!(!cause.advice.is_empty(), "nothing is said to be done: {cause:?}");
    cause
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_found_has_its_place_and_its_ranks() {
    let bench = Bench::new().await;
    bench.owner.write(1, "bees.md", "Bees make honey from nectar.\n", None);
    let position = bench.owner.write(2, "bears.md", "A bear likes honey.\n", None);
    for strategy in [Strategy::Keyword, Strategy::Semantic, Strategy::Hybrid] {
        let found = bench.search("honey nectar", strategy, position).await;
        for result in &found.results {
            let id = Uuid::parse_str(&result.document_id).unwrap().as_u128();
            let told = bench.explain(id, request("honey nectar", strategy, position)).await;
            let place = found.results.iter().position(|one| one.document_id == result.document_id).unwrap();
            assert_eq!(told.place, Some(u32::try_from(place + 1).unwrap()), "{strategy:?}: {told:?}");
            assert!(told.checks.iter().all(|check| check.verdict() != Verdict::Failed), "{told:?}");
            let fused = &check(&told, "rank").ranks[0];
            assert_eq!((fused.list.as_str(), fused.rank), ("fused", u32::try_from(place + 1).unwrap()));
        }
    }
    let bears = bench.explain(2, request("honey nectar", Strategy::Hybrid, position)).await;
    assert_eq!(bears.document.as_ref().unwrap().path, "/bears.md");
    let words = check(&bears, "words");
    assert_eq!(words.verdict(), Verdict::Weak);
    let held: Vec<(&str, bool)> = words.words.iter().map(|word| (word.word.as_str(), word.held)).collect();
    assert_eq!(held, [("honey", true), ("nectar", false)]);
    assert!(words.words.iter().all(|word| !word.stems.is_empty()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_trash_is_said_to_be_there() {
    let bench = Bench::new().await;
    let position = bench.owner.write(1, "one.md", "The launch code is swordfish.\n", None);
    bench.owner.trash_silently(1);
    let told = bench.explain(1, request("swordfish", Strategy::Hybrid, position)).await;
    let trash = cause(&told, "trash");
    assert!(trash.message.contains("“one.md” is in trash"), "{trash:?}");
    assert_eq!(told.document.unwrap().title, "one.md");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_out_of_reach_is_told_as_what_is_not_there() {
    let bench = Bench::new().await;
    bench.owner.state.lock().unwrap().hidden.insert(Uuid::from_u128(1).to_string());
    let position = bench.owner.write(1, "secret.md", "The launch code is swordfish.\n", None);
    bench.owner.write_silently(&Uuid::from_u128(3).to_string(), "gone.md", "Swordfish.\n", None);
    bench.owner.trash_silently(3);
    let asked = || request("swordfish -code", Strategy::Hybrid, position);
    let scoped = bench.scoped();
    let nothing = bench.explain_as(&scoped, 99, asked()).await;
    assert_eq!(check(&nothing, "exists").verdict(), Verdict::Failed);
    assert_eq!(nothing.document, None);
    for id in [1, 3] {
        assert_eq!(bench.explain_as(&scoped, id, asked()).await, nothing, "document {id}");
    }
    // Whoever sees the whole workspace is told of what is nowhere in the same words.
    assert_eq!(bench.explain(99, asked()).await, nothing);
}

#[tokio::test(flavor = "multi_thread")]
async fn excluded_words_and_quotes_are_named() {
    let bench = Bench::new().await;
    bench.owner.write(1, "weekly.md", "The weekly meeting is on Mondays.\n", None);
    let position = bench.owner.write(2, "daily.md", "The daily meeting is short.\n", None);
    let told = bench.explain(1, request("meeting -monday", Strategy::Hybrid, position)).await;
    assert!(check(&told, "excluded").message.contains("-monday"), "{told:?}");
    assert_eq!((told.place, check(&told, "excluded").verdict()), (None, Verdict::Failed));
    let other = bench.explain(2, request("meeting -monday", Strategy::Hybrid, position)).await;
    assert_eq!(other.place, Some(1));
    assert!(check(&other, "excluded").message.contains("-monday"));
    let quoted = bench.explain(1, request("\"daily meeting\"", Strategy::Keyword, position)).await;
    assert_eq!(check(&quoted, "phrases").verdict(), Verdict::Weak);
    assert!(check(&quoted, "phrases").message.contains("“daily meeting”"), "{quoted:?}");
    cause(&quoted, "rank");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bounds_of_a_page_are_told_with_their_numbers() {
    let bench = Bench::new().await;
    let mut position = 0;
    for id in 1..=15 {
        let content = format!("Heron {}at pond {id}.\n", "heron ".repeat(usize::try_from(16 - id).unwrap()));
        position = bench.owner.write(id, &format!("{id}.md"), &content, None);
    }
    let asked = || request("heron", Strategy::Keyword, position);
    let whole = SearchContextRequest { limit: 50, ..asked() };
    let found = bench.search_as(&bench.token(), whole).await.unwrap();
    assert_eq!(found.results.len(), 15);
    let last = found.results.last().unwrap();
    let id = Uuid::parse_str(&last.document_id).unwrap().as_u128();
    let limit = bench.explain(id, SearchContextRequest { limit: 3, ..asked() }).await;
    assert_eq!(cause(&limit, "limit").message, "It would be result 15, and the search asks for 3.");
    let least = SearchContextRequest { limit: 50, min_score: Some(last.score + 0.01), ..asked() };
    let scored = bench.explain(id, least).await;
    assert!(cause(&scored, "min_score").message.contains(&format!("{:.3}", last.score)), "{scored:?}");
    let budget = SearchContextRequest { limit: 50, token_budget: 20, ..asked() };
    let cut = bench.explain(id, budget).await;
    assert!(cause(&cut, "token_budget").message.contains("20"), "{cut:?}");
    assert_eq!(bench.explain(id, SearchContextRequest { limit: 15, ..asked() }).await.place, Some(15));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_names_what_is_shown_instead() {
    let bench = Bench::new().await;
    let text = "The heron stands in the shallow water of the pond and waits until a fish comes near enough \
                to be caught, and then it strikes with its long bill in a moment.\n";
    bench.owner.write(1, "a.md", text, None);
    let position = bench.owner.write(2, "b.md", text, None);
    let found = bench.search("heron fish", Strategy::Keyword, position).await;
    assert_eq!(found.results.len(), 1);
    let shown = Uuid::parse_str(&found.results[0].document_id).unwrap().as_u128();
    let told = bench.explain(3 - shown, request("heron fish", Strategy::Keyword, position)).await;
    let copies = cause(&told, "copies");
    let copy_of = copies.copy_of.as_ref().unwrap();
    assert_eq!(copy_of.id, found.results[0].document_id);
    assert!(copies.message.contains(&copy_of.path), "{copies:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_indexed_as_it_is_now_is_told() {
    let bench = Bench::new().await;
    let position = bench.owner.write(1, "one.md", "A heron stands still.\n", None);
    assert_eq!(bench.search("heron", Strategy::Keyword, position).await.results.len(), 1);
    bench.owner.write_silently(&Uuid::from_u128(1).to_string(), "one.md", "A heron flies.\n", None);
    bench.owner.write_silently(&Uuid::from_u128(2).to_string(), "two.md", "A heron sleeps.\n", None);
    bench.owner.write_silently(&Uuid::from_u128(3).to_string(), "three.md", "\n \n", None);
    let asked = || request("heron", Strategy::Keyword, position);
    for (id, words) in [(1, "older text"), (2, "not taken it in yet"), (3, "no text")] {
        let told = bench.explain(id, asked()).await;
        assert!(cause(&told, "indexed").message.contains(words), "{id}: {told:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_search_is_narrowed_to_is_named() {
    let bench = Bench::new().await;
    let position = bench.owner.write(1, "one.md", "A heron stands still.\n", None);
    let narrowed = SearchContextRequest {
        kinds: vec![Kind::Memory.into()],
        ..request("heron", Strategy::Keyword, position)
    };
    let told = bench.explain(1, narrowed).await;
    assert!(cause(&told, "filters").message.contains("the kinds"), "{told:?}");
    let source = Uuid::from_u128(9).to_string();
    let named =
        SearchContextRequest { source_ids: vec![source], ..request("heron", Strategy::Keyword, position) };
    cause(&bench.explain(1, named).await, "source");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deep_list_tells_how_far_down_it_is() {
    let bench = Bench::new().await;
    let mut position = 0;
    for id in 1..=130 {
        let content =
            format!("Plover {}at shore {id}.\n", "plover ".repeat(usize::try_from(131 - id).unwrap() / 10));
        position = bench.owner.write(id, &format!("{id}.md"), &content, None);
    }
    let told = bench.explain(130, request("plover", Strategy::Keyword, position)).await;
    let words = check(&told, "rank_words");
    assert_eq!(words.verdict(), Verdict::Weak, "{told:?}");
    assert!(words.ranks[0].rank > 100 && words.ranks[0].of == 130, "{words:?}");
    cause(&told, "rank");
}
