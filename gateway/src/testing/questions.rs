//! A fake question log with two questions, whose texts are hostile.

use cairn_chassis::status::Problem;
use cairn_proto::feed::v1::Kind;
use cairn_proto::retrieval::v1 as proto;
use cairn_proto::retrieval::v1::question_details::Asked;
use cairn_proto::retrieval::v1::question_service_server::QuestionService;
use cairn_proto::retrieval::v1::search_service_server::SearchService;
use prost_types::Timestamp;
use tonic::{Request, Response, Status};

use super::FILE;
use super::console::HOSTILE;

type Answered<T> = Result<Response<T>, Status>;

/// The answered question.
pub(crate) const ANSWERED: &str = "0199c0de-0000-7000-8000-0000000000e1";
/// The unanswered one.
pub(crate) const UNANSWERED: &str = "0199c0de-0000-7000-8000-0000000000e2";
/// The token that asked both.
pub(crate) const ASKER: &str = "0199c0de-0000-7000-8000-0000000000e3";

pub(crate) struct Questions;

/// The search results when a question is asked again.
pub(crate) struct Searches;

fn question(id: &str, results: u32) -> proto::Question {
    let outcome = match results {
        0 => proto::QuestionOutcome::Unanswered,
        _ => proto::QuestionOutcome::Answered,
    };
    proto::Question {
        id: id.to_owned(),
        asked_at: Some(Timestamp { seconds: 1_800_000_000, nanos: 0 }),
        operation: "search_context".to_owned(),
        query: format!("how {HOSTILE}"),
        principal_kind: "token".to_owned(),
        principal_id: ASKER.to_owned(),
        principal_name: HOSTILE.to_owned(),
        channel: "mcp".to_owned(),
        client: HOSTILE.to_owned(),
        results,
        best_score: (results > 0).then_some(0.93),
        outcome: outcome.into(),
        took_micros: 6_200,
    }
}

fn passage(document_id: &str, hash: &str, path: Option<&str>) -> proto::ReturnedPassage {
    proto::ReturnedPassage {
        kind: Kind::File.into(),
        document_id: document_id.to_owned(),
        content_hash: hash.to_owned(),
        start_line: 1,
        end_line: 2,
        score: 0.93,
        title: path.map(ToOwned::to_owned),
        path: path.map(ToOwned::to_owned),
        database_id: None,
    }
}

fn details() -> proto::QuestionDetails {
    let search = proto::SearchContextRequest {
        query: format!("how {HOSTILE}"),
        limit: 3,
        tags: vec![HOSTILE.to_owned()],
        searches: vec![proto::Subquery { r#type: proto::SubqueryType::Lex.into(), text: HOSTILE.to_owned() }],
        ..proto::SearchContextRequest::default()
    };
    let note = proto::CoverageNote {
        code: "index_behind".to_owned(),
        message: HOSTILE.to_owned(),
        ..proto::CoverageNote::default()
    };
    proto::QuestionDetails {
        asked: Some(Asked::Search(search)),
        shortened: true,
        passages: vec![
            passage(FILE, "blake3:0001", Some(HOSTILE)),
            passage(FILE, "blake3:dead", Some(HOSTILE)),
            passage("0199c0de-0000-7000-8000-00000000ffff", "blake3:0001", None),
        ],
        coverage: vec![note],
    }
}

#[tonic::async_trait]
impl QuestionService for Questions {
    async fn list_questions(
        &self,
        request: Request<proto::ListQuestionsRequest>,
    ) -> Answered<proto::ListQuestionsResponse> {
        let asked = request.into_inner();
        let mut questions = vec![question(UNANSWERED, 0), question(ANSWERED, 3)];
        questions.retain(|one| !asked.unanswered || one.results == 0);
        questions.retain(|one| asked.principal_id.is_empty() || one.principal_id == asked.principal_id);
        Ok(Response::new(proto::ListQuestionsResponse {
            questions,
            next_page_token: "next".to_owned(),
            total_size: 70,
            days: Some(30),
        }))
    }

    async fn get_question(
        &self,
        request: Request<proto::GetQuestionRequest>,
    ) -> Answered<proto::GetQuestionResponse> {
        let id = request.into_inner().id;
        let (question, details) = match id.as_str() {
            ANSWERED => (question(ANSWERED, 3), details()),
            UNANSWERED => (question(UNANSWERED, 0), proto::QuestionDetails::default()),
            _ => return Err(Problem::not_found("there is no such question in the log").into()),
        };
        Ok(Response::new(proto::GetQuestionResponse { question: Some(question), details: Some(details) }))
    }

    async fn list_question_groups(
        &self,
        request: Request<proto::ListQuestionGroupsRequest>,
    ) -> Answered<proto::ListQuestionGroupsResponse> {
        let other = proto::Question { query: HOSTILE.to_owned(), ..question(ANSWERED, 0) };
        let gap = proto::QuestionGroup { questions: vec![question(UNANSWERED, 0), other], count: 7, open: 5 };
        let closed = proto::QuestionGroup { questions: vec![question(ANSWERED, 3)], count: 1, open: 0 };
        let mut groups = vec![gap, closed];
        groups.retain(|group| !request.get_ref().gaps || group.open > 0);
        Ok(Response::new(proto::ListQuestionGroupsResponse { groups }))
    }

    async fn delete_questions(
        &self,
        request: Request<proto::DeleteQuestionsRequest>,
    ) -> Answered<proto::DeleteQuestionsResponse> {
        let known = [ANSWERED, UNANSWERED];
        let gone = request.into_inner().ids.iter().filter(|id| known.contains(&id.as_str())).count();
        Ok(Response::new(proto::DeleteQuestionsResponse { deleted: gone as u64 }))
    }

    async fn keep_questions(
        &self,
        _: Request<proto::KeepQuestionsRequest>,
    ) -> Answered<proto::KeepQuestionsResponse> {
        Ok(Response::new(proto::KeepQuestionsResponse::default()))
    }
}

#[tonic::async_trait]
impl SearchService for Searches {
    async fn search_context(
        &self,
        request: Request<proto::SearchContextRequest>,
    ) -> Answered<proto::SearchContextResponse> {
        let asked = request.into_inner();
        let result = |id: &str, hash: &str| proto::Result {
            content: asked.query.clone(),
            score: 0.5,
            citation: Some(proto::Citation {
                kind: Kind::File.into(),
                id: id.to_owned(),
                path: HOSTILE.to_owned(),
                content_hash: hash.to_owned(),
                location: Some(proto::Location { start_line: 1, end_line: 4, heading_path: Vec::new() }),
                ..proto::Citation::default()
            }),
            ..proto::Result::default()
        };
        let results = vec![result(UNANSWERED, "blake3:01"), result(FILE, "blake3:0001")];
        Ok(Response::new(proto::SearchContextResponse { results, ..proto::SearchContextResponse::default() }))
    }

    async fn query_source(
        &self,
        _: Request<proto::QuerySourceRequest>,
    ) -> Answered<proto::QuerySourceResponse> {
        Err(Status::unimplemented(""))
    }

    async fn explain_absence(
        &self,
        _: Request<proto::ExplainAbsenceRequest>,
    ) -> Answered<proto::ExplainAbsenceResponse> {
        Err(Status::unimplemented(""))
    }
}
