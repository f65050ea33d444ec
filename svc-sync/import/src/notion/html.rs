//! Converts pages of an HTML export to the Markdown of the other export format.

use std::collections::HashMap;
use std::convert::Infallible;

use dom_query::{Document, NodeRef, Selection};
use html5gum::emitters::default::DefaultEmitter;
use html5gum::{StringReader, Token, Tokenizer};

/// Deeper nesting costs the parser quadratic time and stack; pages of Notion are flatter.
const MAX_OPEN: usize = 512;
/// Nodes of the tree, which take some hundred bytes each.
const MAX_ELEMENTS: usize = 200_000;
/// Attributes of an element, as the parser compares each with all others.
const MAX_ATTRIBUTES: usize = 500;

const VOID: [&[u8]; 14] = [
    b"area", b"base", b"br", b"col", b"embed", b"hr", b"img", b"input", b"link", b"meta", b"param",
    b"source", b"track", b"wbr",
];

/// A converted page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// Heading, property lines, text.
    pub(super) markdown: String,
    /// Notion's names for the types of its properties, by property.
    pub(super) types: HashMap<String, String>,
}

/// Whether a file name is that of a page of an HTML export.
pub(super) fn is_page(name: &str) -> bool {
    crate::kind::extension(name) == "html"
}

/// Converts a page; `None` if it exceeds the limits of the parser.
pub(super) fn page(html: &str) -> Option<Page> {
    if !can_be_a_tree(html) {
        return None;
    }
    let document = Document::from(html);
    let mut title = document.select_single("h1.page-title").text().trim().to_owned();
    if title.is_empty() {
        title = document.select_single("title").text().trim().to_owned();
    }
    let mut page = Page { markdown: format!("# {}\n\n", one_line(&title)), types: HashMap::new() };
    for row in document.select("table.properties tr").nodes() {
        let row = Selection::from(*row);
        let (name, cell) = (one_line(&row.select_single("th").text()), row.select_single("td"));
        let class = row.attr("class").unwrap_or_default();
        if let Some(kind) =
            class.split_ascii_whitespace().find_map(|class| class.strip_prefix("property-row-"))
        {
            page.types.insert(name.clone(), kind.to_owned());
        }
        let value = cell.nodes().first().map(value).unwrap_or_default();
        if !name.is_empty() && !value.is_empty() {
            page.markdown.push_str(&format!("{name}: {value}\n"));
        }
    }
    if !page.markdown.ends_with("\n\n") {
        page.markdown.push('\n');
    }
    let body = ["div.page-body", "body"]
        .into_iter()
        .map(|path| document.select_single(path))
        .find(Selection::exists);
    page.markdown.push_str(
        &body.and_then(|body| body.nodes().first().map(|node| node.md(None).to_string())).unwrap_or_default(),
    );
    Some(page)
}

/// The workspace's name in the table of contents.
pub(super) fn workspace(html: &str) -> Option<String> {
    if !can_be_a_tree(html) {
        return None;
    }
    let document = Document::from(html);
    let named = ["h1", "title"].into_iter().map(|path| one_line(&document.select_single(path).text()));
    named.into_iter().find(|name| !name.is_empty())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The value of a property, in the format of a CSV table.
fn value(cell: &NodeRef<'_>) -> String {
    let cell = Selection::from(*cell);
    if cell.select(".checkbox-on").exists() {
        return "Yes".to_owned();
    }
    if cell.select(".checkbox-off").exists() {
        return "No".to_owned();
    }
    let options = cell.select(".selected-value");
    if options.exists() {
        return listed(options.nodes().iter().map(|option| one_line(&option.text())));
    }
    let links = cell.select("a[href]");
    if links.exists() {
        return listed(links.nodes().iter().map(|link| {
            let (text, to) = (one_line(&link.text()), link.attr("href").unwrap_or_default());
            if crate::address::has_scheme(&to) || text.is_empty() {
                to.to_string()
            } else {
                format!("{text} ({to})")
            }
        }));
    }
    one_line(&cell.text()).trim_start_matches('@').to_owned()
}

fn listed(values: impl Iterator<Item = String>) -> String {
    values.filter(|value| !value.is_empty()).collect::<Vec<_>>().join(", ")
}

fn can_be_a_tree(html: &str) -> bool {
    let mut emitter = DefaultEmitter::<()>::default();
    emitter.naively_switch_states(true);
    let tokenizer: Tokenizer<StringReader<'_>, _> = Tokenizer::new_with_emitter(html, emitter);
    let (mut open, mut elements) = (0_usize, 0_usize);
    for token in tokenizer.map(|token| token.unwrap_or_else(|never: Infallible| match never {})) {
        if let Token::StartTag(tag) = &token {
            elements += 1;
            let name: &[u8] = &tag.name;
            open += usize::from(!tag.self_closing && !VOID.contains(&name));
            if open > MAX_OPEN || elements > MAX_ELEMENTS || tag.attributes.len() > MAX_ATTRIBUTES {
                return false;
            }
        } else if let Token::EndTag(_) = &token {
            open = open.saturating_sub(1);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"<html><head><title>Row</title></head><body><article><header><h1 class="page-title">A  row</h1>
<table class="properties"><tbody>
<tr class="property-row property-row-select"><th>Status</th><td><span class="selected-value">Open</span></td></tr>
<tr class="property-row property-row-multi_select"><th>Tags</th><td><span class="selected-value">a</span><span class="selected-value">b</span></td></tr>
<tr class="property-row property-row-checkbox"><th>Done</th><td><div class="checkbox checkbox-on"></div></td></tr>
<tr class="property-row property-row-date"><th>Due</th><td><time>@May 2, 2023</time></td></tr>
<tr class="property-row property-row-relation"><th>Project</th><td><a href="../P%20x.html">P x</a></td></tr>
<tr class="property-row property-row-url"><th>Web</th><td><a href="https://a.b">a.b</a></td></tr>
<tr class="property-row property-row-text"><th>Empty</th><td></td></tr>
</tbody></table></header><div class="page-body"><p>Text with a <a href="B%20c.html">link</a>.</p><p><img src="i.png" alt="i"></p></div></article></body></html>"#;

    #[test]
    fn a_page_is_the_markdown_that_the_other_export_has() {
        let page = page(PAGE).unwrap();
        let (head, body) = page.markdown.split_once("\n\nText").unwrap();
        assert_eq!(
            head,
            "# A row\n\nStatus: Open\nTags: a, b\nDone: Yes\nDue: May 2, 2023\nProject: P x (../P%20x.html)\nWeb: https://a.b"
        );
        assert!(body.starts_with(" with a [link](B%20c.html).") && body.contains("![i](i.png)"), "{body}");
        assert_eq!(page.types["Tags"], "multi_select");
        assert_eq!(page.types.len(), 7);
    }

    #[test]
    fn what_is_nested_too_deep_is_no_page() {
        assert_eq!(page(&"<b>".repeat(20_000)), None);
        assert!(page(&"<br>".repeat(20_000)).is_some());
    }

    #[test]
    fn the_table_of_contents_names_the_workspace() {
        assert_eq!(
            workspace("<html><body><h1>Our team</h1><ul></ul></body></html>").as_deref(),
            Some("Our team")
        );
        assert_eq!(workspace("<ul></ul>"), None);
    }
}
