//! Renders Markdown as HTML, from pulldown-cmark's events.
//!
//! HTML in the text is escaped. Ids are ours, links go through [`super::links`], only assets are images. Nesting
//! depth is limited, and every block knows its lines.

mod blocks;
mod place;

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use maud::{Markup, PreEscaped};
use pulldown_cmark::{BlockQuoteKind, CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd};

use self::blocks::{Code, OpenHeading, Table};
use self::place::{Places, own_ends};
use super::links::{self, Relative, Target};
use super::{Lines, escape, front_matter};

/// Limit of nested quotes, lists and emphasis: deeper content is put into the last one.
const MAX_DEPTH: usize = 32;

/// Rendering options.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style<'a> {
    /// The level of a `#` heading: 1 if the text is the page, 2 if the page has a title of its own.
    pub(crate) top_level: u8,
    /// The line number of the text's first line.
    pub(crate) first_line: usize,
    /// The cited lines.
    pub(crate) cited: Option<Lines>,
    pub(crate) relative: Relative<'a>,
    /// The id prefix on a page with several texts: letters, digits and hyphens.
    pub(crate) ids: &'a str,
}

/// A rendered text.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub(crate) markup: Markup,
    /// The headings in order.
    pub(crate) outline: Vec<Heading>,
}

/// A heading of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Heading {
    /// The level as rendered.
    pub(crate) level: u8,
    pub(crate) text: String,
    /// The id of its element.
    pub(crate) id: String,
}

/// Renders a text.
pub(crate) fn render(text: &str, style: Style<'_>) -> Rendered {
    let front = front_matter::of(text);
    let (bytes, lines) = front.as_ref().map_or((0, 0), |front| (front.bytes, front.lines));
    let body = text.get(bytes..).unwrap_or_default();
    let style = Style { first_line: style.first_line + lines, ..style };
    let mut writer = Writer::new(body, style);
    if let Some(front) = &front {
        writer.front_matter(front);
    }
    for (event, range) in Parser::new_ext(body, options()).into_offset_iter() {
        writer.event(event, range);
    }
    Rendered { markup: PreEscaped(writer.out), outline: writer.outline }
}

fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM
        | Options::ENABLE_WIKILINKS
}

/// What counts towards the nesting depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    Block,
    Inline,
    Link,
    None,
}

/// An open element.
#[derive(Debug)]
struct Open {
    /// Empty for an omitted one.
    close: &'static str,
    depth: Depth,
}

struct Writer<'a> {
    style: Style<'a>,
    places: Places,
    /// The end of each list item's own text, in the order of the items; empty if nothing is cited.
    own_ends: Vec<usize>,
    items: usize,
    out: String,
    open: Vec<Open>,
    blocks: usize,
    inlines: usize,
    links: usize,
    outline: Vec<Heading>,
    /// How often each id was assigned.
    ids: HashMap<String, usize>,
    heading: Option<OpenHeading>,
    last_level: u8,
    code: Option<Code>,
    table: Option<Table>,
    /// Within an image: its text so far, and the number of open elements.
    image: Option<(String, usize)>,
    /// Footnote numbers by label.
    footnotes: HashMap<String, usize>,
    referred: HashSet<usize>,
    defined: HashSet<usize>,
    is_marked: bool,
}

impl<'a> Writer<'a> {
    fn new(text: &str, style: Style<'a>) -> Self {
        let own_ends = if style.cited.is_some() { own_ends(text, options()) } else { Vec::new() };
        Self {
            style,
            places: Places::of(text, style.first_line),
            own_ends,
            items: 0,
            out: String::with_capacity(text.len() * 2),
            open: Vec::new(),
            blocks: 0,
            inlines: 0,
            links: 0,
            outline: Vec::new(),
            ids: HashMap::new(),
            heading: None,
            last_level: style.top_level.saturating_sub(1),
            code: None,
            table: None,
            image: None,
            footnotes: HashMap::new(),
            referred: HashSet::new(),
            defined: HashSet::new(),
            is_marked: false,
        }
    }

