//! Removes invisible parts of a page.

use std::collections::HashMap;

use dom_query::{Document, NodeRef};

use super::sheets::Sheets;

/// Elements without visible text. Forms are kept: some sites wrap the whole page in one.
const UNSEEN: &str = "script, style, template, noscript, iframe, object, embed, applet, canvas, video, audio, svg, map, \
                      button, input, select, textarea, datalist, dialog:not([open]), frame, frameset, [hidden]";

/// Removes elements that a browser would not render: by tag, by attributes, and by the page's embedded style sheets. The effects of scripts
/// and external style sheets are unknown.
pub(super) fn remove(document: &Document) {
    let sheets = document.select("style");
    for node in Sheets::of(sheets.nodes().iter().map(NodeRef::text)).hidden(document) {
        node.remove_from_parent();
    }
    let styled = document.select("style, link[rel~=stylesheet]").exists();
    comments(document);
    document.select(UNSEEN).remove();
    for node in document.select("[aria-hidden=true]").nodes() {
        // Icons and duplicates of formulas. It cannot be applied generally: pages also set it on all content while a dialog is open.
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
        // Without style sheets, the background is white.
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

/// Whether a style attribute hides its element.
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

/// The declarations of a style attribute, in lower case and without spaces.
fn declarations(style: &str) -> HashMap<String, String> {
    let pairs = style.split(';').filter_map(|declaration| declaration.split_once(':'));
    pairs.map(|(property, value)| (normal(property), normal(value))).collect()
}

fn normal(value: &str) -> String {
    let value: String = value.chars().filter(|character| !character.is_whitespace()).collect();
    value.to_ascii_lowercase().trim_end_matches("!important").to_owned()
}

/// A length in pixels; other units are not converted, as only zero and very large values matter.
fn pixels(value: &str) -> Option<f64> {
    let digits = value.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let number: f64 = digits.parse().ok()?;
    Some(match value.get(digits.len()..)? {
        "em" | "rem" => number * 16.0,
        "" | "px" | "pt" => number,
        _ => return (number == 0.0).then_some(0.0),
    })
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
}
