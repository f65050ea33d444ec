//! The question log: queries against a workspace and their results (contract, "What agents did").

use std::collections::{BTreeSet, HashMap};

use cairn_chassis::clock::Timestamp;
use cairn_chassis::status::{Problem, Violation};
use cairn_proto::content::v1 as content;
use cairn_proto::domain::DocumentKind;
use cairn_proto::ids::QuestionId;
use cairn_proto::retrieval::v1 as proto;
use cairn_proto::retrieval::v1::question_details::Asked;
use futures::StreamExt as _;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::person::Person;
use super::{Page, Paging, answered, present};
use crate::answers::{AskedAgain, Question, QuestionGroup, QuestionReplay, ReplayedPassage, SearchAnswer};
use crate::schema::inputs;

inputs!(ListQuestions, ListQuestionGroups);

/// Texts that a replay loads: of how many documents, and how many concurrently.
const MAX_TEXTS: usize = 20;
const CONCURRENT_TEXTS: usize = 4;
/// Pages of a thousand versions each that are searched for a past text.
const MAX_VERSION_PAGES: usize = 3;

/// Which questions, and which part of the list.
#[derive(Debug, Default, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuestions {
    /// Only of this token, app or person, by its id.
    #[param(max_length = 100)]
    #[schema(max_length = 100)]
    pub(crate) who: Option<String>,
    /// Only those that found nothing, or nothing good.
    pub(crate) unanswered: Option<bool>,
    /// Only those that were asked since then: a time, or a day of UTC such as `2026-01-31`.
    pub(crate) since: Option<String>,
    /// Only those that hold this text; upper and lower case are the same.
    #[param(max_length = 200)]
    #[schema(max_length = 200)]
    pub(crate) text: Option<String>,
    /// How many at once: 1 to 200, 50 when left out.
    #[schema(minimum = 1, maximum = 200)]
    #[param(minimum = 1, maximum = 200)]
    pub(crate) limit: Option<u32>,
    /// Where to go on: from the `Link` header of the page before.
    pub(crate) cursor: Option<String>,
}

/// Which groups of questions.
#[derive(Debug, Default, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuestionGroups {
    /// Only gaps: those whose latest question was not answered well.
    pub(crate) gaps: Option<bool>,
}

/// The questions visible to the person, newest first; none while the log is off.
pub(crate) async fn list(person: &Person, filter: ListQuestions) -> Result<Page<Question>, Problem> {
    let page = Paging { limit: filter.limit, cursor: filter.cursor };
    let message = person.call.request(proto::ListQuestionsRequest {
        principal_id: filter.who.unwrap_or_default(),
        unanswered: filter.unanswered.unwrap_or_default(),
        since: filter.since.as_deref().map(since).transpose()?.map(|at| at.to_proto()),
        text: filter.text.unwrap_or_default(),
        page_size: page.limit.unwrap_or_default(),
        page_token: page.cursor.unwrap_or_default(),
    });
    let listed = answered(person.upstreams.questions().list_questions(message).await)?;
    Ok(Page::read(listed.questions, listed.next_page_token, listed.total_size))
}

fn since(text: &str) -> Result<Timestamp, Problem> {
    let day = || Timestamp::parse_rfc3339(&format!("{text}T00:00:00Z"));
    Timestamp::parse_rfc3339(text).or_else(day).ok_or_else(|| {
        let message = "must be a time such as 2026-01-31T12:00:00Z, or a day such as 2026-01-31";
        Problem::validation(vec![Violation::new("since", "invalid_time", message)])
    })
}

/// A question with its results: passages of files with their text at that time, if that version still exists.
pub(crate) async fn get(person: &Person, id: QuestionId) -> Result<QuestionReplay, Problem> {
    let (question, details) = read(person, id).await?;
    let mut replay = QuestionReplay::read(question, details);
    let texts = texts(person, &replay.passages).await;
    for passage in &mut replay.passages {
        if let Some(text) = texts.get(&key(passage)) {
            passage.content = Some(lines(&text.content, passage));
            passage.version = Some(text.version);
        }
    }
    Ok(replay)
}

/// A question without its results.
pub(crate) async fn question(person: &Person, id: QuestionId) -> Result<Question, Problem> {
    Ok(read(person, id).await?.0.into())
}

/// Recent questions clustered by meaning, most recent first; optionally only the gaps.
pub(crate) async fn groups(person: &Person, only_gaps: bool) -> Result<Vec<QuestionGroup>, Problem> {
    let message = person.call.request(proto::ListQuestionGroupsRequest { gaps: only_gaps });
    let listed = answered(person.upstreams.questions().list_question_groups(message).await)?;
    Ok(listed.groups.into_iter().map(Into::into).collect())
}

async fn read(person: &Person, id: QuestionId) -> Result<(proto::Question, proto::QuestionDetails), Problem> {
    let message = person.call.request(proto::GetQuestionRequest { id: id.to_string() });
    let found = answered(person.upstreams.questions().get_question(message).await)?;
    Ok((present(found.question)?, present(found.details)?))
}

