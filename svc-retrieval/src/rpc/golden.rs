//! GoldenService.

use std::collections::HashMap;

use cairn_chassis::call::Call;
use cairn_chassis::status::Problem;
use cairn_proto::retrieval::v1 as proto;
use cairn_proto::retrieval::v1::golden_service_server::GoldenService;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use crate::Service;
use crate::golden::{GoldenQuestion, NewQuestion};
use crate::search::{DocumentDetails, Edit, Outcome};

#[tonic::async_trait]
impl GoldenService for Service {
    async fn create_golden_question(
        &self,
        request: Request<proto::CreateGoldenQuestionRequest>,
    ) -> Result<Response<proto::CreateGoldenQuestionResponse>, Status> {
        let identity = self.verifier().authenticate(request.metadata()).await?;
        let call = Call::from_metadata(request.metadata());
        // Who may not pin learns nothing of documents.
        self.golden().require_writer(&identity)?;
        let new = NewQuestion::try_from(request.into_inner())?;
        let named = std::iter::once((new.expected.kind, new.expected.document));
        let known = self.searcher().document_details(&call, named).await?;
        if known.is_empty() {
            let message = "there is no such document, or it is nothing that you may see";
            return Err(Problem::not_found(message).into());
        }
        let question = self.golden().create(&identity, new).await?;
        Ok(Response::new(proto::CreateGoldenQuestionResponse { question: Some(encode(question, &known)) }))
    }

    async fn list_golden_questions(
        &self,
        request: Request<proto::ListGoldenQuestionsRequest>,
    ) -> Result<Response<proto::ListGoldenQuestionsResponse>, Status> {
        let identity = self.verifier().authenticate(request.metadata()).await?;
        let call = Call::from_metadata(request.metadata());
        let questions = self.golden().list(&identity).await?;
        let named = questions.iter().map(|question| (question.expected.kind, question.expected.document));
        let known = self.searcher().document_details(&call, named).await?;
        let questions = questions.into_iter().map(|question| encode(question, &known)).collect();
        Ok(Response::new(proto::ListGoldenQuestionsResponse { questions }))
    }

    async fn delete_golden_question(
        &self,
        request: Request<proto::DeleteGoldenQuestionRequest>,
    ) -> Result<Response<proto::DeleteGoldenQuestionResponse>, Status> {
        let identity = self.verifier().authenticate(request.metadata()).await?;
        self.golden().delete(&identity, &request.get_ref().id).await?;
        Ok(Response::new(proto::DeleteGoldenQuestionResponse {}))
    }

    async fn run_golden_questions(
        &self,
        request: Request<proto::RunGoldenQuestionsRequest>,
    ) -> Result<Response<proto::RunGoldenQuestionsResponse>, Status> {
        let identity = self.verifier().authenticate(request.metadata()).await?;
        let call = Call::from_metadata(request.metadata());
        let questions = self.golden().list(&identity).await?;
        let (outcomes, coverage) = self.searcher().run_golden(&identity, &call, &questions).await?;
        let results =
            questions.iter().zip(outcomes).map(|(question, outcome)| told(question, outcome)).collect();
        Ok(Response::new(proto::RunGoldenQuestionsResponse { results, coverage }))
    }

    async fn check_edit(
        &self,
        request: Request<proto::CheckEditRequest>,
    ) -> Result<Response<proto::CheckEditResponse>, Status> {
        let identity = self.verifier().authenticate(request.metadata()).await?;
        let call = Call::from_metadata(request.metadata());
        let edit = decode_edit(request.into_inner());
        let questions = self.golden().list(&identity).await?;
        let (effects, coverage) = self.searcher().check_edit(&identity, &call, edit, &questions).await?;
        let broken =
            effects.iter().filter(|(before, after)| before.has_passed() && !after.has_passed()).count();
        let effect = |(question, (before, after)): (&GoldenQuestion, (Outcome, Outcome))| proto::EditEffect {
            question_id: question.id.to_string(),
            before: Some(told(question, before)),
            after: Some(told(question, after)),
        };
        Ok(Response::new(proto::CheckEditResponse {
            effects: questions.iter().zip(effects).map(effect).collect(),
            broken: u32::try_from(broken).unwrap_or(u32::MAX),
            coverage,
        }))
    }
}

fn decode_edit(asked: proto::CheckEditRequest) -> Edit {
    let proto::CheckEditRequest { file_id, content, database_id: database, record_id, values_json: values } =
        asked;
    if file_id.is_empty() && !record_id.is_empty() {
        return Edit::Record { database, id: record_id, values };
    }
    Edit::File { id: file_id, content }
}

fn told(question: &GoldenQuestion, outcome: Outcome) -> proto::GoldenResult {
    proto::GoldenResult {
        question_id: question.id.to_string(),
        outcome: outcome.outcome.into(),
        place: outcome.place,
    }
}

fn encode(question: GoldenQuestion, known: &HashMap<Uuid, DocumentDetails>) -> proto::GoldenQuestion {
    let GoldenQuestion { id, created_at, author, search, expected } = question;
    let live = known.get(&expected.document);
    proto::GoldenQuestion {
        id: id.to_string(),
        search: Some(search),
        kind: expected.kind.into(),
        document_id: expected.document.hyphenated().to_string(),
        quote: expected.quote,
        start_line: expected.lines.0,
        end_line: expected.lines.1,
        content_hash: expected.content_hash,
        created_at: Some(created_at.to_proto()),
        author_kind: author.kind,
        author_id: author.id,
        author_name: author.name,
        title: live.map(|live| live.title.clone()),
        path: live.map(|live| live.path.clone()),
        url: live.map(|live| live.url.clone()),
    }
}
