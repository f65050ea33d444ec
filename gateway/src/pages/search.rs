//! `/w/{id}/search`: search with an explanation of the ranking; and scripts over the workspace.

mod absence;
#[cfg(test)]
mod checks;
mod snippets;

use std::sync::Arc;

use axum::extract::State;
use cairn_chassis::status::Problem;
use cairn_proto::domain::{DocumentKind, Mode, Permission, Strategy};
use cairn_proto::retrieval::v1::Trace;
use http::HeaderMap;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::ask_again::{self, AskAgain};
use super::frame::Page;
use super::parts as part;
use super::viewer::Viewer;
use super::visitor::Visitor;
use super::{Answer, MEMBER, folders, form, golden, places, words};
use crate::answers::{Citation, ScriptAnswer, SearchAnswer, SearchResult, Source};
use crate::class::Class;
use crate::cost::Cost;
use crate::error::Error;
use crate::extract::Query;
use crate::operations::Context;
use crate::operations::browse::{self, ExecuteScript};
use crate::operations::search::{self, Freshness, SearchContext};
use crate::operations::sources;
use crate::origin::Origins;
use crate::routes::Routes;
use crate::schema::inputs;

inputs!(SearchQuery);

/// The form names of input fields.
const NAMES: [(&str, &str); 3] = [("query", "q"), ("folderId", "folder"), ("sourceIds", "source")];
const LABELS: [(&str, &str); 5] = [
    ("q", "Question"),
    ("folder", "Folder"),
    ("source", "Source"),
    ("strategy", "Strategy"),
    ("mode", "Mode"),
];
/// May wait for the index, and scripts may scan.
const PATIENT: Class = MEMBER.patient().costing(Cost::SEARCH);

pub(super) fn routes() -> Routes {
    Routes::default().get(PATIENT, "/w/{id}/search", show).get(
        PATIENT,
        "/w/{id}/search/absence",
        absence::show,
    )
}

/// What is asked.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SearchQuery {
    q: Option<String>,
    strategy: Option<String>,
    mode: Option<String>,
    folder: Option<String>,
    /// The id of a connected source: only what comes from there.
    source: Option<String>,
    /// The id of a token: it is searched as that one would.
    #[serde(rename = "as")]
    seen_as: Option<String>,
    /// `script` for scripts.
    view: Option<String>,
    script: Option<String>,
    /// The write that the answer must have seen.
    after: Option<String>,
}

impl SearchQuery {
    fn query(&self) -> &str {
        self.q.as_deref().unwrap_or_default().trim()
    }

    fn folder(&self) -> Option<&str> {
        self.folder.as_deref().filter(|id| !id.is_empty())
    }

    /// What to ask again from the cited texts.
    fn again(&self) -> Option<AskAgain> {
        AskAgain::search(absence::chosen(self).chain(self.seen_as.as_deref().map(|token| ("as", token))))
    }

    fn is_script(&self) -> bool {
        self.view.as_deref() == Some("script")
    }
}

/// `GET /w/{id}/search`.
async fn show(
    State(origins): State<Arc<Origins>>,
    visitor: Visitor,
    Query(search_query): Query<SearchQuery>,
    headers: HeaderMap,
) -> Answer {
    let base = format!("/w/{}/search", visitor.here()?.id);
    let viewer = Viewer::of(&visitor, search_query.seen_as.as_deref()).await?;
    let context = viewer.visitor.context()?;
    let body = if search_query.is_script() {
        let script = search_query.script.as_deref().unwrap_or_default();
        let answer = if script.trim().is_empty() { None } else { Some(run(&context, script).await) };
        script_page(&base, script, answer.as_ref())
    } else {
        let places = FilterChoices::of(&context).await?;
        let answer = if search_query.query().is_empty() {
            None
        } else {
            let found = find(&context, &search_query).await;
            Some(found.map_err(|problem| form::renamed(problem, &NAMES)))
        };
        let copied = || snippets::blocks(&search_query, origins.base_url(&headers).as_deref());
        search_page(&visitor, &search_query, &places, &viewer, answer.as_ref(), copied)?
    };
    let body = html! {
        (part::question_log(visitor.question_log_days()))
        nav.tabs aria-label="Views" {
            a href=(base) aria-current=[(!search_query.is_script()).then_some("page")] { "Search" }
            a href={ (base) "?view=script" } aria-current=[search_query.is_script().then_some("page")] { "Script" }
        }
        (body)
    };
    Ok(Page::new("Search").show(&visitor, &body))
}

