//! Finds elements that a page's embedded style sheets hide.
//!
//! Not a full browser: it applies the rules for a wide screen, by specificity and order. Rules for print, small screens, user preferences
//! and pointer states are ignored.

use std::collections::HashMap;
use std::ops::Deref;

use dom_query::{Document, Matcher, NodeId, NodeRef};

use super::hidden::hides;

/// Rules of a page's embedded style sheets.
const MAX_RULES: usize = 2_000;
/// Matches of an element against a compound selector.
const MAX_COMPARISONS: usize = 5_000_000;
/// Bytes of a selector.
const MAX_SELECTOR_BYTES: usize = 200;

/// The rules that affect visibility.
#[derive(Debug, Default)]
pub(super) struct Sheets {
    /// Rules of selectors with a single class or id, by name including `.` or `#`.
    names: HashMap<String, Verdict>,
    others: Vec<(String, Verdict)>,
}

/// The precedence and effect of a rule. The greatest one wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Verdict {
    /// The specificity: ids, classes and elements in the selector.
    weight: (usize, usize, usize),
    /// The order of the rule.
    order: usize,
    hides: bool,
}

impl Sheets {
    /// Parses style sheets in order.
    pub(super) fn of(sheets: impl Iterator<Item = impl Deref<Target = str>>) -> Self {
        let mut read = Self::default();
        let mut order = 0;
        for sheet in sheets {
            for (selectors, declarations) in rules(&sheet, MAX_RULES.saturating_sub(order)) {
                order += 1;
                let Some(hides) = says(&declarations) else { continue };
                for selector in selectors.split(',').map(str::trim) {
                    let verdict = Verdict { weight: weight(selector), order, hides };
                    if is_one_name(selector) {
                        read.names.insert(selector.to_owned(), verdict);
                    } else if is_comparable(selector) {
                        read.others.push((selector.to_owned(), verdict));
                    }
                }
            }
        }
        read
    }

    /// Whether an element with these classes and id is hidden by one of them, unless another shows it on larger screens, as in `hidden
    /// md:block`.
    pub(super) fn hides_named(&self, class: &str, id: Option<&str>) -> bool {
        self.verdict_on_names(class, id).is_some_and(|verdict| is_hidden(verdict, class))
    }

    fn verdict_on_names(&self, class: &str, id: Option<&str>) -> Option<Verdict> {
        let classes = class.split_ascii_whitespace().filter_map(|class| self.names.get(&format!(".{class}")));
        let id = id.and_then(|id| self.names.get(&format!("#{id}")));
        classes.chain(id).max().copied()
    }

    /// The elements that the style sheets hide. Never the root: scripts show it after loading.
    pub(super) fn hidden<'a>(&self, document: &'a Document) -> Vec<NodeRef<'a>> {
        let mut verdicts = self.names.values().chain(self.others.iter().map(|(_, verdict)| verdict));
        if !verdicts.any(|verdict| verdict.hides) {
            return Vec::new();
        }
        let mut judged: HashMap<NodeId, (NodeRef<'a>, Verdict)> = HashMap::new();
        let mut judge = |node: &NodeRef<'a>, verdict: Verdict| {
            let (_, known) = judged.entry(node.id).or_insert((*node, verdict));
            *known = verdict.max(*known);
        };
        for node in document.select("[class], [id]").nodes() {
            let (class, id) = (node.class().unwrap_or_default(), node.id_attr());
            if let Some(verdict) = self.verdict_on_names(&class, id.as_deref()) {
                judge(node, verdict);
            }
        }
        let elements = document.select("*").length();
        let mut left = MAX_COMPARISONS;
        let mut compared = |comparisons: usize| {
            let after = left.checked_sub(comparisons);
            left = after.unwrap_or_default();
            after.is_some()
        };
        for (matcher, verdict) in self.matchers(true) {
            if !compared(elements) {
                break;
            }
            document.select_matcher(&matcher).nodes().iter().for_each(|node| judge(node, verdict));
        }
        // Rules that show elements only matter if another one hides them.
        judged.retain(|_, (_, verdict)| verdict.hides);
        for (matcher, verdict) in self.matchers(false) {
            if !compared(judged.len()) {
                break;
            }
            for (node, known) in judged.values_mut() {
                if verdict > *known && node.is_match(&matcher) {
                    *known = verdict;
                }
            }
        }
        let is_page = |node: &NodeRef<'_>| node.has_name("html") || node.has_name("body");
        let hidden = judged.into_values().filter(|(node, verdict)| {
            is_hidden(*verdict, &node.class().unwrap_or_default()) && !is_page(node)
        });
        hidden.map(|(node, _)| node).collect()
    }

    /// The compound selectors that affect visibility.
    fn matchers(&self, hides: bool) -> impl Iterator<Item = (Matcher, Verdict)> {
        let others = self.others.iter().filter(move |(_, verdict)| verdict.hides == hides);
        others.filter_map(|(selector, verdict)| Some((Matcher::new(selector).ok()?, *verdict)))
    }
}

