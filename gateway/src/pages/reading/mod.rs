//! The text view: rendered with an outline or as numbered lines, with cited lines highlighted and large texts in
//! parts.

pub(super) mod parts;
mod stale;

use maud::{Markup, html};

use self::parts::Part;
pub(super) use self::stale::Stale;
use super::text::{self, Language, Lines, Relative, Style};
use super::visitor::Visitor;
use super::words;

/// A text and how it is viewed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'a> {
    /// The page's path, without query.
    pub(super) page: &'a str,
    /// The reader.
    pub(super) visitor: &'a Visitor,
    pub(super) content: &'a str,
    /// The hash of the whole text; without it, lines cannot be cited from here.
    pub(super) hash: Option<&'a str>,
    pub(super) language: Language,
    /// Whether the source is shown instead of the rendering.
    pub(super) is_source: bool,
    /// A line within the requested part of a large text.
    pub(super) line: Option<usize>,
    pub(super) cited: Option<Lines>,
    /// What relative links refer to.
    pub(super) relative: Relative<'a>,
}

impl Reading<'_> {
    /// The text with links to its other parts; `what` begins the sentence about an empty one.
    pub(super) fn show(&self, what: &str) -> Markup {
        let line = self.line.or(self.cited.map(|lines| lines.first)).unwrap_or(1);
        let part = parts::around(self.content, line);
        let text = if self.is_source || !matches!(self.language, Language::Markdown) {
            numbered(self.language, part.text, self.hash, part.lines.first, self.cited)
        } else {
            self.rendered(&part)
        };
        html! {
            (self.navigation(&part, "Pages"))
            @if self.content.trim().is_empty() { p.quiet { (what) " is empty." } } @else { (text) }
            (self.navigation(&part, "Pages, below the text"))
        }
    }

    fn rendered(&self, part: &Part<'_>) -> Markup {
        let (cited, relative) = (self.cited, self.relative);
        let style = Style { top_level: 2, first_line: part.lines.first, cited, relative, ids: "" };
        let rendered = text::render(part.text, style);
        html! {
            div.reading {
                article.prose dir="auto" { (rendered.markup) }
                @if rendered.outline.len() > 1 {
                    nav.outline aria-label="Outline" {
                        ul {
                            @for heading in &rendered.outline {
                                li class={ "l" (heading.level) } { a href={ "#" (heading.id) } { bdi { (heading.text) } } }
                            }
                        }
                    }
                }
            }
        }
    }

    /// The navigation between parts.
    fn navigation(&self, part: &Part<'_>, label: &str) -> Markup {
        if part.is_all() {
            return html! {};
        }
        let name = if self.is_source { "view=source&" } else { "" };
        let page = |line: usize| self.visitor.onward(format!("{}?{name}line={line}", self.page));
        html! {
            nav.pages aria-label=(label) {
                @if let Some(previous) = part.previous { a.button rel="prev" href=(page(previous)) { "Previous" } }
                span { "Lines " (words::grouped(part.lines.first as u64)) "–" (words::grouped(part.lines.last as u64)) " of " (words::grouped(part.total as u64)) }
                @if let Some(next) = part.next { a.button rel="next" href=(page(next)) { "Next" } }
            }
        }
    }
}

/// The numbered lines; with the hash, clicking a number cites the line.
pub(super) fn numbered(
    language: Language,
    content: &str,
    hash: Option<&str>,
    first_line: usize,
    cited: Option<Lines>,
) -> Markup {
    html! {
        pre.source tabindex="0" dir="auto" aria-label="Source" role="group" data-hash=[hash] {
            @for (index, line) in text::source_lines(language, content).enumerate() {
                @let number = first_line + index;
                @let is_cited = cited.is_some_and(|cited| cited.has(number));
                span.line id={ "L" (number) } data-n=(number) data-cited[is_cited] aria-current=[is_cited.then_some("true")] { (line) }
                "\n"
            }
        }
    }
}
