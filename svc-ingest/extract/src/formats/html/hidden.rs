//! What of a page people do not see.

use std::collections::{HashMap, HashSet};

use dom_query::{Document, NodeRef};

/// What is no text of a page, or is there for programs only. Forms keep their text: some sites put all of a page into one.
const UNSEEN: &str = "script, style, template, noscript, iframe, object, embed, applet, canvas, video, audio, svg, map, \
                      button, input, select, textarea, datalist, dialog:not([open]), frame, frameset, [hidden]";

/// The most rules of a page's own style sheets that are looked at.
const MOST_RULES: usize = 2_000;

/// Removes elements that a browser would not show: by what they are, by their attributes, and by the page's own style
/// sheets. What scripts and other style sheets hide is not known.
pub(super) fn remove(document: &Document) {
    let names = hidden_by_sheets(document);
    if !names.is_empty() {
        for node in document.select("[class], [id]").nodes() {
            if is_named(node, &names) {
                node.remove_from_parent();
            }
        }
    }
    let styled = document.select("style, link[rel~=stylesheet]").exists();
    comments(document);
    document.select(UNSEEN).remove();
    for node in document.select("[aria-hidden=true]").nodes() {
        // Icons and doubles of formulas. Pages also put it on all they have while a dialog is open.
        if !has(node, "p, h1, h2, h3, main, article, table, pre") {
            node.remove_from_parent();
        }
    }
    for node in document.select("[style], font[color], [bgcolor]").nodes() {
        if is_hidden(node, styled) {
            node.remove_from_parent();
        }
    }
}

fn comments(document: &Document) {
    let comments: Vec<NodeRef<'_>> = document.root().descendants_it().filter(NodeRef::is_comment).collect();
    for comment in comments {
        comment.remove_from_parent();
    }
}

/// Whether a name hides an element, and no other one shows it again on larger screens, as `hidden md:block` does.
fn is_named(node: &NodeRef<'_>, names: &HashSet<String>) -> bool {
    const SHOWN: [&str; 8] =
        ["block", "flex", "grid", "table", "inline", "contents", "table-cell", "table-row"];
    let class = node.class().unwrap_or_default();
    let mut classes = class.split_ascii_whitespace();
    let shown = classes.clone().any(|class| {
        class.rsplit_once(':').is_some_and(|(_, display)| SHOWN.contains(&display))
            || (class.starts_with("d-") && SHOWN.iter().any(|display| class.ends_with(display)))
    });
    let by_class = !shown && classes.any(|class| names.contains(&format!(".{class}")));
    by_class || node.id_attr().is_some_and(|id| names.contains(&format!("#{id}")))
}

fn has(node: &NodeRef<'_>, selector: &str) -> bool {
    dom_query::Selection::from(*node).select(selector).exists()
}

fn is_hidden(node: &NodeRef<'_>, styled: bool) -> bool {
    let style = node.attr("style").unwrap_or_default();
    if hides(&style) {
        return true;
    }
    let Some(color) =
        declarations(&style).remove("color").or_else(|| node.attr("color").map(|color| normal(&color)))
    else {
        return false;
    };
    let around = || node.ancestors_it(None).find_map(|ancestor| background(&ancestor));
    match background(node).or_else(around) {
        Some(background) => same_color(&color, &background),
        // A page without any style sheet is white.
        None => !styled && same_color(&color, "white"),
    }
}

fn background(node: &NodeRef<'_>) -> Option<String> {
    let style = node.attr("style").unwrap_or_default();
    let mut declared = declarations(&style);
    declared
        .remove("background-color")
        .or_else(|| declared.remove("background"))
        .or_else(|| node.attr("bgcolor").map(|color| normal(&color)))
}

fn same_color(one: &str, other: &str) -> bool {
    fn spelled(color: &str) -> &str {
        match color {
            "white" | "#fff" | "#ffffff" | "rgb(255,255,255)" => "white",
            "black" | "#000" | "#000000" | "rgb(0,0,0)" => "black",
            other => other,
        }
    }
    spelled(one) == spelled(other)
}

/// Whether an element with that style shows nothing.
pub(crate) fn hides(style: &str) -> bool {
    let declared = declarations(style);
    let is = |property: &str, values: &[&str]| {
        declared.get(property).is_some_and(|value| values.contains(&value.as_str()))
    };
    let length = |property: &str| declared.get(property).and_then(|value| pixels(value));
    let is_zero = |property: &str| length(property) == Some(0.0);
    let far_off = |property: &str| length(property).is_some_and(|length| length <= -500.0);
    let clipped = is("overflow", &["hidden", "clip"]);
    let tiny = |property: &str| length(property).is_some_and(|length| length <= 1.0);
    is("display", &["none"])
        || is("visibility", &["hidden", "collapse"])
        || is("content-visibility", &["hidden"])
        || is("opacity", &["0", "0.0", "0%", ".0"])
        || is("color", &["transparent"])
        || length("font-size").is_some_and(|size| size < 2.0)
        || is("transform", &["scale(0)"])
        || (is("position", &["absolute", "fixed"])
            && ["left", "top", "right", "bottom"].into_iter().any(far_off))
        || far_off("text-indent")
        || far_off("margin-left")
        || declared
            .get("clip")
            .is_some_and(|value| value.starts_with("rect(0") || value.starts_with("rect(1px"))
        || declared
            .get("clip-path")
            .is_some_and(|value| value.contains("inset(50%") || value.contains("inset(100%"))
        || (clipped && ["height", "width", "max-height", "max-width"].into_iter().any(tiny))
        || is_zero("max-height")
}

