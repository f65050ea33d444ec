//! The list of questions, and the page shown while the log is off.

use cairn_proto::domain::Role;
use http::request::Parts;
use maud::{Markup, html};
use serde::Deserialize;
use utoipa::ToSchema;

use super::format::{milliseconds, outcome, shortened};
use super::{address, groups, tabs};
use crate::answers::Question;
use crate::extract::Query;
use crate::operations::questions::{self, ListQuestions};
use crate::operations::{Page as Listed, members};
use crate::pages::frame::Page;
use crate::pages::parts::{self, Field, Pages};
use crate::pages::search::number;
use crate::pages::visitor::{Here, Visitor};
use crate::pages::{Answer, marks, words};
use crate::schema::inputs;

inputs!(PageQuery);

const PAGE_SIZE: u32 = 50;

/// The filters of the list.
#[derive(Debug, Default, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageQuery {
    /// A token, app or person, by its id.
    who: Option<String>,
    /// `yes`: only questions that were not answered well.
    unanswered: Option<String>,
    /// A day.
    since: Option<String>,
    text: Option<String>,
    /// `groups` or `gaps`; else the individual questions.
    view: Option<String>,
}

fn given(value: Option<&String>) -> Option<&str> {
    value.map(|value| value.trim()).filter(|value| !value.is_empty())
}

impl PageQuery {
    fn who(&self) -> Option<&str> {
        given(self.who.as_ref())
    }

    fn is_unanswered(&self) -> bool {
        given(self.unanswered.as_ref()).is_some()
    }

    fn is_narrowed(&self) -> bool {
        self.is_unanswered()
            || [&self.who, &self.since, &self.text].iter().any(|value| given(value.as_ref()).is_some())
    }

    /// The query with the same filters, except for the asker.
    fn query(&self) -> Vec<(&str, &str)> {
        let unanswered = self.is_unanswered().then_some("yes");
        [
            ("unanswered", unanswered),
            ("since", given(self.since.as_ref())),
            ("text", given(self.text.as_ref())),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
    }
}

pub(super) async fn show(visitor: Visitor, parts: Parts, Query(asked): Query<PageQuery>) -> Answer {
    if visitor.question_log_days().is_none() {
        return off(&visitor).await;
    }
    if let Some(view @ ("groups" | "gaps")) = asked.view.as_deref() {
        return groups::show(&visitor, view == "gaps").await;
    }
    let trail = marks(&parts);
    let wanted = ListQuestions {
        who: asked.who().map(ToOwned::to_owned),
        unanswered: Some(asked.is_unanswered()),
        since: given(asked.since.as_ref()).map(ToOwned::to_owned),
        text: given(asked.text.as_ref()).map(ToOwned::to_owned),
        limit: Some(PAGE_SIZE),
        cursor: trail.last().cloned(),
    };
    let here = visitor.here()?;
    let (listed, problem) = match questions::list(&visitor.person, wanted).await {
        Ok(listed) => (Some(listed), None),
        Err(problem) if !problem.violations.is_empty() => (None, Some(problem)),
        Err(problem) => return Err(problem.into()),
    };
    let body = html! {
        (parts::question_log(visitor.question_log_days()))
        (tabs(here, ""))
        (parts::summary(problem.as_ref(), &[("since", "Asked since"), ("text", "Question")]))
        (filter(here, &asked))
        @if let Some(listed) = &listed { (table(here, &asked, listed, trail)) }
    };
    let page = Page::new("Questions");
    let page = if problem.is_some() { page.failed() } else { page };
    Ok(page.show(&visitor, &body))
}

fn filter(here: &Here, asked: &PageQuery) -> Markup {
    html! {
        form.filter role="search" method="get" action=(address(here.id)) {
            (Field::text("text", "Question").value(given(asked.text.as_ref()).unwrap_or_default()).optional().render())
            (Field::date("since", "Asked since").value(given(asked.since.as_ref()).unwrap_or_default()).optional().render())
            div.field {
                label for="f-unanswered" { "Answers" }
                select #f-unanswered name="unanswered" {
                    option value="" selected[!asked.is_unanswered()] { "All" }
                    option value="yes" selected[asked.is_unanswered()] { "Nothing found, or nothing good" }
                }
            }
            @if let Some(who) = asked.who() { input type="hidden" name="who" value=(who); }
            button.primary type="submit" { "Show" }
        }
        @if asked.is_narrowed() { p { a href=(address(here.id)) { "Show all questions" } } }
    }
}