/// Whether declarations hide an element; `None` if they do not affect visibility.
fn says(declarations: &str) -> Option<bool> {
    let is_told =
        || ["display", "visibility", "opacity"].iter().any(|property| declarations.contains(property));
    let hides = hides(declarations);
    (hides || is_told()).then_some(hides)
}

fn is_hidden(verdict: Verdict, class: &str) -> bool {
    const SHOWN: [&str; 8] =
        ["block", "flex", "grid", "table", "inline", "contents", "table-cell", "table-row"];
    let shown = class.split_ascii_whitespace().any(|class| {
        class.rsplit_once(':').is_some_and(|(_, display)| SHOWN.contains(&display))
            || (class.starts_with("d-") && SHOWN.iter().any(|display| class.ends_with(display)))
    });
    let by_id = verdict.weight.0 > 0;
    verdict.hides && (by_id || !shown)
}

fn is_one_name(selector: &str) -> bool {
    selector.strip_prefix(['.', '#']).is_some_and(|name| {
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    })
}

/// Whether a selector matches static elements, and not states such as hover.
fn is_comparable(selector: &str) -> bool {
    !selector.is_empty() && selector.len() <= MAX_SELECTOR_BYTES && !selector.contains([':', '@', '\\'])
}

fn weight(selector: &str) -> (usize, usize, usize) {
    let compounds = selector.split([' ', '>', '+', '~', '\n', '\t']);
    let elements =
        compounds.filter(|name| name.starts_with(|first: char| first.is_ascii_alphabetic())).count();
    (selector.matches('#').count(), selector.matches(['.', '[']).count(), elements)
}

/// The assumed viewport.
const SCREEN_PIXELS: f64 = 1_280.0;
const PIXELS_OF_EM: f64 = 16.0;

/// Whether the rules of an at-rule's block apply.
fn is_group(prelude: &str) -> bool {
    let prelude = prelude.trim().to_ascii_lowercase();
    match prelude.strip_prefix("@media") {
        Some(queries) => queries.split(',').any(|query| holds(query.trim())),
        None => prelude.starts_with("@supports") || prelude.starts_with("@layer"),
    }
}

/// Whether a media query matches a wide screen without user preferences.
fn holds(query: &str) -> bool {
    let (is_negated, query) = match query.strip_prefix("not ") {
        Some(rest) => (true, rest),
        None => (false, query.strip_prefix("only ").unwrap_or(query)),
    };
    let is_met = query.split(" and ").all(|part| match part.trim() {
        "" | "all" | "screen" => true,
        part => part.strip_prefix('(').and_then(|part| part.strip_suffix(')')).is_some_and(is_wide),
    });
    is_met != is_negated
}

/// Whether a width condition matches a wide screen.
fn is_wide(feature: &str) -> bool {
    let Some((name, width)) = feature.split_once(':') else { return false };
    let width = width.trim();
    let number = |unit: &str| width.strip_suffix(unit)?.trim().parse::<f64>().ok();
    let ems = || number("rem").or_else(|| number("em")).map(|ems| ems * PIXELS_OF_EM);
    let Some(pixels) = number("px").or_else(ems) else { return false };
    match name.trim() {
        "min-width" => pixels <= SCREEN_PIXELS,
        "max-width" => pixels >= SCREEN_PIXELS,
        _ => false,
    }
}

