//! Formatting of questions and passages on all pages of the log.

use cairn_proto::domain::{DocumentKind, QuestionOutcome};
use maud::{Markup, html};

use crate::answers::ReplayedPassage;
use crate::pages::ask_again::{self, AskAgain};
use crate::pages::parts::{self, Tone};
use crate::pages::places;

/// Longer questions are truncated in lists, in characters.
pub(super) const SHORT: usize = 200;

pub(super) fn shortened(text: &str) -> String {
    let mut letters = text.chars();
    let mut short: String = letters.by_ref().take(SHORT).collect();
    if letters.next().is_some() {
        short.push('…');
    }
    short
}

pub(super) fn outcome(outcome: QuestionOutcome) -> Markup {
    match outcome {
        QuestionOutcome::Answered => parts::badge(Tone::Ok, "Found"),
        QuestionOutcome::Weak => parts::badge(Tone::Warn, "Nothing good"),
        QuestionOutcome::Unanswered => parts::badge(Tone::Wrong, "Nothing found"),
    }
}

pub(super) fn milliseconds(time: f64) -> String {
    format!("{time:.1} ms")
}

/// The location of a passage: a link to its lines while the document exists. A file's link carries the question.
pub(super) fn location(passage: &ReplayedPassage, again: Option<&AskAgain>) -> Markup {
    let Some(path) = &passage.path else {
        return html! { span.quiet { "a document that is no longer there" } };
    };
    let label = html! { bdi { (path) } ":" (passage.start_line) "–" (passage.end_line) };
    let page = places::of(passage.kind, &passage.id, passage.database_id.as_deref());
    html! {
        @match page.map(|page| lines_of(&page, passage, again)) {
            Some(address) => { a.chip href=(address) { (label) } }
            None => { span.chip { (label) } }
        }
    }
}

/// The lines on the page of a file or an ingested document; other pages have no lines.
fn lines_of(page: &str, passage: &ReplayedPassage, again: Option<&AskAgain>) -> String {
    let (first, last) = (passage.start_line, passage.end_line);
    let again = again.filter(|_| passage.kind == DocumentKind::File);
    if !places::has_lines(passage.kind) {
        return page.to_owned();
    }
    let lines = format!("{page}?lines={first}-{last}&hash={}", passage.content_hash);
    format!("{}#L{first}", ask_again::carried(&lines, again))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_questions_are_cut() {
        assert_eq!(shortened("é"), "é");
        assert_eq!(shortened(&"é".repeat(SHORT)).chars().count(), SHORT);
        assert!(shortened(&"é".repeat(SHORT + 1)).ends_with('…'));
    }
}
