//! `/w/{id}/questions/{question}`: a question and its passages in the order they were returned.

use cairn_proto::domain::{DocumentKind, Permission, QuestionOutcome, Strategy};
use cairn_proto::ids::{QuestionId, WorkspaceId};
use maud::{Markup, html};
use serde::Deserialize;
use utoipa::ToSchema;

use super::format::{SHORT, location, milliseconds, outcome, shortened};
use super::{address, again};
use crate::answers::{Question, QuestionArguments, QuestionReplay, ReplayedPassage};
use crate::extract::{PathIds, Query};
use crate::operations::questions;
use crate::pages::ask_again::{self, AskAgain};
use crate::pages::frame::Page;
use crate::pages::notice::Notice;
use crate::pages::parts;
use crate::pages::search::{bar, number};
use crate::pages::visitor::Visitor;
use crate::pages::{Answer, golden, words};
use crate::schema::inputs;

inputs!(PageQuery);

/// What is shown beside the original results.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageQuery {
    /// `1`: the current results.
    again: Option<String>,
    /// The write to wait for.
    after: Option<String>,
}

pub(super) async fn show(
    visitor: Visitor,
    PathIds(workspace, id): PathIds<WorkspaceId, QuestionId>,
    Query(asked): Query<PageQuery>,
) -> Answer {
    let replay = questions::get(&visitor.person, id).await?;
    let after = ask_again::after(asked.after.as_deref());
    let again = match asked.again.as_deref() {
        Some("1") => Some(questions::ask_again(&visitor.person, id, after.clone()).await),
        _ => None,
    };
    let travels = AskAgain::Question(id);
    let page = format!("{}/{id}", address(workspace));
    let may_write = visitor.may(Permission::Write);
    // A golden question is about the current state.
    let may_pin = may_write && replay.arguments.as_of.is_none();
    let is_gap = replay.question.outcome != QuestionOutcome::Answered;
    let question = form_urlencoded::Serializer::new(String::new()).extend_pairs(asked_for(&replay)).finish();
    let missing = format!("/w/{workspace}/search/absence?{question}");
    let body = html! {
        (facts(workspace, &replay.question))
        (arguments(&replay))
        (again::show(&page, &replay, again.as_ref(), &after))
        h2 { "What was answered" }
        @for note in &replay.coverage { p.notice { (words::sentence(&note.message)) } }
        @if replay.passages.is_empty() { p { "Nothing was found." } }
        @for (index, passage) in replay.passages.iter().enumerate() {
            (answered(index + 1, passage, &travels, may_pin.then(|| pin(workspace, &replay, passage))))
        }
        p { a href=(missing) { "Something missing?" } }
    };
    let actions = html! {
        @if is_gap && may_write { a.button href={ (address(workspace)) "/write?q=" (id) } { "Write the file" } }
        @if visitor.manages() {
            (parts::opens("delete-question", "Delete", ""))
            (parts::dialog("delete-question", "Delete this question from the log?", &html! { p { "Nobody can bring it back. What was found stays as it is." } }, &format!("{page}/delete"), "Delete question", &html! {}))
        }
    };
    let shown = Page::new("Question").heading(html! { bdi { (shortened(&replay.question.query)) } });
    let crumbs = vec![("Questions".to_owned(), address(workspace))];
    Ok(shown.crumbs(crumbs).actions(actions).show(&visitor, &body))
}

/// `POST /w/{id}/questions/{question}/delete`.
pub(super) async fn delete(
    visitor: Visitor,
    PathIds(workspace, id): PathIds<WorkspaceId, QuestionId>,
) -> Answer {
    questions::delete(&visitor.person, id).await?;
    Ok(visitor.done(&address(workspace), &Notice::Deleted))
}

fn facts(workspace: WorkspaceId, question: &Question) -> Markup {
    let asker = &question.asked_by;
    let kind = match asker.kind.as_str() {
        "token" => "a token",
        "grant" => "an app",
        "user" => "a person",
        _ => "a service",
    };
    html! {
        dl.facts {
            @if question.query.chars().nth(SHORT).is_some() { dt { "Question" } dd { bdi { (question.query) } } }
            dt { "Asked by" }
            dd { a href={ (address(workspace)) "?who=" (asker.id) } { bdi { (asker.name) } } ", " (kind) }
            dt { "Over" }
            dd { (question.channel) @if let Some(client) = &question.client { ", by " bdi { (client) } } }
            dt { "Asked" } dd { (parts::time(&question.asked_at)) }
            dt { "Answer" } dd { (outcome(question.outcome)) " " (words::count(u64::from(question.results), "result", "results")) }
            @if let Some(score) = question.best_score { dt { "Best score" } dd { (number(score)) } }
            dt { "Time" } dd { (milliseconds(question.took_ms)) }
        }
    }
}

