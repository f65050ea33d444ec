//! Golden questions: what becomes of them now, and by an edit.

use cairn_chassis::identity::{Identity, Permission, Scope};
use cairn_proto::feed::v1::Kind;
use cairn_proto::retrieval::v1 as proto;
use cairn_proto::retrieval::v1::golden_service_client::GoldenServiceClient;
use cairn_proto::retrieval::v1::{GoldenOutcome, SearchContextRequest, Strategy};
use tonic::{Code, Status};
use uuid::Uuid;

use crate::owner::{Bench, request};

const ROLLBACK: &str =
    "# Rolling back\n\nThe rollback window of a release is seven days, and whoever is on call may use it.\n";

fn id(number: u128) -> String {
    Uuid::from_u128(number).hyphenated().to_string()
}

impl Bench {
    fn writer(&self) -> Identity {
        self.owner.issuer.token(self.workspace, &[Permission::Read, Permission::Write], Scope::All)
    }

    fn golden(&self) -> GoldenServiceClient<cairn_chassis::channel::ServiceChannel> {
        GoldenServiceClient::new(self.channel.clone())
    }

    async fn pin(&self, query: &str, document: u128, quote: &str) -> Result<String, Status> {
        let asked = proto::CreateGoldenQuestionRequest {
            search: Some(SearchContextRequest { query: query.to_owned(), ..Default::default() }),
            kind: Kind::File.into(),
            document_id: id(document),
            quote: quote.to_owned(),
            ..Default::default()
        };
        let asked = self.owner.issuer.request_as(&self.writer(), asked).unwrap();
        let pinned = self.golden().create_golden_question(asked).await?.into_inner();
        Ok(pinned.question.unwrap().id)
    }

    async fn run(&self) -> Vec<(GoldenOutcome, Option<u32>)> {
        let asked = self.owner.issuer.request_as(&self.token(), proto::RunGoldenQuestionsRequest {}).unwrap();
        let run = self.golden().run_golden_questions(asked).await.unwrap().into_inner();
        run.results.iter().map(|result| (result.outcome(), result.place)).collect()
    }

    async fn check(&self, document: u128, content: &str) -> Result<proto::CheckEditResponse, Status> {
        let asked = proto::CheckEditRequest {
            file_id: id(document),
            content: content.to_owned(),
            ..proto::CheckEditRequest::default()
        };
        let asked = self.owner.issuer.request_as(&self.token(), asked).unwrap();
        Ok(self.golden().check_edit(asked).await?.into_inner())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_told_before_it_is_saved_as_it_is_found_after_it() {
    let bench = Bench::new().await;
    bench.owner.write(1, "rollback.md", ROLLBACK, None);
    bench.owner.write(
        2,
        "deploy.md",
        "# Deploying\n\nA deployment rolls out to one server after the other.\n",
        None,
    );
    let position = bench.owner.write(3, "bread.md", "# Bread\n\nKnead the dough for ten minutes.\n", None);
    bench.search("rollback", Strategy::Keyword, position).await;
    let passage = "The rollback window of a release is seven days, and whoever is on call may use it.";
    bench.pin("how long is the rollback window", 1, passage).await.unwrap();
    bench.pin("deployment server", 2, "").await.unwrap();
    assert_eq!(bench.run().await, [(GoldenOutcome::Passed, Some(1)), (GoldenOutcome::Passed, Some(1))]);

    // A mended passage is the same; another one is not; and a text about something else is not found.
    let mended = ROLLBACK.replace("seven days", "eight days");
    assert_eq!(bench.check(1, &mended).await.unwrap().broken, 0);
    let other = "# Rolling back\n\nThe rollback window: ask Ada.\n";
    let told = bench.check(1, other).await.unwrap();
    assert_eq!((told.broken, told.effects.len()), (1, 2));
    let after = |told: &proto::CheckEditResponse, place: usize| told.effects[place].after.clone().unwrap();
    assert_eq!(after(&told, 0).outcome(), GoldenOutcome::OtherPassage);
    assert_eq!(after(&told, 1).outcome(), GoldenOutcome::Passed);
    let empty = bench.check(1, "").await.unwrap();
    assert_eq!(after(&empty, 0).outcome(), GoldenOutcome::Lost);
    // Another file may take a question's place.
    let crowd = "# Deployment server\n\nDeployment server deployment server.\n";
    let crowded = bench.check(3, crowd).await.unwrap();
    assert_eq!(after(&crowded, 1).place, Some(2), "{crowded:?}");

    // Nothing was stored, and what was told is what comes of it.
    assert_eq!(bench.run().await, [(GoldenOutcome::Passed, Some(1)), (GoldenOutcome::Passed, Some(1))]);
    let position = bench.owner.write(1, "rollback.md", other, None);
    bench.search("rollback", Strategy::Keyword, position).await;
    let found = bench.run().await;
    assert_eq!(found[0], (GoldenOutcome::OtherPassage, after(&told, 0).place));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_not_pinned_and_not_checked() {
    let bench = Bench::new().await;
    let position = bench.owner.write(1, "rollback.md", ROLLBACK, None);
    bench.search("rollback", Strategy::Keyword, position).await;
    assert_eq!(bench.pin("x", 9, "").await.unwrap_err().code(), Code::NotFound);
    bench.pin("rollback", 1, "").await.unwrap();
    assert_eq!(bench.check(9, "x").await.unwrap_err().code(), Code::NotFound);
    bench.owner.trash_silently(1);
    assert_eq!(bench.check(1, "x").await.unwrap_err().code(), Code::NotFound);
    assert_eq!(bench.run().await, [(GoldenOutcome::Lost, None)]);
    let found =
        bench.search_as(&bench.token(), request("rollback", Strategy::Keyword, position)).await.unwrap();
    assert!(found.results.is_empty());
}
