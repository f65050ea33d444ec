//! What a page is about, apart from what surrounds it on every page of its site.

use dom_query::{Document, NodeRef, Selection};
use dom_smoothie::{Config, Readability};

use crate::clean;

/// What surrounds the content, by what it says it is.
const SURROUNDINGS: &str = "nav, aside, menu, [role=navigation], [role=banner], [role=contentinfo], [role=complementary], \
                            [role=search], [role=menu], [role=menubar], [role=dialog], [role=alertdialog]";

/// The least part of a page's running text that an article found by its density must have, so that nothing is lost of pages
/// that are no article.
const LEAST_PART: f64 = 0.5;

/// Removes what pages mark as menus, headers, footers and asides.
pub(super) fn drop_surroundings(document: &Document) {
    document.select(SURROUNDINGS).remove();
    for node in document.select("header, footer").nodes() {
        if !belongs_to_content(node) {
            node.remove_from_parent();
        }
    }
}

/// A header that holds the heading of an article, and a footer that says whom a quotation is from.
fn belongs_to_content(node: &NodeRef<'_>) -> bool {
    if node.has_name("footer") {
        return node.parent().is_some_and(|parent| parent.has_name("blockquote"));
    }
    let within = node
        .ancestors_it(None)
        .any(|ancestor| ["main", "article", "section"].into_iter().any(|name| ancestor.has_name(name)));
    within && Selection::from(*node).select("h1, h2, h3, h4, h5, h6").exists()
}

/// The main content as Markdown: what the page marks as that, else what reads like an article, else all.
pub(super) fn main(document: &Document) -> String {
    for marked in ["main", "[role=main]", "article"] {
        let found = document.select(marked);
        if let [node] = found.nodes()
            && !node.text().trim().is_empty()
        {
            return node.md(None).to_string();
        }
    }
    article(document).unwrap_or_else(|| whole(document))
}

/// All of a page as Markdown.
pub(super) fn whole(document: &Document) -> String {
    match document.body() {
        Some(body) => body.md(None).to_string(),
        None => document.md(None).to_string(),
    }
}

/// The article that Readability finds, when it is most of what the page says.
fn article(document: &Document) -> Option<String> {
    let body = document.body()?;
    let running = running_length(&body);
    let headings = headings(document);
    let config = Config { keep_classes: true, disable_json_ld: true, ..Config::default() };
    let article = Readability::with_document(document.clone(), None, Some(config)).ok()?.parse().ok()?;
    let found = Document::fragment(article.content);
    if (running_length(&found.root()) as f64) < running as f64 * LEAST_PART {
        return None;
    }
    // It takes a heading that is the page's title as no part of the article, and lowers the others.
    for lowered in found.select("h2").nodes() {
        if clean::title(&lowered.text()).is_some_and(|text| headings.contains(&text)) {
            lowered.rename("h1");
        }
    }
    let text = found.md(None).to_string();
    Some(match headings.as_slice() {
        [title] if !found.select("h1").exists() => format!("# {title}\n\n{text}"),
        _ => text,
    })
}

/// The headings of a page that stand above all others.
fn headings(document: &Document) -> Vec<String> {
    document.select("h1").nodes().iter().filter_map(|heading| clean::title(&heading.text())).collect()
}

/// Characters of text that is not the text of links.
fn running_length(node: &NodeRef<'_>) -> usize {
    let links: usize =
        Selection::from(*node).select("a").nodes().iter().map(NodeRef::normalized_char_count).sum();
    node.normalized_char_count().saturating_sub(links)
}
