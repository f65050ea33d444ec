//! QuestionService.

use std::collections::HashMap;

use cairn_chassis::call::Call;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::status::Problem;
use cairn_proto::ids::QuestionId;
use cairn_proto::retrieval::v1 as proto;
use cairn_proto::retrieval::v1::question_service_server::QuestionService;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use crate::Service;
use crate::questions::{Group, Question, QuestionFilter};
use crate::search::DocumentDetails;

#[tonic::async_trait]
impl QuestionService for Service {
    async fn list_questions(
        &self,
        request: Request<proto::ListQuestionsRequest>,
    ) -> Result<Response<proto::ListQuestionsResponse>, Status> {
        let identity = self.verifier().authenticate(request.metadata()).await?;
        let asked = request.into_inner();
        let wanted = QuestionFilter {
            principal: asked.principal_id,
            is_unanswered: asked.unanswered,
            since: asked.since.as_ref().map(Timestamp::from_proto),
            text: asked.text,
        };
        let page = (asked.page_size, asked.page_token.as_str());
        let listed = self.questions().list(&identity, wanted, page).await?;
        Ok(Response::new(proto::ListQuestionsResponse {
            questions: listed.items.into_iter().map(encode).collect(),
            next_page_token: listed.next,
            total_size: listed.total,
            days: identity.question_log_days,
        }))
    }

    async fn get_question(
        &self,
        request: Request<proto::GetQuestionRequest>,
    ) -> Result<Response<proto::GetQuestionResponse>, Status> {
        let identity = self.verifier().authenticate(request.metadata()).await?;
        let call = Call::from_metadata(request.metadata());
        let no_question = |_| Problem::not_found("there is no such question in the log");
        let id: QuestionId = request.get_ref().id.parse().map_err(no_question)?;
        let (question, mut details) = self.questions().get(&identity, id).await?;
        let documents = details
            .passages
            .iter()
            .filter_map(|passage| Some((passage.kind(), Uuid::try_parse(&passage.document_id).ok()?)));
        let known = self.searcher().document_details(&call, documents).await?;
        for passage in &mut details.passages {
            name(passage, &known);
        }
        Ok(Response::new(proto::GetQuestionResponse {
            question: Some(encode(question)),
            details: Some(details),
        }))
    }

    async fn list_question_groups(
        &self,
        request: Request<proto::ListQuestionGroupsRequest>,
    ) -> Result<Response<proto::ListQuestionGroupsResponse>, Status> {
        let identity = self.verifier().authenticate(request.metadata()).await?;
        let only_gaps = request.get_ref().gaps;
        let groups = self.questions().groups(&identity).await?.into_iter();
        let groups = groups.filter(|group| !only_gaps || group.is_gap()).map(encode_group).collect();
        Ok(Response::new(proto::ListQuestionGroupsResponse { groups }))
    }

    async fn delete_questions(
        &self,
        request: Request<proto::DeleteQuestionsRequest>,
    ) -> Result<Response<proto::DeleteQuestionsResponse>, Status> {
        let identity = self.verifier().authenticate(request.metadata()).await?;
        let deleted = self.questions().delete(&identity, &request.get_ref().ids).await?;
        Ok(Response::new(proto::DeleteQuestionsResponse { deleted }))
    }

    async fn keep_questions(
        &self,
        request: Request<proto::KeepQuestionsRequest>,
    ) -> Result<Response<proto::KeepQuestionsResponse>, Status> {
        let identity = self.verifier().authenticate(request.metadata()).await?;
        let deleted = self.questions().keep(&identity, request.get_ref().days).await?;
        Ok(Response::new(proto::KeepQuestionsResponse { deleted }))
    }
}

/// Sets the document's current title and path, if it exists and the reader may see it.
fn name(passage: &mut proto::ReturnedPassage, known: &HashMap<Uuid, DocumentDetails>) {
    let document = Uuid::try_parse(&passage.document_id).ok().and_then(|id| known.get(&id));
    let Some(document) = document else { return };
    passage.title = Some(document.title.clone());
    passage.path = Some(document.path.clone());
    passage.database_id.clone_from(&document.database_id);
}

fn encode_group(group: Group) -> proto::QuestionGroup {
    proto::QuestionGroup {
        questions: group.questions.into_iter().map(encode).collect(),
        count: group.count,
        open: group.open,
    }
}

fn encode(question: Question) -> proto::Question {
    let asker = question.asker;
    proto::Question {
        id: question.id.to_string(),
        asked_at: Some(question.asked_at.to_proto()),
        operation: question.operation,
        query: question.query,
        principal_kind: asker.kind,
        principal_id: asker.id,
        principal_name: asker.name,
        channel: asker.channel,
        client: asker.client,
        results: u32::try_from(question.results).unwrap_or(u32::MAX),
        best_score: question.best_score,
        outcome: question.outcome.into(),
        took_micros: question.took_micros,
    }
}