/// The choices of the filters.
struct FilterChoices {
    tree: folders::Tree,
    sources: Vec<Source>,
}

impl FilterChoices {
    async fn of(context: &Context) -> Result<Self, Problem> {
        let (tree, sources) = tokio::join!(folders::Tree::of(context), sources::list(context));
        // Without svc-ingest there is no choice of sources.
        Ok(Self { tree: tree?, sources: sources.map(|listed| listed.items).unwrap_or_default() })
    }

    /// The source selector; empty without sources.
    fn source(&self, chosen: Option<&str>) -> Markup {
        if self.sources.is_empty() {
            return html! {};
        }
        let all = part::Choice { value: "", label: "All", is_chosen: chosen.is_none_or(str::is_empty) };
        let each = self.sources.iter().map(|source| part::Choice {
            value: &source.id,
            label: &source.name,
            is_chosen: chosen == Some(source.id.as_str()),
        });
        part::choices("source", "Source", [all].into_iter().chain(each))
    }
}

async fn find(context: &Context, search_query: &SearchQuery) -> Result<SearchAnswer, Problem> {
    let mut fields = fields(search_query);
    fields.insert("explain".to_owned(), json!(true));
    let input = form::input::<SearchContext>(Value::Object(fields))?;
    let freshness = Freshness { after: ask_again::after(search_query.after.as_deref()), wait: None };
    search::search(context, input, freshness).await
}

/// The input of the search.
fn fields(search_query: &SearchQuery) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("query".to_owned(), json!(search_query.query()));
    let chosen = [
        ("strategy", &search_query.strategy),
        ("mode", &search_query.mode),
        ("folderId", &search_query.folder),
    ];
    for (name, value) in chosen {
        if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
            fields.insert(name.to_owned(), json!(value));
        }
    }
    if let Some(source) = search_query.source.as_deref().filter(|source| !source.is_empty()) {
        fields.insert("sourceIds".to_owned(), json!([source]));
    }
    fields
}

async fn run(context: &Context, script: &str) -> Result<ScriptAnswer, Problem> {
    let script = script.replace("\r\n", "\n");
    browse::execute(context, form::input::<ExecuteScript>(json!({"script": script}))?).await
}

fn search_page(
    visitor: &Visitor,
    search_query: &SearchQuery,
    places: &FilterChoices,
    viewer: &Viewer,
    answer: Option<&Result<SearchAnswer, Problem>>,
    copied: impl Fn() -> Markup,
) -> Result<Markup, Error> {
    let here = visitor.here()?.id;
    let base = format!("/w/{here}/search");
    // Pinning needs the right to write.
    let pins = |result: &SearchResult| {
        let may = visitor.may(Permission::Write);
        let question = || absence::chosen(search_query).collect::<Vec<_>>();
        may.then(|| golden::pins(here, &question(), golden::Passage::of(result)))
    };
    Ok(html! {
        form.filter role="search" method="get" action=(base) {
            (question(search_query, places))
            (viewer.field())
            button.primary type="submit" { "Search" }
        }
        (super::viewer::note(&viewer.visitor))
        @match answer {
            None => { p.quiet { "Ask as an agent would: a question, or words. " a href={ "/w/" (here) "/golden" } { "Golden questions" } " are asked again and again." } }
            Some(Err(problem)) => (part::summary(Some(problem), &LABELS)),
            Some(Ok(answer)) => {
                (ask_again::note(&ask_again::after(search_query.after.as_deref())))
                (results(answer, &viewer.visitor, search_query.again().as_ref(), pins))
                (copied())
                (absence::question_form(&base, search_query, answer.results.is_empty()))
            }
        }
    })
}

