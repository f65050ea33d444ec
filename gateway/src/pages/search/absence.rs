//! `/w/{id}/search/absence`: why a search does not return a document, picked by name, link or id.

use cairn_chassis::status::Problem;
use cairn_proto::domain::{DocumentKind, TrashKind, Verdict};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{FilterChoices, LABELS, SearchQuery, address, list, number, question};
use crate::answers::{Absence, AbsenceCheck, Citation, MissedDocument};
use crate::extract::Query;
use crate::operations::absence::{self, ExplainAbsence};
use crate::operations::files::{self, SearchFiles};
use crate::operations::search::Freshness;
use crate::operations::{Context, Paging, trash};
use crate::pages::frame::Page;
use crate::pages::parts as part;
use crate::pages::visitor::Visitor;
use crate::pages::{Answer, form, places, words};
use crate::schema::inputs;

inputs!(PageQuery);

/// The labels of input fields.
const NAMES: [(&str, &str); 4] =
    [("query", "q"), ("folderId", "folder"), ("sourceIds", "source"), ("documentId", "find")];
/// Files offered for a name.
const MAX_OFFERED: usize = 20;
/// Files of a name that are matched against a path.
const MAX_LOOKED_THROUGH: usize = 100;
/// Trashed items that are searched.
const MAX_TRASHED: u32 = 200;

/// The search, and the missing file.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageQuery {
    q: Option<String>,
    strategy: Option<String>,
    mode: Option<String>,
    folder: Option<String>,
    source: Option<String>,
    /// A part of the file's name, its link, or its id.
    find: Option<String>,
    /// The id of the picked file.
    document: Option<String>,
}

impl PageQuery {
    fn into_parts(self) -> (SearchQuery, String, Option<String>) {
        let Self { q, strategy, mode, folder, source, find, document } = self;
        let search_query = SearchQuery { q, strategy, mode, folder, source, ..SearchQuery::default() };
        (search_query, find.unwrap_or_default().trim().to_owned(), document.filter(|id| !id.is_empty()))
    }
}

/// `GET /w/{id}/search/absence`.
pub(super) async fn show(visitor: Visitor, Query(page_query): Query<PageQuery>) -> Answer {
    let context = visitor.context()?;
    let search = format!("/w/{}/search", visitor.here()?.id);
    let (search_query, find, picked) = page_query.into_parts();
    let places = FilterChoices::of(&context).await?;
    let document = picked.or_else(|| named(&find));
    let offers = match document.is_none() && !find.is_empty() {
        true => Some(offers(&visitor, &context, &find).await),
        false => None,
    };
    let of_path = offers.as_ref().and_then(|(offers, _)| offers.iter().find(|offer| offer.path == find));
    let document = document.or_else(|| of_path.map(|offer| offer.id.clone()));
    let offers = offers.filter(|_| document.is_none());
    let told = match &document {
        Some(document) if !search_query.query().is_empty() => {
            let told = explained(&context, &search_query, document).await;
            Some(told.map_err(|problem| form::renamed(problem, &NAMES)))
        }
        _ => None,
    };
    let base = format!("{search}/absence");
    // From now on a file is identified by its path, anything else by its id.
    let known = told.as_ref().and_then(|told| told.as_ref().ok()?.document.as_ref());
    let known = known.filter(|known| known.kind == DocumentKind::File);
    let picked_name = known.map(|known| known.path.clone()).or_else(|| document.clone());
    let body = html! {
        p.quiet { "Every search goes through the same steps. Pick the file that you miss, and see what each of them does to it." }
        form.filter role="search" method="get" action=(base) {
            (question(&search_query, &places))
            div.field {
                label for="f-find" { "File" }
                span.hint #f-find-hint { "A part of its name, its link, or its id." }
                input #f-find type="search" name="find" value=(picked_name.as_deref().unwrap_or(&find)) maxlength="1000" autocomplete="off" aria-describedby="f-find-hint";
            }
            button.primary type="submit" { "Look" }
        }
        @if document.is_some() && search_query.query().is_empty() { p.notice role="status" { "Type the question, too: the checks are about a question and a file." } }
        @match &told {
            None => {}
            Some(Err(problem)) => (part::summary(Some(problem), &[&LABELS[..], &[("find", "File")]].concat())),
            Some(Ok(absence)) => (verdict(absence, &search_query, &search)),
        }
        @if let Some((offers, problems)) = &offers {
            @for problem in problems { p { (words::describe(problem)) } }
            (offered(&base, &search_query, offers))
        }
    };
    let crumbs = vec![("Search".to_owned(), format!("{search}{}", query_of(&search_query, None)))];
    Ok(Page::new("Something missing?").crumbs(crumbs).show(&visitor, &body))
}

/// The form in search results that asks why something is missing.
pub(super) fn question_form(base: &str, search_query: &SearchQuery, is_open: bool) -> Markup {
    html! {
        details open[is_open] {
            summary { "Something missing?" }
            form.filter method="get" action={ (base) "/absence" } {
                @for (name, value) in chosen(search_query) { input type="hidden" name=(name) value=(value); }
                div.field {
                    label for="f-find" { "File" }
                    span.hint #f-find-hint { "A part of its name, its link, or its id." }
                    input #f-find type="search" name="find" maxlength="1000" autocomplete="off" required aria-describedby="f-find-hint";
                }
                button type="submit" { "Why is it not found?" }
            }
        }
    }
}