fn arguments(replay: &QuestionReplay) -> Markup {
    let rows = rows(&replay.arguments);
    html! {
        h2 { "Arguments" }
        @if rows.is_empty() && replay.arguments.searches.is_empty() {
            p.quiet { "None besides the question: everything was as it is when nothing is said." }
        } @else {
            dl.facts {
                @for (name, value) in &rows { dt { code { (name) } } dd { bdi { (value) } } }
                @for search in &replay.arguments.searches {
                    dt { code { "searches" } } dd { (search.r#type.as_str()) ": " bdi { (search.text) } }
                }
            }
        }
        @if replay.shortened { p.notice { "The arguments were longer than what is kept; their ends are left out." } }
    }
}

/// The arguments by their names in requests.
fn rows(given: &QuestionArguments) -> Vec<(&'static str, String)> {
    let lists = [
        ("sourceIds", given.source_ids.join(", ")),
        ("tags", given.tags.join(", ")),
        ("kinds", given.kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ")),
    ];
    let single = [
        ("sourceId", given.source_id.clone()),
        ("strategy", given.strategy.map(|strategy| strategy.as_str().to_owned())),
        ("mode", given.mode.map(|mode| mode.as_str().to_owned())),
        ("folderId", given.folder_id.clone()),
        ("updatedAfter", given.updated_after.clone()),
        ("updatedBefore", given.updated_before.clone()),
        ("limit", given.limit.map(|limit| limit.to_string())),
        ("minScore", given.min_score.map(|score| score.to_string())),
        ("tokenBudget", given.token_budget.map(|budget| budget.to_string())),
        ("asOf", given.as_of.clone()),
    ];
    let single = single.into_iter().filter_map(|(name, value)| Some((name, value?)));
    single.chain(lists.into_iter().filter(|(_, value)| !value.is_empty())).collect()
}

/// The question as parameters of the search page.
fn asked_for(replay: &QuestionReplay) -> Vec<(&str, &str)> {
    let given = &replay.arguments;
    let strategy = given.strategy.map(Strategy::as_str);
    let folder = given.folder_id.as_deref();
    let chosen = [("strategy", strategy), ("folder", folder)];
    let chosen = chosen.into_iter().filter_map(|(name, value)| Some((name, value?)));
    std::iter::once(("q", replay.question.query.as_str())).chain(chosen).collect()
}

/// The button that pins this passage as a golden question; `None` for a document that is gone.
fn pin(workspace: WorkspaceId, replay: &QuestionReplay, passage: &ReplayedPassage) -> Markup {
    let passage_of_then = golden::Passage {
        kind: passage.kind,
        id: &passage.id,
        lines: (Some(passage.start_line), Some(passage.end_line)),
        content_hash: &passage.content_hash,
        text: passage.content.as_deref().unwrap_or_default(),
    };
    html! { @if passage.path.is_some() { (golden::pins(workspace, &asked_for(replay), passage_of_then)) } }
}

fn answered(place: usize, passage: &ReplayedPassage, question: &AskAgain, pin: Option<Markup>) -> Markup {
    html! {
        section.result aria-label={ "Passage " (place) } {
            h3 { (place) ". " (location(passage, Some(question))) }
            @match &passage.content {
                Some(text) => { pre.passage tabindex="0" dir="auto" { (text) } }
                None => { p.quiet { (without_text(passage)) } }
            }
            div.about {
                p {
                    (bar(passage.score)) " " span.quiet { "Score " (number(passage.score)) }
                    " · " code.hash { (passage.content_hash.chars().take(19).collect::<String>()) }
                    @if let Some(version) = passage.version { " · version " (version) }
                }
                @if let Some(pin) = pin { (pin) }
            }
        }
    }
}

const fn without_text(passage: &ReplayedPassage) -> &'static str {
    match (passage.kind, &passage.path) {
        (DocumentKind::File, Some(_)) => {
            "The text of then is not kept any more: the file has no version with it."
        }
        (_, None) => "Its text cannot be shown: it is in trash, or gone, or out of your reach.",
        (_, Some(_)) => "Texts of then are kept for files only; the link leads to what it says now.",
    }
}

#[cfg(test)]
mod tests {
    use cairn_proto::domain::Mode;

    use super::*;

    #[test]
    fn arguments_are_told_by_their_names() {
        let given = QuestionArguments {
            strategy: Some(Strategy::Keyword),
            mode: Some(Mode::Fast),
            limit: Some(3),
            tags: vec!["a".to_owned(), "b".to_owned()],
            ..QuestionArguments::default()
        };
        let rows = rows(&given);
        let names: Vec<_> = rows.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(names, [("strategy", "keyword"), ("mode", "fast"), ("limit", "3"), ("tags", "a, b")]);
    }
}