/// The search form with its current values.
fn question(search_query: &SearchQuery, places: &FilterChoices) -> Markup {
    let strategies = Strategy::ALL.into_iter().map(Strategy::as_str);
    let modes = Mode::ALL.into_iter().map(Mode::as_str);
    html! {
        div.field {
            label for="f-q" { "Question" }
            input #f-q type="search" name="q" value=(search_query.query()) maxlength="10000" autocomplete="off" data-key="/";
        }
        (choice("strategy", "Strategy", strategies, search_query.strategy.as_deref().unwrap_or(Strategy::default().as_str())))
        (choice("mode", "Mode", modes, search_query.mode.as_deref().unwrap_or(Mode::default().as_str())))
        (places.tree.choice("folder", search_query.folder(), None))
        (places.source(search_query.source.as_deref()))
    }
}

fn choice<'a>(name: &'a str, label: &'a str, values: impl Iterator<Item = &'a str>, current: &str) -> Markup {
    let choices = values.map(|value| part::Choice { value, label: value, is_chosen: value == current });
    part::choices(name, label, choices)
}

fn results(
    answer: &SearchAnswer,
    visitor: &Visitor,
    again: Option<&AskAgain>,
    pins: impl Fn(&SearchResult) -> Option<Markup>,
) -> Markup {
    html! {
        p role="status" { (words::count(answer.results.len() as u64, "result", "results")) "." }
        @for note in &answer.coverage { p.notice { (words::sentence(&note.message)) } }
        @if answer.results.is_empty() { p { "Nothing was found. Try other words, or another folder." } }
        @for (index, result) in answer.results.iter().enumerate() { (found(index + 1, result, visitor, again, pins(result))) }
    }
}

fn found(
    place: usize,
    result: &SearchResult,
    visitor: &Visitor,
    again: Option<&AskAgain>,
    pin: Option<Markup>,
) -> Markup {
    let seen = |citation: &Citation, address: Option<String>| {
        linked(citation, address.map(|address| visitor.onward(address)))
    };
    html! {
        section.result aria-label={ "Result " (place) } {
            h2 { (place) ". " (seen(&result.citation, address_of(result, again))) (heading(&result.citation)) }
            pre.passage tabindex="0" dir="auto" { (marked(result)) }
            div.about {
                p {
                    (bar(result.score))
                    " " span.quiet { "Score " (number(result.score)) }
                    @for copy in &result.also_in { " · also in " (seen(copy, address(copy, None, "", again))) }
                }
                @if let Some(trace) = &result.trace { (traced(place, trace)) }
                @if let Some(pin) = pin { (pin) }
            }
        }
    }
}

/// The passage with the matching lines highlighted.
fn marked(result: &SearchResult) -> Markup {
    let first = result.citation.start_line.unwrap_or(1);
    let answers =
        |line: u32| result.highlights.iter().any(|place| place.start_line <= line && line <= place.end_line);
    html! {
        @if let Some(header) = &result.table_header { span.quiet { (header) "\n" } }
        @for (line, text) in (first..).zip(result.content.split_inclusive('\n')) {
            @if answers(line) && !text.trim().is_empty() { mark { (text) } } @else { (text) }
        }
    }
}

/// The location of a result; its words are carried in the URL if the cited text is not kept.
pub(super) fn chip_of(result: &SearchResult, again: Option<&AskAgain>) -> Markup {
    linked(&result.citation, address_of(result, again))
}

fn address_of(result: &SearchResult, again: Option<&AskAgain>) -> Option<String> {
    let citation = &result.citation;
    let quote = match citation.kind {
        DocumentKind::SourceDocument | DocumentKind::Ingested => places::quoted(&result.content),
        DocumentKind::File | DocumentKind::Record | DocumentKind::Memory => String::new(),
    };
    address(citation, result.database_id.as_deref(), &quote, again)
}