async fn explained(
    context: &Context,
    search_query: &SearchQuery,
    document: &str,
) -> Result<Absence, Problem> {
    let mut fields = super::fields(search_query);
    fields.insert("documentId".to_owned(), json!(document));
    let input = form::input::<ExplainAbsence>(Value::Object(fields))?;
    absence::explain(context, input, Freshness::default()).await
}

/// The id in a link or a text; for a record its own, not its database's.
fn named(text: &str) -> Option<String> {
    let ids = |text: &str| -> Option<String> {
        let starts = text.char_indices().map(|(at, _)| at);
        let mut found = starts.filter_map(|at| text.get(at..at + 36)).filter_map(|part| {
            let is_plain = part.as_bytes().get(8) == Some(&b'-');
            Uuid::try_parse(part).ok().filter(|_| is_plain)
        });
        found.next_back().map(|id| id.to_string())
    };
    let record = text.split_once("record=").and_then(|(_, record)| ids(record.get(..36)?));
    record.or_else(|| ids(text.split(['?', '#']).next().unwrap_or(text)))
}

/// The parameters of the search, as form fields.
pub(super) fn chosen(search_query: &SearchQuery) -> impl Iterator<Item = (&'static str, &str)> {
    let all = [
        ("q", &search_query.q),
        ("strategy", &search_query.strategy),
        ("mode", &search_query.mode),
        ("folder", &search_query.folder),
        ("source", &search_query.source),
    ];
    all.into_iter().filter_map(|(name, value)| {
        value.as_deref().filter(|value| !value.is_empty()).map(|value| (name, value))
    })
}

/// The parameters as a query string, with the picked file.
fn query_of(search_query: &SearchQuery, document: Option<&str>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(chosen(search_query));
    if let Some(document) = document {
        query.append_pair("document", document);
    }
    let query = query.finish();
    if query.is_empty() { query } else { format!("?{query}") }
}

/// A candidate for a name.
struct Candidate {
    id: String,
    path: String,
    is_trashed: bool,
}

/// Files whose name, or path if it has folders, matches, live ones first. A part that fails does not affect the
/// other.
async fn offers(visitor: &Visitor, context: &Context, typed: &str) -> (Vec<Candidate>, Vec<Problem>) {
    let paging = Paging { limit: Some(MAX_TRASHED), cursor: None };
    let name = typed.rsplit('/').next().unwrap_or(typed);
    let (live, trashed) = tokio::join!(live(context, name), trash::list(&visitor.person, None, paging));
    let (mut offers, mut problems) = (Vec::new(), Vec::new());
    match live {
        Ok(live) => offers.extend(live),
        Err(problem) => problems.push(problem),
    }
    match trashed {
        Ok(trashed) => {
            let words = name.to_lowercase();
            let fitting = trashed.items.into_iter().filter(|item| {
                item.kind == TrashKind::File.number() && item.name.to_lowercase().contains(&words)
            });
            offers.extend(fitting.map(|item| Candidate { id: item.id, path: item.path, is_trashed: true }));
        }
        Err(problem) => problems.push(problem),
    }
    if typed.contains('/') {
        let words = typed.to_lowercase();
        offers.retain(|offer| offer.path.to_lowercase().contains(&words));
    }
    offers.truncate(MAX_OFFERED);
    (offers, problems)
}

async fn live(context: &Context, name: &str) -> Result<Vec<Candidate>, Problem> {
    if name.is_empty() {
        return Ok(Vec::new());
    }
    let input = form::input::<SearchFiles>(json!({"query": name, "limit": MAX_LOOKED_THROUGH}))?;
    let found = files::search(context, input).await?.items.into_iter();
    Ok(found.map(|file| Candidate { id: file.id, path: file.path, is_trashed: false }).collect())
}

fn offered(base: &str, search_query: &SearchQuery, offers: &[Candidate]) -> Markup {
    html! {
        h2 { "Which file?" }
        p role="status" { (words::count(offers.len() as u64, "file has", "files have")) " such a name." }
        ul {
            @for offer in offers {
                li {
                    a href={ (base) (query_of(search_query, Some(&offer.id))) } { bdi { (offer.path) } }
                    @if offer.is_trashed { " " (part::badge(part::Tone::Warn, "In trash")) }
                }
            }
        }
        @if offers.is_empty() { p { "No file here has such a name. If it was removed for good or never came in, it is not in the index either." } }
    }
}

