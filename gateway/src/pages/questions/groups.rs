//! Questions clustered by meaning, and gaps (unanswered clusters) that can become files.

use maud::{Markup, html};

use super::address;
use super::format::{outcome, shortened};
use crate::answers::QuestionGroup;
use crate::operations::questions;
use crate::pages::frame::Page;
use crate::pages::visitor::{Here, Visitor};
use crate::pages::{Answer, parts, words};

/// Questions of one gap in an outline.
const MAX_IN_OUTLINE: usize = 10;

/// The clusters, or only the gaps.
pub(super) async fn show(visitor: &Visitor, only_gaps: bool) -> Answer {
    let here = visitor.here()?;
    let listed = questions::groups(&visitor.person, only_gaps).await?;
    let may_write = visitor.may(cairn_proto::domain::Permission::Write);
    let body = html! {
        (parts::question_log(visitor.question_log_days()))
        (super::tabs(here, if only_gaps { "gaps" } else { "groups" }))
        @if only_gaps {
            p { "What was asked and not answered well, by meaning. A gap closes when the question is asked again and finds something good." }
        } @else {
            p { "Questions that ask nearly the same, those asked last first." }
        }
        @if listed.is_empty() {
            @let sentence = if only_gaps { "Every question of late found something good." } else { "Nothing was asked yet." };
            (parts::empty(sentence, &html! { p { a href=(address(here.id)) { "All questions" } } }))
        } @else {
            (table(here, &listed, only_gaps && may_write))
        }
        p.hint { "Of the latest 500 questions." }
    };
    Ok(Page::new("Questions").show(visitor, &body))
}

fn table(here: &Here, listed: &[QuestionGroup], writes: bool) -> Markup {
    let base = address(here.id);
    let rows = html! {
        @for group in listed {
            tr {
                th scope="row" { (questions_of(&base, group)) }
                td { @if let Some(latest) = group.questions.first() { (outcome(latest.outcome)) } }
                td.number { (words::grouped(group.count)) }
                td.number { (words::grouped(group.open)) }
                td { @if let Some(latest) = group.questions.first() { (parts::time(&latest.asked_at)) } }
                @if writes { td { (write(&base, group)) } }
            }
        }
    };
    let columns = ["Question", "Latest answer", "Asked", "Not answered", "Last asked", ""];
    let shown =
        if writes { columns.as_slice() } else { columns.split_last().map_or(&[][..], |(_, rest)| rest) };
    parts::table("Questions of like meaning", shown, &rows)
}

/// The latest question of a cluster, and its other phrasings.
fn questions_of(base: &str, group: &QuestionGroup) -> Markup {
    let Some(latest) = group.questions.first() else { return html! {} };
    let mut others: Vec<_> = group.questions.iter().filter(|one| one.query != latest.query).collect();
    others.dedup_by(|one, other| one.query == other.query);
    html! {
        a href={ (base) "/" (latest.id) } { bdi { (shortened(&latest.query)) } }
        @if !others.is_empty() {
            details {
                summary { "Also asked like this" }
                ul { @for other in others { li { a href={ (base) "/" (other.id) } { bdi { (shortened(&other.query)) } } } } }
            }
        }
    }
}

fn write(base: &str, group: &QuestionGroup) -> Markup {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(group.questions.iter().take(MAX_IN_OUTLINE).map(|question| ("q", &question.id)));
    let about = group.questions.first().map(|question| shortened(&question.query)).unwrap_or_default();
    html! {
        a.button href={ (base) "/write?" (query.finish()) } { "Write the file" span.sr { " for " bdi { (about) } } }
    }
}