/// The location of a passage: a link to its lines if it has a page, for a record that of its database. A file's link
/// carries what to ask again.
pub(super) fn chip(citation: &Citation, database: Option<&str>, again: Option<&AskAgain>) -> Markup {
    linked(citation, address(citation, database, "", again))
}

/// The headings of the passage.
pub(super) fn heading(citation: &Citation) -> Markup {
    let path = citation.heading_path.join(" › ");
    html! { @if !path.is_empty() { " " span.quiet { bdi { (path) } } } }
}

/// The hash of the text and when it was written.
fn stamp(citation: &Citation) -> String {
    const SHORT: usize = 19;
    let hash: String = citation.content_hash.chars().take(SHORT).collect();
    let day = citation.updated_at.as_deref().and_then(|at| at.get(..10)).unwrap_or_default();
    [hash.as_str(), day].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

fn linked(citation: &Citation, address: Option<String>) -> Markup {
    let lines = match (citation.start_line, citation.end_line) {
        (Some(start), Some(end)) => format!(":{start}–{end}"),
        _ => String::new(),
    };
    let label = html! { bdi { (citation.path) } (lines) };
    html! {
        @match address {
            Some(address) => { a.chip href=(address) title=(stamp(citation)) { (label) } }
            None => { span.chip { (label) } }
        }
    }
}

fn address(
    citation: &Citation,
    database: Option<&str>,
    quote: &str,
    again: Option<&AskAgain>,
) -> Option<String> {
    let page = places::of(citation.kind, &citation.id, database)?;
    let again = again.filter(|_| citation.kind == DocumentKind::File);
    let stood = citation.start_line.zip(citation.end_line);
    Some(match stood.filter(|_| places::has_lines(citation.kind)) {
        Some((start, end)) => {
            let lines = format!("{page}?lines={start}-{end}&hash={}{quote}", citation.content_hash);
            format!("{}#L{start}", ask_again::carried(&lines, again))
        }
        None => ask_again::carried(&page, again),
    })
}

/// A score from 0 to 1.
pub(super) fn bar(score: f64) -> Markup {
    let width = format!("{:.1}", if score.is_nan() { 0.0 } else { score.clamp(0.0, 1.0) * 100.0 });
    html! {
        svg.bar role="img" aria-label={ "Score " (number(score)) } viewBox="0 0 100 6" preserveAspectRatio="none" {
            rect.ground x="0" y="0" width="100" height="6" {}
            rect.value x="0" y="0" width=(width) height="6" {}
        }
    }
}

pub(super) fn number(value: f64) -> String {
    format!("{value:.3}")
}

/// The ranking of a result.
fn traced(place: usize, trace: &Trace) -> Markup {
    let rows = html! {
        @for one in &trace.subqueries {
            tr {
                th scope="row" { (list(&one.r#type)) }
                td { bdi { (one.subquery) } }
                td.number { @if one.rank == 0 { "not found" } @else { (one.rank) } }
                td.number { (number(one.raw_score)) }
                td.number { (number(one.contribution)) }
            }
        }
        tr { th scope="row" { "Age" } td {} td {} td {} td.number { (number(trace.bonuses)) } }
        @if let Some(rerank) = trace.rerank { tr { th scope="row" { "Reranker" } td {} td {} td {} td.number { (number(rerank)) } } }
        tr { th scope="row" { "In all" } td {} td {} td {} td.number { (number(trace.r#final)) } }
    };
    html! {
        details {
            summary { "How the score came about" }
            (part::table(&format!("Score of result {place}"), &["List", "Asked", "Rank", "Score there", "Part of the score"], &rows))
        }
    }
}

/// The name of a ranking list for people.
fn list(kind: &str) -> String {
    match kind {
        "lex" | "keyword" => "Words (keyword)".to_owned(),
        "vec" | "semantic" => "Meaning (semantic)".to_owned(),
        "pieces" => "Nearest words".to_owned(),
        "feedback" => "Like the best".to_owned(),
        other => words::capital(other),
    }
}

fn script_page(base: &str, script: &str, answer: Option<&Result<ScriptAnswer, Problem>>) -> Markup {
    html! {
        form method="get" action=(base) {
            input type="hidden" name="view" value="script";
            div.field {
                label for="f-script" { "Script" }
                span.hint #f-script-hint { "Commands of the read-only shell, such as grep -rn limit /files | head." }
                textarea #f-script name="script" rows="4" maxlength="16384" spellcheck="false" autocomplete="off" aria-describedby="f-script-hint" { "\n" (script) }
            }
            div.buttons { button.primary type="submit" { "Run" } }
        }
        @match answer {
            None => {}
            Some(Err(problem)) => (part::summary(Some(problem), &[("script", "Script")])),
            Some(Ok(answer)) => (output(answer)),
        }
    }
}

fn output(answer: &ScriptAnswer) -> Markup {
    html! {
        h2 { "Output" }
        p role="status" {
            @if answer.failed { (part::badge(part::Tone::Wrong, "Failed")) } @else { (part::badge(part::Tone::Ok, "Done")) }
            @if answer.truncated { " " (part::badge(part::Tone::Warn, "Cut")) }
        }
        pre.passage tabindex="0" dir="auto" { (answer.output) }
        @if !answer.citations.is_empty() {
            h2 { "What it read" }
            ul { @for citation in &answer.citations { li { (chip(citation, None, None)) } } }
            @if let Some(more) = answer.uncited { p.quiet { "And " (words::count(u64::from(more), "other range", "other ranges")) " of lines." } }
        }
    }
}

#[cfg(test)]
mod tests {
    use cairn_proto::retrieval::v1::{self as proto, SubqueryTrace};

    use super::*;
    use crate::answers::Links;

    #[test]
    fn only_pages_that_have_lines_are_asked_for_them() {
        let address = |kind: DocumentKind| {
            let location = proto::Location { start_line: 2, end_line: 3, ..proto::Location::default() };
            let citation = proto::Citation {
                id: "i".to_owned(),
                kind: kind.into(),
                content_hash: "blake3:1".to_owned(),
                location: Some(location),
                ..proto::Citation::default()
            };
            let result = proto::Result {
                citation: Some(citation),
                database_id: (kind == DocumentKind::Record).then(|| "d".to_owned()),
                ..proto::Result::default()
            };
            let answer = proto::SearchContextResponse {
                results: vec![result],
                ..proto::SearchContextResponse::default()
            };
            let answer = SearchAnswer::read(answer, &Links::new(None));
            address_of(&answer.results[0], None).unwrap()
        };
        assert_eq!(address(DocumentKind::File), "/file/i?lines=2-3&hash=blake3:1#L2");
        assert_eq!(address(DocumentKind::Ingested), "/documents/i?lines=2-3&hash=blake3:1#L2");
        assert_eq!(address(DocumentKind::Record), "/databases/d?record=i");
        assert_eq!(address(DocumentKind::Memory), "/memories/i");
    }

    #[test]
    fn a_score_is_drawn_and_told() {
        for (score, width) in [(0.5, "50.0"), (7.0, "100.0"), (-1.0, "0.0"), (f64::NAN, "0.0")] {
            let html = bar(score).into_string();
            assert!(html.contains(&format!("width=\"{width}\"")), "{html}");
            assert!(html.contains("role=\"img\" aria-label=\"Score "), "{html}");
        }
    }

    #[test]
    fn a_trace_names_its_lists() {
        let one = |kind: &str, rank| SubqueryTrace {
            subquery: "<b>".to_owned(),
            r#type: kind.to_owned(),
            rank,
            ..SubqueryTrace::default()
        };
        let trace = Trace { subqueries: vec![one("lex", 0), one("vec", 2)], ..Trace::default() };
        let html = traced(1, &trace).into_string();
        for part in ["Words (keyword)", "Meaning (semantic)", "&lt;b&gt;", "not found", "In all"] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }
}