/// Properties of a style attribute with their values, in lower case and without spaces.
fn declarations(style: &str) -> HashMap<String, String> {
    let pairs = style.split(';').filter_map(|declaration| declaration.split_once(':'));
    pairs.map(|(property, value)| (normal(property), normal(value))).collect()
}

fn normal(value: &str) -> String {
    let value: String = value.chars().filter(|character| !character.is_whitespace()).collect();
    value.to_ascii_lowercase().trim_end_matches("!important").to_owned()
}

/// A length in pixels; other units as far as zero and far off look the same in all.
fn pixels(value: &str) -> Option<f64> {
    let digits = value.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let number: f64 = digits.parse().ok()?;
    Some(match value.get(digits.len()..)? {
        "em" | "rem" => number * 16.0,
        "" | "px" | "pt" => number,
        _ => return (number == 0.0).then_some(0.0),
    })
}

/// Selectors of one class or one id that the page's own sheets hide, everywhere and not only on paper or small screens.
fn hidden_by_sheets(document: &Document) -> HashSet<String> {
    let mut hidden = HashSet::new();
    for sheet in document.select("style").nodes() {
        for (selectors, declarations) in rules(&sheet.text()) {
            for selector in selectors.split(',').map(str::trim).filter(|selector| is_one_name(selector)) {
                // The last rule that says how it is displayed counts.
                if hides(&declarations) {
                    hidden.insert(selector.to_owned());
                } else if declarations.contains("display") || declarations.contains("visibility") {
                    hidden.remove(selector);
                }
            }
        }
    }
    hidden
}

fn is_one_name(selector: &str) -> bool {
    selector.strip_prefix(['.', '#']).is_some_and(|name| {
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    })
}

/// The rules of a sheet that stand at its top.
fn rules(sheet: &str) -> Vec<(String, String)> {
    let mut rules = Vec::new();
    let mut rest = sheet;
    let (mut depth, mut selectors, mut body) = (0_usize, String::new(), String::new());
    while let Some(character) = rest.chars().next() {
        if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after);
            continue;
        }
        rest = rest.get(character.len_utf8()..).unwrap_or_default();
        match (character, depth) {
            ('{', _) => depth += 1,
            ('}', 0 | 1) => {
                depth = 0;
                let (selectors, body) = (std::mem::take(&mut selectors), std::mem::take(&mut body));
                if !selectors.trim_start().starts_with('@') {
                    rules.push((selectors, body));
                }
                if rules.len() >= MOST_RULES {
                    break;
                }
            }
            ('}', _) => depth -= 1,
            // A statement such as @charset or @import.
            (';', 0) => selectors.clear(),
            (_, 0) => selectors.push(character),
            (_, 1) => body.push(character),
            _ => {}
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_that_show_nothing() {
        for style in [
            "display:none",
            "color: red; DISPLAY : None !important",
            "visibility:hidden",
            "opacity: 0",
            "font-size:0",
            "font-size: 1px",
            "position:absolute; left:-9999px",
            "text-indent:-999em",
            "height:0;overflow:hidden",
            "clip: rect(0 0 0 0); position:absolute",
            "color: transparent",
        ] {
            assert!(hides(style), "{style}");
        }
        for style in
            ["", "display:block", "opacity:0.5", "font-size:12px", "left:-5px;position:absolute", "height:0"]
        {
            assert!(!hides(style), "{style}");
        }
    }

    #[test]
    fn rules_for_paper_and_small_screens_do_not_count() {
        let sheet = "@import url(x); /* .c{display:none} */ .a, #b {display:none} \
                     @media print { .d { display:none } } .e { display: none } .e { display: block } .f .g {display:none}";
        let document = Document::from(format!("<style>{sheet}</style>"));
        assert_eq!(hidden_by_sheets(&document), HashSet::from([".a".to_owned(), "#b".to_owned()]));
    }

    #[test]
    fn a_name_hides_unless_another_shows_it_on_larger_screens() {
        let document = Document::from(
            "<style>.hidden,.d-none,#x{display:none}</style><p class=hidden>1</p><p class='hidden md:block'>2</p>\
             <p class='d-none d-md-flex'>3</p><p id=x>4</p><p class=other>5</p>",
        );
        remove(&document);
        assert_eq!(document.select("p").text().as_ref(), "235");
    }
}
