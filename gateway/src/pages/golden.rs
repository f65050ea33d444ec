//! `/w/{id}/golden`: golden questions with their current results; pinning and unpinning them.

use cairn_chassis::status::Problem;
use cairn_proto::domain::{DocumentKind, GoldenOutcome, Permission};
use cairn_proto::ids::{DatabaseId, GoldenQuestionId, RecordId, WorkspaceId};
use cairn_proto::retrieval::v1::{EditEffect, GoldenResult};
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::form::{self, Form};
use super::frame::Page;
use super::notice::Notice;
use super::parts as part;
use super::visitor::Visitor;
use super::{Answer, MEMBER, places, words};
use crate::answers::{EditCheck, GoldenQuestion, GoldenRun, SearchResult};
use crate::class::ORDINARY_BYTES;
use crate::cost::Cost;
use crate::extract::PathIds;
use crate::operations::golden::{self, CreateGoldenQuestion};
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .get(MEMBER.patient().costing(Cost::BULK), "/w/{id}/golden", show)
        .post(MEMBER.up_to(ORDINARY_BYTES), "/w/{id}/golden/pin", pin)
        .post(MEMBER, "/w/{id}/golden/{question}/unpin", unpin)
}

/// The URL of the page.
fn address(workspace: WorkspaceId) -> String {
    format!("/w/{workspace}/golden")
}

async fn show(visitor: Visitor) -> Answer {
    show_page(&visitor, None).await
}

/// The page, with the error of a form.
async fn show_page(visitor: &Visitor, problem: Option<&Problem>) -> Answer {
    let here = visitor.here()?.id;
    let listed = golden::list(&visitor.person).await;
    let run = match &listed {
        Ok(listed) if !listed.is_empty() => Some(golden::run(&visitor.person).await),
        _ => None,
    };
    let body = html! {
        (part::summary(problem, &[]))
        p.quiet { "A golden question is one of which you know what must be found. Pin them from the results of a search: they are asked each time that this page is opened, and the editor of a file can ask them before you save." }
        @match &listed {
            Err(problem) => { p.problem role="alert" { (words::describe(problem)) } }
            Ok(listed) if listed.is_empty() => (part::empty("No question is pinned yet.", &html! { p { a href={ "/w/" (here) "/search" } { "Search" } } })),
            Ok(listed) => (answers(here, listed, run.as_ref(), visitor.may(Permission::Write))),
        }
    };
    let crumbs = vec![("Search".to_owned(), format!("/w/{here}/search"))];
    let page = Page::new("Golden questions").crumbs(crumbs);
    let page = if problem.is_some() { page.failed() } else { page };
    Ok(page.show(visitor, &body))
}

fn answers(
    here: WorkspaceId,
    listed: &[GoldenQuestion],
    run: Option<&Result<GoldenRun, Problem>>,
    may_unpin: bool,
) -> Markup {
    let results: &[GoldenResult] = match run {
        Some(Ok(run)) => &run.results,
        _ => &[],
    };
    let passed = results.iter().filter(|result| outcome(result) == GoldenOutcome::Passed).count();
    let rows = html! {
        @for question in listed {
            @let result = results.iter().find(|result| result.question_id == question.id);
            tr {
                th scope="row" { a href=(search_url(here, question)) { bdi { (question.query) } } }
                td { (expected_answer(question)) }
                td { @match result { Some(result) => (outcome_details(result)), None => { span.quiet { "Not asked" } } } }
                td { (part::time(&question.created_at)) " by " bdi { (question.author.name) } }
                td { @if may_unpin { (part::action(&format!("{}/{}/unpin", address(here), question.id), "Delete", &question.query, &[])) } }
            }
        }
    };
    html! {
        @match run {
            Some(Ok(run)) => {
                p role="status" { (passed) " of " (words::count(listed.len() as u64, "golden question finds", "golden questions find")) " what it must." }
                @for note in &run.coverage { p.notice { (words::sentence(&note.message)) } }
            }
            Some(Err(problem)) => { p.problem role="alert" { "They could not be asked: " (words::describe(problem)) } }
            None => {}
        }
        (part::table("Golden questions", &["Question", "Must be found", "Now", "Pinned", ""], &rows))
    }
}

/// The search URL of a question.
fn search_url(here: WorkspaceId, question: &GoldenQuestion) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("q", &question.query).append_pair("strategy", question.strategy.as_str());
    if let Some(folder) = &question.folder_id {
        query.append_pair("folder", folder);
    }
    format!("/w/{here}/search?{}", query.finish())
}