/// Asks the same again with the same arguments, as the reading person, and diffs the results. The search waits for
/// the writes `after`. It is logged as a question of its own.
pub(crate) async fn ask_again(
    person: &Person,
    id: QuestionId,
    after: Vec<proto::FeedPosition>,
) -> Result<AskedAgain, Problem> {
    let (_, details) = read(person, id).await?;
    let search = || person.upstreams.search();
    let now = match details.asked {
        Some(Asked::Search(request)) => {
            let request = proto::SearchContextRequest { explain: true, after, ..request };
            answered(search().search_context(person.call.request(request)).await)?
        }
        Some(Asked::SourceQuery(request)) => {
            let found = answered(search().query_source(person.call.request(request)).await)?;
            let (results, coverage) = (found.results, found.coverage);
            proto::SearchContextResponse { results, coverage, ..proto::SearchContextResponse::default() }
        }
        None => return Err(Problem::not_found("what was asked with this question is not kept")),
    };
    let then: Vec<ReplayedPassage> = details.passages.into_iter().map(Into::into).collect();
    Ok(AskedAgain::read(&then, SearchAnswer::read(now, &person.links)))
}

/// Removes a question from the log (owner, admin).
pub(crate) async fn delete(person: &Person, id: QuestionId) -> Result<(), Problem> {
    let message = person.call.request(proto::DeleteQuestionsRequest { ids: vec![id.to_string()] });
    let gone = answered(person.upstreams.questions().delete_questions(message).await)?;
    if gone.deleted == 0 { Err(Problem::not_found("there is no such question in the log")) } else { Ok(()) }
}

/// Applies a new retention to the log at once.
pub(super) async fn keep(person: &Person, days: Option<u32>) -> Result<(), Problem> {
    let message = person.call.request(proto::KeepQuestionsRequest { days });
    answered(person.upstreams.questions().keep_questions(message).await).map(drop)
}

/// The version of a file that has the past text.
struct Text {
    version: u64,
    content: String,
}

fn key(passage: &ReplayedPassage) -> (String, String) {
    (passage.id.clone(), passage.content_hash.clone())
}

/// The past texts that passages were taken from, by file and hash; missing ones are omitted.
async fn texts(person: &Person, passages: &[ReplayedPassage]) -> HashMap<(String, String), Text> {
    // Skips files that are gone or out of reach.
    let is_there = |passage: &&ReplayedPassage| passage.kind == DocumentKind::File && passage.path.is_some();
    let of_files = passages.iter().filter(is_there);
    let needed: BTreeSet<_> = of_files.take(MAX_TEXTS).map(key).collect();
    let found = futures::stream::iter(needed).map(|(file, hash)| async move {
        let text = text(person, &file, &hash).await.ok().flatten()?;
        Some(((file, hash), text))
    });
    found.buffer_unordered(CONCURRENT_TEXTS).filter_map(|found| async move { found }).collect().await
}

async fn text(person: &Person, file: &str, hash: &str) -> Result<Option<Text>, Problem> {
    let mut page_token = String::new();
    for _ in 0..MAX_VERSION_PAGES {
        let request = content::ListFileVersionsRequest { file_id: file.to_owned(), page_size: 0, page_token };
        let request = person.call.request(request);
        let listed = answered(person.upstreams.file_versions().list_file_versions(request).await)?;
        if let Some(found) = listed.versions.iter().find(|version| version.content_hash == hash) {
            let request = content::GetFileVersionRequest { file_id: file.to_owned(), version: found.version };
            let request = person.call.request(request);
            let version = answered(person.upstreams.file_versions().get_file_version(request).await)?.version;
            let content = version.and_then(|version| version.content);
            return Ok(content.map(|content| Text { version: found.version, content }));
        }
        if listed.next_page_token.is_empty() {
            return Ok(None);
        }
        page_token = listed.next_page_token;
    }
    Ok(None)
}

/// The lines of a passage.
fn lines(text: &str, passage: &ReplayedPassage) -> String {
    let first = passage.start_line.saturating_sub(1) as usize;
    let count = (passage.end_line as usize).saturating_sub(first);
    text.lines().skip(first).take(count).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_an_instant_or_a_day() {
        assert_eq!(since("2026-01-31").unwrap(), since("2026-01-31T00:00:00Z").unwrap());
        for odd in ["", "yesterday", "2026-02-30", "2026-01-31T"] {
            assert_eq!(since(odd).unwrap_err().violations[0].path, "since", "{odd}");
        }
    }

    #[test]
    fn a_passage_is_its_lines() {
        let of = |start_line, end_line| {
            let passage =
                proto::ReturnedPassage { start_line, end_line, ..proto::ReturnedPassage::default() };
            lines("a\r\nb\nc", &passage.into())
        };
        assert_eq!(
            (of(1, 1), of(2, 3), of(3, 9), of(4, 4)),
            ("a".into(), "b\nc".into(), "c".into(), String::new())
        );
        assert_eq!((of(0, 0), of(3, 2)), (String::new(), String::new()));
    }
}