fn table(here: &Here, asked: &PageQuery, listed: &Listed<Question>, trail: Vec<String>) -> Markup {
    if listed.items.is_empty() {
        let sentence =
            if asked.is_narrowed() { "No question is like that." } else { "Nothing was asked yet." };
        let action = html! { p { a href={ "/w/" (here.id) "/search" } { "Ask something" } " " a href={ "/w/" (here.id) "/connect" } { "Connect an agent" } } };
        return parts::empty(sentence, &action);
    }
    let base = address(here.id);
    let rows = html! {
        @for question in &listed.items {
            tr {
                th scope="row" { a href={ (base) "/" (question.id) } { bdi { (shortened(&question.query)) } } }
                td { (who(here, asked, question)) }
                td { (outcome(question.outcome)) }
                td.number { (words::grouped(u64::from(question.results))) }
                td.number { @if let Some(score) = question.best_score { (number(score)) } @else { "–" } }
                td.number { (milliseconds(question.took_ms)) }
                td { (parts::time(&question.asked_at)) }
            }
        }
    };
    let columns = ["Question", "Who", "Answer", "Results", "Best score", "Time", "Asked"];
    let mut query = asked.query();
    query.extend(asked.who().map(|who| ("who", who)));
    html! {
        p role="status" { (words::count(listed.total, "question", "questions")) "." }
        (parts::table("Questions", &columns, &rows))
        (parts::pages(&Pages::of(&base, &query, trail, PAGE_SIZE, listed)))
    }
}

/// The asker, linked to all of their questions.
fn who(here: &Here, asked: &PageQuery, question: &Question) -> Markup {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(asked.query()).append_pair("who", &question.asked_by.id);
    let about = match &question.client {
        Some(client) => format!("{} · {client}", question.channel),
        None => question.channel.clone(),
    };
    html! {
        @if asked.who().is_some() { bdi { (question.asked_by.name) } }
        @else { a href={ (address(here.id)) "?" (query.finish()) } { bdi { (question.asked_by.name) } } }
        span.hint { bdi { (about) } }
    }
}

/// The page while the log is off: what it would show, and who can switch it on.
async fn off(visitor: &Visitor) -> Answer {
    let here = visitor.here()?;
    let members = members::list(&visitor.person, here.id).await?;
    let owners: Vec<_> = members.iter().filter(|member| member.role == Some(Role::Owner)).collect();
    let body = html! {
        p { strong { "The question log is off." } " What is asked here is not kept." }
        p { "While it is on, each question of agents and people is kept for 7, 30 or 90 days: the question and its arguments, who asked and with which program, and which passages were answered, by their documents and lines, with scores and the time it took. Texts of documents are not copied. Every member is told that it is on; viewers see their own questions only." }
        @if visitor.owns() {
            p { "As an owner you can switch it on." }
            p { a.button.primary href={ "/w/" (here.id) "/settings#question-log" } { "Open settings" } }
        } @else {
            p {
                "An owner of the workspace can switch it on"
                @for (at, owner) in owners.iter().enumerate() { @if at == 0 { ": " } @else { ", " } bdi { (owner.name) } }
                "."
            }
        }
    };
    Ok(Page::new("Questions").show(visitor, &body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_of_a_page_says_what_is_looked_at() {
        let asked = PageQuery {
            who: Some("t".to_owned()),
            unanswered: Some("yes".to_owned()),
            since: Some(" ".to_owned()),
            text: Some(" roll back ".to_owned()),
            view: None,
        };
        assert_eq!(asked.query(), [("unanswered", "yes"), ("text", "roll back")]);
        assert!(asked.is_narrowed() && !PageQuery::default().is_narrowed());
    }
}