/// Whether the document is found, why not, and every check.
fn verdict(absence: &Absence, search_query: &SearchQuery, search: &str) -> Markup {
    html! {
        h2 { @match &absence.document { Some(document) => (name(document)), None => { "No such file" } } }
        div role="status" {
            @if let Some(place) = absence.place {
                p { (part::badge(part::Tone::Ok, "Found")) " It is result " (place) " of this search." }
            } @else {
                p { (part::badge(part::Tone::Wrong, "Not found")) " " @if let Some(cause) = absence.cause() { (cause.message) } @else { "It is not among the results." } }
                @if let Some(cause) = absence.cause().filter(|cause| !cause.advice.is_empty()) { p { b { "What to do: " } (cause.advice) } }
            }
        }
        @for note in &absence.coverage { p.notice { (words::sentence(&note.message)) } }
        h2 { "What the search does to it" }
        ol.checks { @for check in &absence.checks { li { (checked(check)) } } }
        @if absence.checks.iter().any(|check| check.verdict == Verdict::Skipped) {
            p.quiet { "What was not looked at comes after something that keeps the document out already." }
        }
        p { a.button href={ (search) (query_of(search_query, None)) } { "Back to the results" } }
    }
}

fn name(document: &MissedDocument) -> Markup {
    html! {
        @match places::of(document.kind, &document.id, document.database_id.as_deref()) {
            Some(address) => { a href=(address) { bdi { (document.path) } } }
            None => { bdi { (document.path) } }
        }
    }
}

/// The label of a check.
fn label(code: &str) -> &str {
    match code {
        "exists" => "It exists",
        "trash" => "Trash",
        "reach" => "Reach",
        "source" => "Source and mode",
        "filters" => "Filters",
        "indexed" => "Index",
        "words" => "Words of the question",
        "excluded" => "Excluded words",
        "phrases" => "Quoted words",
        "rank_words" => "Rank by words",
        "rank_meaning" => "Rank by meaning",
        "rank" => "Rank in all",
        "copies" => "Copies",
        "min_score" => "Least score",
        "limit" => "Number of results",
        "token_budget" => "Token budget",
        other => other,
    }
}

fn checked(check: &AbsenceCheck) -> Markup {
    let (tone, word) = match check.verdict {
        Verdict::Passed => (part::Tone::Ok, "Fine"),
        Verdict::Weak => (part::Tone::Warn, "Weak"),
        Verdict::Failed => (part::Tone::Wrong, "In the way"),
        Verdict::Skipped => (part::Tone::Plain, "Not looked at"),
    };
    html! {
        b { (label(&check.code)) } " " (part::badge(tone, word)) " "
        @if check.verdict != Verdict::Skipped { span dir="auto" { (check.message) } }
        @if let Some(copy) = &check.copy_of { " " (shown_instead(copy)) }
        @if !check.advice.is_empty() && check.verdict == Verdict::Weak { span.hint { (check.advice) } }
        @if !check.words.is_empty() {
            details {
                summary { "Word by word" }
                ul {
                    @for word in &check.words {
                        li { bdi { (word.word) } " (looked up as " bdi { (word.stems.join(", ")) } "): " @if word.held { "it is there" } @else { "it is not there" } }
                    }
                }
            }
        }
        @if check.ranks.len() > 1 {
            details {
                summary { "List by list" }
                ul {
                    @for rank in &check.ranks {
                        li {
                            (list(&rank.list)) @if !rank.query.is_empty() { ", " bdi { (rank.query) } } ": "
                            @if rank.rank > 0 { (rank.rank) " of " (rank.of) ", with the score " (number(rank.score)) } @else { "not among " (rank.of) }
                        }
                    }
                }
            }
        }
    }
}

fn shown_instead(copy: &Citation) -> Markup {
    html! {
        @match address(copy, None, "", None) {
            Some(address) => { a href=(address) { bdi { (copy.path) } } }
            None => { bdi { (copy.path) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0199c0de-0000-7000-8000-000000000001";
    const OTHER: &str = "0199c0de-0000-7000-8000-000000000002";

    #[test]
    fn a_file_is_named_by_its_link_or_its_id() {
        let links = [
            ID.to_owned(),
            format!("https://cairn.example/file/{ID}?lines=2-3&hash=blake3:00#L2"),
            format!("/w/{OTHER}/documents/{ID}"),
            format!("/databases/{OTHER}?page=2&record={ID}"),
            format!("  {ID}, please"),
        ];
        for link in links {
            assert_eq!(named(&link).as_deref(), Some(ID), "{link}");
        }
        for name in
            ["weekly.md", "", "0199c0de00007000800000000000000100000000", "ünïcödé ünïcödé ünïcödé ünïcödé"]
        {
            assert_eq!(named(name), None, "{name}");
        }
    }

    #[test]
    fn a_choice_keeps_the_question() {
        let search_query =
            SearchQuery { q: Some("a & b".to_owned()), mode: Some(String::new()), ..SearchQuery::default() };
        assert_eq!(query_of(&search_query, Some(ID)), format!("?q=a+%26+b&document={ID}"));
        assert_eq!(query_of(&SearchQuery::default(), None), "");
        let offers = [Candidate { id: ID.to_owned(), path: "/<b>.md".to_owned(), is_trashed: true }];
        let html = offered("/w/1/search/absence", &search_query, &offers).into_string();
        for part in ["In trash", "/&lt;b&gt;.md", "1 file has such a name."] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }
}