    fn event(&mut self, event: Event<'_>, range: std::ops::Range<usize>) {
        if self.image.is_some() {
            return self.in_image(event);
        }
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => {
                self.out.push_str("<code>");
                self.text(&text);
                self.out.push_str("</code>");
            }
            Event::InlineHtml(text) if is_break(&text) => self.out.push_str("<br>"),
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
            Event::FootnoteReference(label) => self.refer(&label),
            Event::SoftBreak => self.text("\n"),
            Event::HardBreak => {
                self.out.push_str("<br>");
                self.text("\n");
            }
            Event::Rule => {
                self.block("hr", range, "");
            }
            Event::TaskListMarker(is_done) => {
                let (checked, name) = if is_done { (" checked", "Done") } else { ("", "Not done") };
                let _ =
                    write!(self.out, "<input type=\"checkbox\" disabled{checked} aria-label=\"{name}\"> ");
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: std::ops::Range<usize>) {
        match tag {
            Tag::Paragraph => self.open_block("p", range, "", "</p>"),
            Tag::Heading { level, .. } => self.open_heading(level as u8, range),
            Tag::BlockQuote(kind) => self.open_quote(kind, range),
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Indented => String::new(),
                    CodeBlockKind::Fenced(info) => {
                        info.split_whitespace().next().unwrap_or_default().to_owned()
                    }
                };
                self.code = Some(Code::new(language, range));
                self.push("", Depth::None);
            }
            Tag::HtmlBlock => self.open_block("pre", range, " class=\"raw\" tabindex=\"0\"", "</pre>\n"),
            Tag::List(start) => self.open_list(start),
            Tag::Item => self.open_item(range),
            Tag::FootnoteDefinition(label) => self.define(&label),
            Tag::DefinitionList | Tag::DefinitionListTitle | Tag::DefinitionListDefinition => {
                self.push("", Depth::None);
            }
            Tag::Table(alignments) => {
                self.table = Some(Table::new(alignments));
                let frame =
                    "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table>\n";
                self.out.push_str(frame);
                self.push("</tbody></table></div>\n", Depth::None);
            }
            Tag::TableHead => {
                self.out.push_str("<thead>");
                self.open_block("tr", range, "", "</tr></thead><tbody>\n");
            }
            Tag::TableRow => self.open_row(range),
            Tag::TableCell => self.open_cell(),
            Tag::Emphasis => self.open_inline("<em>", "</em>"),
            Tag::Strong => self.open_inline("<strong>", "</strong>"),
            Tag::Strikethrough => self.open_inline("<s>", "</s>"),
            Tag::Superscript => self.open_inline("<sup>", "</sup>"),
            Tag::Subscript => self.open_inline("<sub>", "</sub>"),
            Tag::Link { link_type, dest_url, title, .. } => self.open_link(link_type, &dest_url, &title),
            Tag::Image { dest_url, .. } => {
                self.push_image(&dest_url);
                self.image = Some((String::new(), 0));
            }
            Tag::MetadataBlock(_) => self.push("", Depth::None),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        if matches!(tag, TagEnd::Heading(_)) {
            self.close_heading();
        } else if tag == TagEnd::CodeBlock {
            self.write_code();
        } else if tag == TagEnd::Table {
            self.table = None;
        }
        self.pop();
    }

    fn push(&mut self, close: &'static str, depth: Depth) {
        if !close.is_empty() {
            self.count(depth, 1);
        }
        self.open.push(Open { close, depth });
    }

    fn pop(&mut self) {
        let Some(open) = self.open.pop() else { return };
        self.out.push_str(open.close);
        if !open.close.is_empty() {
            self.count(open.depth, -1);
        }
    }

    fn count(&mut self, depth: Depth, by: isize) {
        let counter = match depth {
            Depth::Block => &mut self.blocks,
            Depth::Inline => &mut self.inlines,
            Depth::Link => &mut self.links,
            Depth::None => return,
        };
        *counter = counter.saturating_add_signed(by);
    }

    fn open_inline(&mut self, tag: &str, close: &'static str) {
        if self.inlines >= MAX_DEPTH {
            return self.push("", Depth::None);
        }
        self.out.push_str(tag);
        self.push(close, Depth::Inline);
    }

