//! A citation of a text that is no longer kept: what can be derived from the current text.

use maud::{Markup, html};

use crate::pages::text::{Lines, Nearest, nearest};

/// Limit of a passage's lines.
const MAX_LINES: usize = 60;
/// Limit of the quote that is compared.
const MAX_QUOTED: usize = 2_000;

/// The citation of an old text, and the current text.
#[derive(Debug, Clone, Copy)]
pub(in crate::pages) struct Stale<'a> {
    /// The page's path, without query.
    pub(in crate::pages) page: &'a str,
    pub(in crate::pages) content: &'a str,
    pub(in crate::pages) lines: Option<Lines>,
    /// The hash of the old text.
    pub(in crate::pages) hash: &'a str,
    /// The quoted words, if the URL has them.
    pub(in crate::pages) quote: Option<&'a str>,
}

impl Stale<'_> {
    /// The most similar lines of the current text, and the notice; `elsewhere` links to where the old text may be
    /// found.
    pub(in crate::pages) fn show(&self, elsewhere: &Markup) -> (Option<Lines>, Markup) {
        let quote: String = self.quote.unwrap_or_default().trim().chars().take(MAX_QUOTED).collect();
        let quote = quote.replace("\r\n", "\n");
        let found = nearest(self.content, &quote);
        let notice = html! {
            div.notice {
                p { strong { "The text has changed since it was cited." } " The text of then is not kept here, so nobody can say for certain what these lines were." }
                (self.compared(&quote, found))
                (elsewhere)
                @if !found.is_some_and(|found| found.is_whole) { (self.ask(&quote)) }
            }
        };
        (found.map(|found| found.lines), notice)
    }

    /// The quote beside the current lines.
    fn compared(&self, quote: &str, found: Option<Nearest>) -> Markup {
        html! {
            @match (found, self.lines) {
                (Some(Nearest { lines, is_whole: true }), _) => {
                    p { "The quoted words still stand in it, in " (self.link(lines)) "." }
                }
                (Some(Nearest { lines, .. }), _) => {
                    p { "As it was quoted:" }
                    pre.cited-then tabindex="0" dir="auto" { @for line in quote.lines().take(MAX_LINES) { del { (line) } "\n" } }
                    p { "What comes nearest to it in the text as it is, in " (self.link(lines)) ":" }
                    pre.cited-now tabindex="0" dir="auto" { @for line in truncated(self.content, lines) { ins { (line) } "\n" } }
                }
                (None, _) if !quote.is_empty() => {
                    p { "As it was quoted:" }
                    pre.cited-then tabindex="0" dir="auto" { @for line in quote.lines().take(MAX_LINES) { del { (line) } "\n" } }
                    p { "Nothing like it stands in the text as it is." }
                }
                (None, Some(lines)) => {
                    p { "What has that place now, and may be something else: " (self.link(lines)) "." }
                }
                (None, None) => {}
            }
        }
    }

    fn link(&self, lines: Lines) -> Markup {
        html! { a href={ (self.page) "?lines=" (lines) "#L" (lines.first) } { @if lines.first == lines.last { "line " } @else { "lines " } (lines) } }
    }

    /// A search for the quoted words.
    fn ask(&self, quote: &str) -> Markup {
        html! {
            form.filter method="get" action=(self.page) {
                @if let Some(lines) = self.lines { input type="hidden" name="lines" value=(lines); }
                input type="hidden" name="hash" value=(self.hash);
                div.field {
                    label for="f-quote" { "Words that were quoted" }
                    input #f-quote type="text" name="quote" value=[(!quote.is_empty()).then_some(quote)] maxlength=(MAX_QUOTED) autocomplete="off" dir="auto" required;
                }
                button type="submit" { "Find what comes nearest" }
            }
        }
    }
}

fn truncated(text: &str, lines: Lines) -> impl Iterator<Item = &str> {
    let count = (lines.last + 1).saturating_sub(lines.first).min(MAX_LINES);
    text.lines().skip(lines.first.saturating_sub(1)).take(count)
}
