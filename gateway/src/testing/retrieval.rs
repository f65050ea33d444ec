//! A fake svc-retrieval: a passage of the one file, and explanations of absence.

use cairn_proto::feed::v1::Kind;
use cairn_proto::retrieval::v1 as proto;
use cairn_proto::retrieval::v1::golden_service_server::GoldenService;
use cairn_proto::retrieval::v1::index_service_server::IndexService;
use cairn_proto::retrieval::v1::search_service_server::SearchService;
use tonic::{Request, Response, Status};

use super::FILE;
use super::console::HOSTILE;

type Answered<T> = Result<Response<T>, Status>;

pub(super) struct Retrieval;

fn citation() -> proto::Citation {
    proto::Citation {
        label: HOSTILE.into(),
        url: format!("/file/{FILE}"),
        kind: Kind::File.into(),
        id: FILE.into(),
        path: format!("/{HOSTILE}"),
        location: Some(proto::Location { start_line: 2, end_line: 3, heading_path: vec![HOSTILE.into()] }),
        content_hash: "blake3:0001".into(),
        ..proto::Citation::default()
    }
}

fn result() -> proto::Result {
    proto::Result {
        content: HOSTILE.into(),
        highlights: vec![proto::Location { start_line: 2, end_line: 2, heading_path: vec![HOSTILE.into()] }],
        score: 0.5,
        citation: Some(citation()),
        document_id: FILE.into(),
        also_in: vec![citation()],
        collapsed: 1,
        ..proto::Result::default()
    }
}

#[tonic::async_trait]
impl SearchService for Retrieval {
    /// `nothing` finds nothing.
    async fn search_context(
        &self,
        request: Request<proto::SearchContextRequest>,
    ) -> Answered<proto::SearchContextResponse> {
        let is_nothing = request.get_ref().query == "nothing";
        let results = if is_nothing { Vec::new() } else { vec![result()] };
        let note = proto::CoverageNote { message: HOSTILE.into(), ..proto::CoverageNote::default() };
        Ok(Response::new(proto::SearchContextResponse {
            results,
            coverage: vec![note],
            mode: proto::Mode::Balanced.into(),
        }))
    }

    async fn query_source(
        &self,
        _: Request<proto::QuerySourceRequest>,
    ) -> Answered<proto::QuerySourceResponse> {
        Err(Status::unimplemented("the pages do not ask for it"))
    }

    /// The file is collapsed; any other document does not exist.
    async fn explain_absence(
        &self,
        request: Request<proto::ExplainAbsenceRequest>,
    ) -> Answered<proto::ExplainAbsenceResponse> {
        let check = |code: &str, verdict: proto::Verdict| proto::AbsenceCheck {
            code: code.into(),
            verdict: verdict.into(),
            message: format!("{code}: {HOSTILE}"),
            advice: HOSTILE.into(),
            ..proto::AbsenceCheck::default()
        };
        if request.get_ref().document_id != FILE {
            let checks =
                vec![check("exists", proto::Verdict::Failed), check("trash", proto::Verdict::Skipped)];
            return Ok(Response::new(proto::ExplainAbsenceResponse { checks, ..Default::default() }));
        }
        let word = |held| proto::SoughtWord { word: HOSTILE.into(), stems: vec![HOSTILE.into()], held };
        let rank =
            |rank| proto::ListRank { list: "lex".into(), query: HOSTILE.into(), rank, of: 9, score: 0.5 };
        let checks = vec![
            check("exists", proto::Verdict::Passed),
            proto::AbsenceCheck {
                words: vec![word(true), word(false)],
                ..check("words", proto::Verdict::Weak)
            },
            proto::AbsenceCheck {
                ranks: vec![rank(0), rank(3)],
                ..check("rank_words", proto::Verdict::Passed)
            },
            proto::AbsenceCheck { copy_of: Some(citation()), ..check("copies", proto::Verdict::Failed) },
        ];
        let document = proto::MissedDocument {
            kind: Kind::File.into(),
            id: FILE.into(),
            title: HOSTILE.into(),
            path: format!("/{HOSTILE}"),
            ..proto::MissedDocument::default()
        };
        Ok(Response::new(proto::ExplainAbsenceResponse {
            document: Some(document),
            checks,
            ..proto::ExplainAbsenceResponse::default()
        }))
    }
}

