//! Asking a question again, with the diff of its results.

use cairn_chassis::status::Problem;
use cairn_proto::retrieval::v1::FeedPosition;
use maud::{Markup, html};

use super::format::location;
use crate::answers::{AskedAgain, QuestionReplay, RankChange};
use crate::pages::ask_again::{self, AskAgain};
use crate::pages::parts::{self, Tone};
use crate::pages::search::{bar, chip_of, heading, number};
use crate::pages::words;

/// The button, and the new results after it. The form uses GET, so that the results have a URL; it is no link, which
/// browsers could prefetch. `after` is the write that the search has waited for.
pub(super) fn show(
    page: &str,
    then: &QuestionReplay,
    again: Option<&Result<AskedAgain, Problem>>,
    after: &[FeedPosition],
) -> Markup {
    html! {
        section aria-labelledby="again" {
            h2 #again { "Now" }
            form.inline method="get" action=(page) {
                input type="hidden" name="again" value="1";
                button.primary type="submit" { "Ask again now" }
            }
            @match again {
                None => { p.hint { "The same question with the same arguments, asked by you: you may see more or less than who asked. It is kept as a question of yours." } }
                Some(Err(problem)) => { p.problem role="alert" { (words::describe(problem)) } }
                Some(Ok(now)) => { (ask_again::note(after)) (answered(then, now)) }
            }
        }
    }
}

fn answered(then: &QuestionReplay, now: &AskedAgain) -> Markup {
    let question = AskAgain::parse(&then.question.id);
    let moved = now.ranks.iter().filter(|rank| rank.now != rank.then).count() as u64;
    let rows = html! {
        @for rank in &now.ranks {
            tr {
                td.number { (place(rank.now)) }
                th scope="row" { (passage(then, now, rank, question.as_ref())) }
                td.number { (place(rank.then)) }
                td { (change(rank)) }
            }
        }
    };
    html! {
        p role="status" {
            @if now.ranks.is_empty() { "Nothing is found now either." }
            @else if moved == 0 { "The same passages in the same order." }
            @else { (words::count(moved, "passage", "passages")) " of " (now.ranks.len()) " moved, came or went." }
        }
        @for note in &now.coverage { p.notice { (words::sentence(&note.message)) } }
        @if !now.ranks.is_empty() {
            (parts::table("Now and then", &["Now", "Passage", "Then", "Change"], &rows))
            details {
                summary { "The passages as they are answered now" }
                @for (index, result) in now.results.iter().enumerate() {
                    section.result aria-label={ "Result now " (index + 1) } {
                        h3 { (index + 1) ". " (chip_of(result, question.as_ref())) (heading(&result.citation)) }
                        pre.passage tabindex="0" dir="auto" { (result.content) }
                        p { (bar(result.score)) " " span.quiet { "Score " (number(result.score)) } }
                    }
                }
            }
        }
    }
}

fn place(rank: Option<u32>) -> Markup {
    html! { @match rank { Some(rank) => (rank), None => span.quiet { "–" } } }
}

/// The passage in the new results; in the old ones if it is gone.
fn passage(
    then: &QuestionReplay,
    now: &AskedAgain,
    rank: &RankChange,
    question: Option<&AskAgain>,
) -> Markup {
    let at = |rank: Option<u32>| rank.and_then(|rank| usize::try_from(rank).ok()?.checked_sub(1));
    if let Some(result) = at(rank.now).and_then(|at| now.results.get(at)) {
        return chip_of(result, question);
    }
    at(rank.then)
        .and_then(|at| then.passages.get(at))
        .map(|passage| location(passage, question))
        .unwrap_or_default()
}

fn change(rank: &RankChange) -> Markup {
    let (tone, word) = match (rank.now, rank.then) {
        (Some(now), Some(then)) if now < then => (Tone::Ok, format!("Up {}", then - now)),
        (Some(now), Some(then)) if now > then => (Tone::Warn, format!("Down {}", now - then)),
        (Some(_), Some(_)) => (Tone::Plain, "Same place".to_owned()),
        (Some(_), None) => (Tone::Ok, "New".to_owned()),
        (None, _) => (Tone::Wrong, "Gone".to_owned()),
    };
    html! { (parts::badge(tone, &word)) @if rank.changed { " " (parts::badge(Tone::Plain, "Text changed")) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_in_words() {
        let told = |now, then, changed| change(&RankChange { now, then, changed }).into_string();
        assert!(told(Some(1), Some(3), false).contains("Up 2"));
        assert!(
            told(Some(4), Some(3), true).contains("Down 1")
                && told(Some(4), Some(3), true).contains("Text changed")
        );
        assert!(told(Some(1), None, false).contains("New") && told(None, Some(2), false).contains("Gone"));
        assert!(told(Some(2), Some(2), false).contains("Same place"));
    }
}
