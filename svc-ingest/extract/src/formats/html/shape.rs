//! Normalizes a page's tree before the conversion to Markdown.

use dom_query::{Document, NodeRef, Selection};

/// Replaces images by their descriptions and formulas by their source, and moves the language of code blocks to where the converter expects
/// it.
pub(super) fn normalize(document: &Document) {
    for image in document.select("img").nodes() {
        // A client that renders the text would fetch the image's URL.
        let description = image.attr("alt").unwrap_or_default();
        replace_by_text(image, description.trim());
    }
    for formula in document.select("math").nodes() {
        let source = Selection::from(*formula).select("annotation[encoding='application/x-tex']").text();
        if !source.trim().is_empty() {
            replace_by_text(formula, source.trim());
        }
    }
    for code in document.select("pre").nodes() {
        normalize_code(code);
    }
    for table in document.select("table").nodes() {
        name_columns(table);
    }
}

/// Makes the first row of a table its header if it has none, which Markdown requires.
fn name_columns(table: &NodeRef<'_>) {
    let table = Selection::from(*table);
    if !table.select("th").exists() {
        for cell in table.select("tr").first().select("td").nodes() {
            cell.rename("th");
        }
    }
}

fn replace_by_text(node: &NodeRef<'_>, text: &str) {
    let text = node.tree.new_text(text);
    node.replace_with(&text);
}

fn normalize_code(code: &NodeRef<'_>) {
    for line_end in Selection::from(*code).select("br").nodes() {
        replace_by_text(line_end, "\n");
    }
    if let Some(language) = language(code) {
        code.set_attr("data-lang", &language);
    }
}

/// The language of a code block, from the classes of the block, of the code in it, or of a wrapper.
fn language(code: &NodeRef<'_>) -> Option<String> {
    let within = Selection::from(*code).select("code").nodes().first().copied();
    let around = code.ancestors_it(Some(3));
    [Some(*code), within].into_iter().flatten().chain(around).find_map(|node| named(&node))
}

fn named(node: &NodeRef<'_>) -> Option<String> {
    const PREFIXES: [&str; 5] = ["language-", "lang-", "highlight-source-", "brush:", "highlight-"];
    let attribute = ["data-lang", "data-language"].into_iter().find_map(|name| node.attr(name));
    if let Some(language) = attribute.and_then(|language| language_name(&language)) {
        return Some(language);
    }
    let class = node.class()?.replace(": ", ":");
    let mut classes = class.split_ascii_whitespace();
    let prefixed =
        classes.clone().find_map(|class| PREFIXES.iter().find_map(|prefix| class.strip_prefix(prefix)));
    // Pandoc: class="sourceCode rust".
    let pandoc = || classes.find(|class| *class == "sourceCode").and_then(|_| classes.next());
    language_name(prefixed.or_else(pandoc)?)
}

fn language_name(name: &str) -> Option<String> {
    let name = name.trim().trim_end_matches(';').to_ascii_lowercase();
    let plain = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'#' | b'_' | b'.'));
    let none = ["", "none", "default", "nohighlight", "text-only", "wrapper", "container", "block"]
        .contains(&name.as_str());
    (plain && !none && name.len() <= 30).then_some(name)
}
