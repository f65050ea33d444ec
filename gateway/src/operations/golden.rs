//! Golden questions: regression tests of a workspace's retrieval, also run against an edit before it is saved.

use cairn_chassis::status::{Problem, Violation};
use cairn_proto::domain::DocumentKind;
use cairn_proto::retrieval::v1 as proto;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::person::Person;
use super::search::{self, SearchContext};
use super::{answered, present};
use crate::answers::{EditCheck, GoldenQuestion, GoldenRun};
use crate::schema::inputs;

inputs!(CreateGoldenQuestion, CheckEdit);

/// A question, and what must be found.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CreateGoldenQuestion {
    /// How it is asked; always in the mode `fast`.
    search: SearchContext,
    kind: DocumentKind,
    /// The document that must be found.
    #[schema(format = "uuid")]
    document_id: String,
    /// The passage that must be found in it, which may be mended later; any will do when left out.
    #[schema(max_length = 8192)]
    quote: Option<String>,
    /// Where the passage stands, from 1.
    #[schema(minimum = 1)]
    start_line: Option<u32>,
    /// Its last line, inclusive.
    #[schema(minimum = 1)]
    end_line: Option<u32>,
    /// Of the text that these lines were counted in.
    #[schema(max_length = 100)]
    content_hash: Option<String>,
}

/// A file and the text that it would have, or a record and values that it would have.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CheckEdit {
    /// With `content`.
    #[schema(format = "uuid")]
    file_id: Option<String>,
    /// The whole text, at most 5 MiB.
    content: Option<String>,
    /// Instead of a file.
    record: Option<RecordEdit>,
}

/// A record, and values that it would have.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RecordEdit {
    #[schema(format = "uuid")]
    database_id: String,
    #[schema(format = "uuid")]
    record_id: String,
    /// By the ids of properties: what is left out stays, null clears.
    #[schema(value_type = Object)]
    values: Map<String, Value>,
}

pub(crate) async fn list(person: &Person) -> Result<Vec<GoldenQuestion>, Problem> {
    let request = person.call.request(proto::ListGoldenQuestionsRequest {});
    let listed = answered(person.upstreams.golden().list_golden_questions(request).await)?;
    Ok(listed.questions.into_iter().map(|question| GoldenQuestion::read(question, &person.links)).collect())
}

pub(crate) async fn create(person: &Person, input: CreateGoldenQuestion) -> Result<GoldenQuestion, Problem> {
    let request = person.call.request(proto::CreateGoldenQuestionRequest {
        search: Some(search::message(input.search)?),
        kind: input.kind.into(),
        document_id: input.document_id,
        quote: input.quote.unwrap_or_default(),
        start_line: input.start_line.unwrap_or_default(),
        end_line: input.end_line.unwrap_or_default(),
        content_hash: input.content_hash.unwrap_or_default(),
    });
    let created = answered(person.upstreams.golden().create_golden_question(request).await)?;
    Ok(GoldenQuestion::read(present(created.question)?, &person.links))
}

pub(crate) async fn delete(person: &Person, id: String) -> Result<(), Problem> {
    let request = person.call.request(proto::DeleteGoldenQuestionRequest { id });
    answered(person.upstreams.golden().delete_golden_question(request).await).map(drop)
}

/// Runs all of them.
pub(crate) async fn run(person: &Person) -> Result<GoldenRun, Problem> {
    let request = person.call.request(proto::RunGoldenQuestionsRequest {});
    answered(person.upstreams.golden().run_golden_questions(request).await)
}

/// Runs all of them before and after the edit.
pub(crate) async fn check(person: &Person, input: CheckEdit) -> Result<EditCheck, Problem> {
    match (input.file_id, input.content, input.record) {
        (Some(file_id), Some(content), None) => check_text(person, file_id, content).await,
        (None, None, Some(record)) => {
            check_values(person, record.database_id, record.record_id, record.values).await
        }
        _ => {
            let message = "give 'fileId' with 'content', or 'record'";
            Err(Problem::validation(vec![Violation::new("fileId", "invalid", message)]))
        }
    }
}

/// The same for a text that is already in memory.
pub(crate) async fn check_text(
    person: &Person,
    file_id: String,
    content: String,
) -> Result<EditCheck, Problem> {
    let edit = proto::CheckEditRequest { file_id, content, ..proto::CheckEditRequest::default() };
    answered(person.upstreams.golden().check_edit(person.call.request(edit)).await)
}

/// The same for changed values of a record.
pub(crate) async fn check_values(
    person: &Person,
    database_id: String,
    record_id: String,
    values: Map<String, Value>,
) -> Result<EditCheck, Problem> {
    let values_json = Value::Object(values).to_string();
    let edit =
        proto::CheckEditRequest { database_id, record_id, values_json, ..proto::CheckEditRequest::default() };
    answered(person.upstreams.golden().check_edit(person.call.request(edit)).await)
}