#[tonic::async_trait]
impl IndexService for Retrieval {
    async fn get_index_status(
        &self,
        _: Request<proto::GetIndexStatusRequest>,
    ) -> Answered<proto::GetIndexStatusResponse> {
        Ok(Response::new(proto::GetIndexStatusResponse::default()))
    }

    async fn get_document_status(
        &self,
        _: Request<proto::GetDocumentStatusRequest>,
    ) -> Answered<proto::GetDocumentStatusResponse> {
        Ok(Response::new(proto::GetDocumentStatusResponse {
            state: proto::DocumentState::Behind.into(),
            content_hash: "blake3:0001".into(),
            indexed_hash: Some("blake3:0002".into()),
            chunks: 3,
            embedded: 2,
            error: None,
        }))
    }

    async fn batch_get_document_states(
        &self,
        request: Request<proto::BatchGetDocumentStatesRequest>,
    ) -> Answered<proto::BatchGetDocumentStatesResponse> {
        let state = proto::DocumentState::Behind.into();
        let documents = request.into_inner().ids.into_iter().map(|id| proto::StateOfDocument { id, state });
        Ok(Response::new(proto::BatchGetDocumentStatesResponse { documents: documents.collect() }))
    }
}

/// The one golden question.
const GOLDEN: &str = "0199c0de-0000-7000-8000-0000000000d1";

fn golden() -> proto::GoldenQuestion {
    proto::GoldenQuestion {
        id: GOLDEN.into(),
        search: Some(proto::SearchContextRequest { query: HOSTILE.into(), ..Default::default() }),
        kind: Kind::File.into(),
        document_id: FILE.into(),
        quote: HOSTILE.into(),
        author_kind: "user".into(),
        author_name: HOSTILE.into(),
        created_at: Some(prost_types::Timestamp { seconds: 1_800_000_000, nanos: 0 }),
        title: Some(HOSTILE.into()),
        path: Some(format!("/{HOSTILE}")),
        url: Some(format!("/file/{FILE}")),
        ..proto::GoldenQuestion::default()
    }
}

fn judged(outcome: proto::GoldenOutcome, place: Option<u32>) -> proto::GoldenResult {
    proto::GoldenResult { question_id: GOLDEN.into(), outcome: outcome.into(), place }
}

#[tonic::async_trait]
impl GoldenService for Retrieval {
    async fn create_golden_question(
        &self,
        request: Request<proto::CreateGoldenQuestionRequest>,
    ) -> Answered<proto::CreateGoldenQuestionResponse> {
        if request.get_ref().document_id != FILE {
            return Err(Status::not_found("there is no such document"));
        }
        Ok(Response::new(proto::CreateGoldenQuestionResponse { question: Some(golden()) }))
    }

    async fn list_golden_questions(
        &self,
        _: Request<proto::ListGoldenQuestionsRequest>,
    ) -> Answered<proto::ListGoldenQuestionsResponse> {
        Ok(Response::new(proto::ListGoldenQuestionsResponse { questions: vec![golden()] }))
    }

    async fn delete_golden_question(
        &self,
        _: Request<proto::DeleteGoldenQuestionRequest>,
    ) -> Answered<proto::DeleteGoldenQuestionResponse> {
        Ok(Response::new(proto::DeleteGoldenQuestionResponse {}))
    }

    async fn run_golden_questions(
        &self,
        _: Request<proto::RunGoldenQuestionsRequest>,
    ) -> Answered<proto::RunGoldenQuestionsResponse> {
        let results = vec![judged(proto::GoldenOutcome::Passed, Some(1))];
        Ok(Response::new(proto::RunGoldenQuestionsResponse { results, coverage: Vec::new() }))
    }

    async fn check_edit(
        &self,
        request: Request<proto::CheckEditRequest>,
    ) -> Answered<proto::CheckEditResponse> {
        let breaks = request.get_ref().content.contains("breaks");
        let after = if breaks { proto::GoldenOutcome::Lost } else { proto::GoldenOutcome::Passed };
        let effect = proto::EditEffect {
            question_id: GOLDEN.into(),
            before: Some(judged(proto::GoldenOutcome::Passed, Some(1))),
            after: Some(judged(after, None)),
        };
        Ok(Response::new(proto::CheckEditResponse {
            effects: vec![effect],
            broken: u32::from(breaks),
            coverage: Vec::new(),
        }))
    }
}
