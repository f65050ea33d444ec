//! Extracts the main content of a page, without the site's boilerplate.

use dom_query::{Document, NodeRef, Selection};
use dom_smoothie::{Config, Readability};

use crate::clean;

/// Elements and roles of boilerplate.
const SURROUNDINGS: &str = "nav, aside, menu, [role=navigation], [role=banner], [role=contentinfo], [role=complementary], \
                            [role=search], [role=menu], [role=menubar], [role=dialog], [role=alertdialog]";

/// The minimum share of a page's running text for an article found by text density, so that pages without an article lose nothing.
const MIN_SHARE: f64 = 0.5;

/// Removes marked menus, headers, footers and asides.
pub(super) fn drop_surroundings(document: &Document) {
    document.select(SURROUNDINGS).remove();
    for node in document.select("header, footer").nodes() {
        if !belongs_to_content(node) {
            node.remove_from_parent();
        }
    }
}

/// Exceptions: a header with the heading of an article, and a footer with the source of a quotation.
fn belongs_to_content(node: &NodeRef<'_>) -> bool {
    if node.has_name("footer") {
        return node.parent().is_some_and(|parent| parent.has_name("blockquote"));
    }
    let within = node
        .ancestors_it(None)
        .any(|ancestor| ["main", "article", "section"].into_iter().any(|name| ancestor.has_name(name)));
    within && Selection::from(*node).select("h1, h2, h3, h4, h5, h6").exists()
}

/// The main content as Markdown: as marked by the page, else the article that Readability finds, else everything.
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

/// The whole page as Markdown.
pub(super) fn whole(document: &Document) -> String {
    match document.body() {
        Some(body) => body.md(None).to_string(),
        None => document.md(None).to_string(),
    }
}

/// The article that Readability finds, if it is most of the page's text.
fn article(document: &Document) -> Option<String> {
    let body = document.body()?;
    let running = running_length(&body);
    let headings = headings(document);
    let config = Config { keep_classes: true, disable_json_ld: true, ..Config::default() };
    let article = Readability::with_document(document.clone(), None, Some(config)).ok()?.parse().ok()?;
    let found = Document::fragment(article.content);
    if (running_length(&found.root()) as f64) < running as f64 * MIN_SHARE {
        return None;
    }
    // Readability removes a heading that equals the page's title, and lowers the others.
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

/// The top-level headings of a page.
fn headings(document: &Document) -> Vec<String> {
    document.select("h1").nodes().iter().filter_map(|heading| clean::title(&heading.text())).collect()
}

/// Characters of text outside of links.
fn running_length(node: &NodeRef<'_>) -> usize {
    let links: usize =
        Selection::from(*node).select("a").nodes().iter().map(NodeRef::normalized_char_count).sum();
    node.normalized_char_count().saturating_sub(links)
}