/// The rules of a sheet that apply to a wide screen, up to a limit.
fn rules(sheet: &str, most: usize) -> Vec<(String, String)> {
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
            // Its closing brace does not end a rule.
            ('{', 0) if is_group(&selectors) => selectors.clear(),
            ('{', _) => depth += 1,
            ('}', 0) => selectors.clear(),
            ('}', 1) => {
                depth = 0;
                let (selectors, body) = (std::mem::take(&mut selectors), std::mem::take(&mut body));
                if !selectors.trim_start().starts_with('@') {
                    rules.push((selectors, body));
                }
                if rules.len() >= most {
                    break;
                }
            }
            ('}', _) => depth -= 1,
            // A block-less at-rule such as @charset or @import.
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

    /// The names of the elements that are still visible.
    fn seen(page: &str) -> String {
        let document = Document::from(page);
        let sheets = document.select("style");
        for node in Sheets::of(sheets.nodes().iter().map(NodeRef::text)).hidden(&document) {
            node.remove_from_parent();
        }
        document.select("p").text().to_string()
    }

    #[test]
    fn rules_for_paper_small_screens_and_pointers_do_not_count() {
        let sheet = "@import url(x); /* .c{display:none} */ .a, #b {display:none} .h:hover, .h:not(.x) {display:none} \
                     @media print { .d { display:none } } .e { display: none } .e { display: block }";
        let page = format!(
            "<style>{sheet}</style><p class=a>a</p><p id=b>b</p><p class=c>c</p><p class=d>d</p><p class=e>e</p><p class=h>h</p>"
        );
        assert_eq!(seen(&page), "cdeh");
    }

    #[test]
    fn rules_for_a_wide_screen_count() {
        let sheet = "@media screen { .a { display: none } } @media (min-width: 600px) {.b{display:none}} \
                     @media (max-width:600px){.c{display:none}} .d,.e{display:none} @media only screen and (min-width:48em){.d{display:block}} \
                     @media (min-width:1600px){.e{display:block}} @media not print{.f{display:none}} @media print, all {.g{display:none}} \
                     @media (prefers-reduced-motion){.h{display:none}} @supports (display:grid){ @layer x { .i{display:none} } } \
                     @keyframes show { from { opacity: 0 } } @container (min-width:1px){.j{display:none}} .k{display:none}";
        let shown: String = ('a'..='l').map(|name| format!("<p class={name}>{name}</p>")).collect();
        assert_eq!(seen(&format!("<style>{sheet}</style>{shown}")), "cdhjl");
        for odd in [
            "@media",
            "@media {",
            "@media (",
            "@media not",
            "@media (min-width:)",
            "} } .a{display:none}",
            "@layer a;",
        ] {
            let page = format!("<style>{odd}{{.b{{display:none}}}}</style><p class=z>z</p>");
            assert_eq!(seen(&page), "z", "{odd}");
        }
    }

    #[test]
    fn selectors_of_several_names_hide_too() {
        let sheet = "p.note{display:none} div .x, section > p[lang]{visibility:hidden} #a .y.z{opacity:0} q{display:none} {{{";
        let page = format!(
            "<style>{sheet}</style><p class=note>1</p><p class=x>2</p><div><b><p class=x>3</p></b></div>\
             <section><p lang=en>4</p><p>5</p></section><div id=a><p class='z y'>6</p><p class=z>7</p></div><span class=note></span>"
        );
        assert_eq!(seen(&page), "257");
    }

    #[test]
    fn of_two_rules_the_heavier_or_the_later_one_counts() {
        let sheet = ".tabs .pane{display:none} .tabs .active{display:block} .modal{display:none} #open.modal{display:flex} \
                     .one{display:none} .other{display:block} p{display:none} .text{display:block}";
        let page = format!(
            "<style>{sheet}</style><div class=tabs><p class='text pane'>1</p><p class='text pane active'>2</p></div>\
             <p class='text modal'>3</p><p class=modal id=open>4</p><p class='one other text'>5</p><p>6</p><p class=text>7</p>"
        );
        // The third: `.text` stands behind `.modal`.
        assert_eq!(seen(&page), "23457");
    }

    #[test]
    fn a_name_hides_unless_another_shows_it_on_larger_screens() {
        let page = "<style>.hidden,.d-none,#x{display:none}</style><p class=hidden>1</p><p class='hidden md:block'>2</p>\
                    <p class='d-none d-md-flex'>3</p><p id=x>4</p><p class=other>5</p>";
        assert_eq!(seen(page), "235");
    }

    #[test]
    fn the_page_itself_is_never_hidden() {
        assert_eq!(
            seen("<style>body{opacity:0} html.wait{visibility:hidden}</style><html class=wait><p>1</p>"),
            "1"
        );
    }

    #[test]
    fn comparisons_are_bounded() {
        let others: String = (0..1_000).map(|number| format!("div p.y{number}{{display:none}}")).collect();
        let page = |elements: usize| {
            let elements = "<div><p class=x>1</p></div>".repeat(elements);
            format!("<style>{others} div p.x{{display:none}}</style>{elements}")
        };
        assert_eq!(seen(&page(20)), "");
        let many = 5_000;
        assert_eq!(seen(&page(many)).len(), many, "the last rule is beyond what is compared");
    }
}