fn expected_answer(question: &GoldenQuestion) -> Markup {
    html! {
        @match &question.document {
            Some(document) => { a href=(pinned_at(question, &document.page)) { bdi { (document.path) } } }
            None => { span.quiet { "What is not there any more" } }
        }
        @if let Some(quote) = &question.quote {
            details { summary { "The passage" } p dir="auto" { (quote) } }
        }
    }
}

/// The link to the pinned lines with their words, if the document's page has lines.
fn pinned_at(question: &GoldenQuestion, page: &str) -> String {
    let stood = question.start_line.zip(question.end_line).zip(question.content_hash.as_deref());
    match stood.filter(|_| places::has_lines(question.kind)) {
        Some(((start, end), hash)) => {
            let quote = places::quoted(question.quote.as_deref().unwrap_or_default());
            format!("{page}?lines={start}-{end}&hash={hash}{quote}#L{start}")
        }
        None => page.to_owned(),
    }
}

fn outcome(result: &GoldenResult) -> GoldenOutcome {
    GoldenOutcome::from_number(result.outcome).unwrap_or_default()
}

fn outcome_details(result: &GoldenResult) -> Markup {
    let (tone, word) = match outcome(result) {
        GoldenOutcome::Passed => (part::Tone::Ok, "Found"),
        GoldenOutcome::OtherPassage => (part::Tone::Warn, "Another passage"),
        GoldenOutcome::Lost => (part::Tone::Wrong, "Not found"),
    };
    html! { (part::badge(tone, word)) @if let Some(place) = result.place { " result " (place) } }
}

/// A passage that can be pinned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passage<'a> {
    pub(super) kind: DocumentKind,
    /// The document.
    pub(super) id: &'a str,
    /// The first and last line, if known.
    pub(super) lines: (Option<u32>, Option<u32>),
    pub(super) content_hash: &'a str,
    /// Empty if the text is unavailable: then any passage of the document matches.
    pub(super) text: &'a str,
}

impl<'a> Passage<'a> {
    /// The passage of a result.
    pub(super) fn of(result: &'a SearchResult) -> Self {
        let citation = &result.citation;
        Self {
            kind: citation.kind,
            id: &citation.id,
            lines: (citation.start_line, citation.end_line),
            content_hash: &citation.content_hash,
            text: &result.content,
        }
    }
}

/// The button that pins a passage as the expected answer of the question.
pub(super) fn pins(here: WorkspaceId, asked: &[(&str, &str)], passage: Passage<'_>) -> Markup {
    let line = |line: Option<u32>| line.map(|line| line.to_string()).unwrap_or_default();
    html! {
        form.inline method="post" action={ (address(here)) "/pin" } {
            @for (name, value) in asked { input type="hidden" name=(name) value=(value); }
            input type="hidden" name="kind" value=(passage.kind.as_str());
            input type="hidden" name="document" value=(passage.id);
            input type="hidden" name="start" value=(line(passage.lines.0));
            input type="hidden" name="end" value=(line(passage.lines.1));
            input type="hidden" name="hash" value=(passage.content_hash);
            input type="hidden" name="quote" value=(passage.text);
            button.link type="submit" { "Pin as golden question" }
        }
    }
}

/// `POST /w/{id}/golden/pin`.
async fn pin(visitor: Visitor, form: Form) -> Answer {
    let here = visitor.here()?.id;
    let pinned = match form::input::<CreateGoldenQuestion>(fields(&form)) {
        Ok(input) => golden::create(&visitor.person, input).await,
        Err(problem) => Err(problem),
    };
    match pinned {
        Ok(_) => Ok(visitor.done(&address(here), &Notice::Saved)),
        Err(problem) if problem.violations.is_empty() => Err(problem.into()),
        Err(problem) => show_page(&visitor, Some(&problem)).await,
    }
}

/// The form as the API's input.
fn fields(form: &Form) -> Value {
    let mut search = Map::new();
    search.insert("query".to_owned(), json!(form.trimmed("q")));
    let mut fields = Map::new();
    let given = |name: &str| Some(form.trimmed(name)).filter(|text| !text.is_empty()).map(ToOwned::to_owned);
    for (name, field) in [("strategy", "strategy"), ("folder", "folderId")] {
        if let Some(text) = given(name) {
            search.insert(field.to_owned(), json!(text));
        }
    }
    if let Some(source) = given("source") {
        search.insert("sourceIds".to_owned(), json!([source]));
    }
    fields.insert("search".to_owned(), Value::Object(search));
    for (name, field) in
        [("kind", "kind"), ("document", "documentId"), ("quote", "quote"), ("hash", "contentHash")]
    {
        if let Some(text) = given(name) {
            fields.insert(field.to_owned(), json!(text));
        }
    }
    for (name, field) in [("start", "startLine"), ("end", "endLine")] {
        if let Some(line) = given(name).and_then(|text| text.parse::<u32>().ok()) {
            fields.insert(field.to_owned(), json!(line));
        }
    }
    Value::Object(fields)
}