    fn open_link(&mut self, kind: LinkType, address: &str, title: &str) {
        if self.links > 0 {
            return self.push("", Depth::None);
        }
        let target = match kind {
            LinkType::WikiLink { .. } => links::named(address, self.style.relative),
            LinkType::Email => links::target(&format!("mailto:{address}"), self.style.relative),
            LinkType::Inline
            | LinkType::Reference
            | LinkType::ReferenceUnknown
            | LinkType::Collapsed
            | LinkType::CollapsedUnknown
            | LinkType::Shortcut
            | LinkType::ShortcutUnknown
            | LinkType::Autolink => links::target(address, self.style.relative),
        };
        self.anchor(&target, title);
        self.push("</a>", Depth::Link);
    }

    fn anchor(&mut self, target: &Target, title: &str) {
        self.out.push_str("<a href=\"");
        match target {
            Target::Own(address) => match address.strip_prefix('#') {
                Some(id) => {
                    let _ = write!(self.out, "#{}", self.style.ids);
                    escape(&mut self.out, id);
                }
                None => escape(&mut self.out, address),
            },
            Target::Elsewhere(address) => {
                escape(&mut self.out, address);
                self.out.push_str("\" rel=\"noopener noreferrer");
            }
            Target::Nowhere => self.out.push('#'),
        }
        self.out.push('"');
        if !title.is_empty() {
            self.out.push_str(" title=\"");
            escape(&mut self.out, title);
            self.out.push('"');
        }
        self.out.push('>');
    }

    fn text(&mut self, text: &str) {
        if let Some(code) = &mut self.code {
            return code.text.push_str(text);
        }
        if let Some(heading) = &mut self.heading {
            heading.text.push_str(text);
        }
        escape(&mut self.out, text);
    }

    /// The start of an image, which ends with its text; a non-asset becomes a link.
    fn push_image(&mut self, address: &str) {
        if links::is_asset(address) {
            self.out.push_str("<img loading=\"lazy\" src=\"");
            escape(&mut self.out, address);
            self.out.push_str("\" alt=\"");
            return self.push("\">", Depth::None);
        }
        if self.links > 0 {
            return self.push("", Depth::None);
        }
        self.anchor(&links::target(address, self.style.relative), "");
        self.push("</a>", Depth::Link);
    }

    /// Within an image only text is kept.
    fn in_image(&mut self, event: Event<'_>) {
        let Some((text, depth)) = &mut self.image else { return };
        match event {
            Event::Start(_) => *depth += 1,
            Event::End(_) if *depth > 0 => *depth -= 1,
            Event::End(_) => self.close_image(),
            Event::Text(more)
            | Event::Code(more)
            | Event::InlineMath(more)
            | Event::DisplayMath(more)
            | Event::Html(more)
            | Event::InlineHtml(more) => text.push_str(&more),
            Event::SoftBreak | Event::HardBreak => text.push(' '),
            Event::FootnoteReference(_) | Event::Rule | Event::TaskListMarker(_) => {}
        }
    }

    fn close_image(&mut self) {
        let Some((text, _)) = self.image.take() else { return };
        let is_link = self.open.last().is_some_and(|open| open.close == "</a>");
        let text = if is_link && text.trim().is_empty() { "Image".to_owned() } else { text };
        escape(&mut self.out, &text);
        if let Some(heading) = &mut self.heading {
            heading.text.push_str(&text);
        }
        self.pop();
    }
}

/// A `<br>`, as people write it in tables where Markdown has no line break.
fn is_break(html: &str) -> bool {
    matches!(html, "<br>" | "<br/>" | "<br />")
}

/// The title of an alert.
const fn alert(kind: BlockQuoteKind) -> (&'static str, &'static str) {
    match kind {
        BlockQuoteKind::Note => ("note", "Note"),
        BlockQuoteKind::Tip => ("tip", "Tip"),
        BlockQuoteKind::Important => ("important", "Important"),
        BlockQuoteKind::Warning => ("warning", "Warning"),
        BlockQuoteKind::Caution => ("caution", "Caution"),
    }
}

#[cfg(test)]
mod tests;