/// `POST /w/{id}/golden/{question}/unpin`.
async fn unpin(
    visitor: Visitor,
    PathIds(workspace, question): PathIds<WorkspaceId, GoldenQuestionId>,
) -> Answer {
    golden::delete(&visitor.person, question.to_string()).await?;
    Ok(visitor.done(&address(workspace), &Notice::Removed))
}

/// The effect of an edit on the golden questions, for the editor.
pub(super) async fn effects(visitor: &Visitor, file: String, content: String) -> Markup {
    let person = &visitor.person;
    let (listed, checked) = tokio::join!(golden::list(person), golden::check_text(person, file, content));
    effects_of(&listed, &checked)
}

/// The same for changed values of a record, for its form.
pub(super) async fn effects_of_record(
    visitor: &Visitor,
    (database, record): (DatabaseId, RecordId),
    values: Map<String, Value>,
) -> Markup {
    let person = &visitor.person;
    let checked = golden::check_values(person, database.to_string(), record.to_string(), values);
    let (listed, checked) = tokio::join!(golden::list(person), checked);
    effects_of(&listed, &checked)
}

fn effects_of(listed: &Result<Vec<GoldenQuestion>, Problem>, checked: &Result<EditCheck, Problem>) -> Markup {
    html! {
        h2 { "Golden questions" }
        @match (listed, checked) {
            (Ok(listed), Ok(checked)) => (effect(listed, checked)),
            (Err(problem), _) | (_, Err(problem)) => { p.problem role="alert" { (words::describe(problem)) } }
        }
    }
}

fn effect(listed: &[GoldenQuestion], checked: &EditCheck) -> Markup {
    let all = checked.effects.len();
    let passes =
        |result: Option<&GoldenResult>| result.is_some_and(|result| outcome(result) == GoldenOutcome::Passed);
    let of = |one: &EditEffect| (passes(one.before.as_ref()), passes(one.after.as_ref()));
    let broken: Vec<&EditEffect> = checked.effects.iter().filter(|one| of(one) == (true, false)).collect();
    let gained: Vec<&EditEffect> = checked.effects.iter().filter(|one| of(one) == (false, true)).collect();
    html! {
        @if all == 0 {
            p role="status" { "No golden question is pinned here, so there is nothing to lose." }
        } @else if broken.is_empty() {
            p role="status" { (part::badge(part::Tone::Ok, "Fine")) " None of " (words::count(all as u64, "golden question", "golden questions")) " loses its passage by this edit." }
        } @else {
            p role="status" { (part::badge(part::Tone::Warn, "Look")) " " (broken.len()) " of " (words::count(all as u64, "golden question", "golden questions")) " " @if broken.len() == 1 { "loses" } @else { "lose" } " this passage." }
            (rank_changes(listed, &broken))
        }
        @if !gained.is_empty() {
            p { (words::count(gained.len() as u64, "golden question finds", "golden questions find")) " by this edit what was not found before." }
            (rank_changes(listed, &gained))
        }
        @for note in &checked.coverage { p.notice { (words::sentence(&note.message)) } }
        p.hint { "Nothing is saved by this check." }
    }
}

fn rank_changes(listed: &[GoldenQuestion], effects: &[&EditEffect]) -> Markup {
    html! {
        ul {
            @for effect in effects {
                @if let Some(question) = listed.iter().find(|question| question.id == effect.question_id) {
                    li {
                        bdi { (question.query) } ": "
                        @if let Some(before) = &effect.before { (outcome_details(before)) }
                        " now, then "
                        @if let Some(after) = &effect.after { (outcome_details(after)) }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_pinned_with_all_that_narrowed_it() {
        let form = Form::read(b"q=valve&folder=f&source=s&kind=file&document=d&start=3&end=4&hash=h");
        let expected = json!({
            "search": {"query": "valve", "folderId": "f", "sourceIds": ["s"]},
            "kind": "file", "documentId": "d", "contentHash": "h", "startLine": 3, "endLine": 4,
        });
        assert_eq!(fields(&form), expected);
    }
}
