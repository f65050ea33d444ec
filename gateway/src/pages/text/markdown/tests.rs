use std::collections::BTreeSet;

use html5gum::emitters::default::DefaultEmitter;
use html5gum::{Token, Tokenizer};
use proptest::prelude::*;

use super::*;

const STYLE: Style<'static> = Style {
    top_level: 2,
    first_line: 1,
    cited: None,
    relative: Relative::Folder { workspace: "w1", path: "/notes" },
    ids: "",
};

fn html(text: &str) -> String {
    render(text, STYLE).markup.into_string()
}

fn cited(text: &str, first: usize, last: usize) -> String {
    render(text, Style { cited: Some(Lines { first, last }), ..STYLE }).markup.into_string()
}

const ELEMENTS: &[&str] = &[
    "a",
    "b",
    "blockquote",
    "br",
    "code",
    "del",
    "div",
    "em",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "img",
    "input",
    "li",
    "ol",
    "p",
    "pre",
    "s",
    "span",
    "strong",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
];
const ATTRIBUTES: &[&str] = &[
    "alt",
    "aria-current",
    "aria-label",
    "checked",
    "class",
    "data-cited",
    "data-l",
    "disabled",
    "href",
    "id",
    "loading",
    "rel",
    "role",
    "scope",
    "src",
    "start",
    "tabindex",
    "title",
    "type",
];
/// Elements without an end tag.
const EMPTY: &[&str] = &["br", "hr", "img", "input"];

/// Faults of an HTML fragment: foreign elements and attributes, executable URLs, duplicate ids, unbalanced tags.
fn faults(html: &str) -> Vec<String> {
    let (mut faults, mut open, mut ids) = (Vec::new(), Vec::new(), BTreeSet::new());
    for token in Tokenizer::<_, DefaultEmitter<()>>::new(html) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => {
                let name = String::from_utf8_lossy(&tag.name).into_owned();
                if !ELEMENTS.contains(&name.as_str()) {
                    faults.push(format!("an element {name}"));
                }
                for (attribute, value) in &tag.attributes {
                    let attribute = String::from_utf8_lossy(attribute).into_owned();
                    let value = String::from_utf8_lossy(value).into_owned();
                    if !ATTRIBUTES.contains(&attribute.as_str()) {
                        faults.push(format!("an attribute {attribute}"));
                    }
                    let lower = value.to_lowercase();
                    let is_safe = match attribute.as_str() {
                        "src" => lower.starts_with("/api/assets/"),
                        "href" => {
                            let known = ["http://", "https://", "mailto:", "/", "#"];
                            known.iter().any(|start| lower.starts_with(start)) && !lower.starts_with("//")
                        }
                        "id" => {
                            ids.insert(value.clone())
                                && (value.starts_with("s-")
                                    || value.starts_with("fn")
                                    || value.starts_with('L'))
                        }
                        _ => true,
                    };
                    if !is_safe {
                        faults.push(format!("{attribute}={value}"));
                    }
                }
                if !EMPTY.contains(&name.as_str()) {
                    open.push(name);
                }
            }
            Token::EndTag(tag) => {
                let name = String::from_utf8_lossy(&tag.name).into_owned();
                if open.pop().as_deref() != Some(name.as_str()) {
                    faults.push(format!("an end of {name}"));
                }
            }
            Token::Comment(_) | Token::Doctype(_) => faults.push("a comment or doctype".to_owned()),
            Token::String(_) => {}
            Token::Error(error) => faults.push(format!("{error:?}")),
        }
    }
    if !open.is_empty() {
        faults.push(format!("open: {open:?}"));
    }
    faults
}

#[test]
fn what_markdown_has_is_shown() {
    for (text, part) in [
        ("one\ntwo", "<p data-l=\"1-2\">one\ntwo</p>"),
        ("a  \nb", "a<br>\nb"),
        ("*a* **b** ~~c~~ `d<`", "<em>a</em> <strong>b</strong> <s>c</s> <code>d&lt;</code>"),
        ("3. a\n4. b", "<ol start=\"3\">\n<li data-l=\"1\">a</li>"),
        ("- [x] a", "<input type=\"checkbox\" disabled checked aria-label=\"Done\"> a"),
        ("> a", "<blockquote data-l=\"1\">\n<p data-l=\"1\">a</p></blockquote>"),
        ("> [!WARNING]\n> a", "<div class=\"alert warning\" data-l=\"1-2\"><p><b>Warning</b></p>"),
        (
            "```json\n{\"a\": 1}\n```",
            "<code>{<span class=\"k\">&quot;a&quot;</span>: <span class=\"n\">1</span>}",
        ),
        ("```sh onclick=x\nls\n```", "<pre tabindex=\"0\" data-l=\"1-3\"><code>ls\n</code></pre>"),
        ("    <b>", "<code>&lt;b&gt;"),
        (
            "| a | b |\n|:-:|--:|\n| 1 | 2 |",
            "<th scope=\"col\" class=\"center\">a</th><th scope=\"col\" class=\"right\">b</th>",
        ),
        ("| a |\n|---|\n| 1<br>2 |", "<tr data-l=\"3\"><td>1<br>2</td></tr>"),
        ("[a](../b.md \"c\")", "<a href=\"/w/w1/open?path=%2Fb.md\" title=\"c\">a</a>"),
        ("[a](https://b.c)", "<a href=\"https://b.c\" rel=\"noopener noreferrer\">a</a>"),
        ("<a@b.c>", "<a href=\"mailto:a@b.c\" rel=\"noopener noreferrer\">a@b.c</a>"),
        ("[[Release notes|notes]]", "<a href=\"/w/w1/open?name=Release+notes\">notes</a>"),
        (
            "![a *b*](/api/assets/1/content)",
            "<img loading=\"lazy\" src=\"/api/assets/1/content\" alt=\"a b\">",
        ),
        ("![](https://b.c/d.png)", "<a href=\"https://b.c/d.png\" rel=\"noopener noreferrer\">Image</a>"),
        ("[![a](https://b.c)](https://d.e)", "<a href=\"https://d.e\" rel=\"noopener noreferrer\">a</a>"),
        (
            "a[^main]\n\n[^main]: b",
            "<sup><a href=\"#fn-1\" id=\"fnref-1\" aria-label=\"Footnote 1\">1</a></sup>",
        ),
        ("a[^main]\n\n[^main]: b", "<div class=\"footnote\" id=\"fn-1\"><sup>1</sup> <a href=\"#fnref-1\""),
        ("---", "<hr data-l=\"1\">"),
    ] {
        let html = html(text);
        assert!(html.contains(part), "{text:?}: {part} is not in {html}");
        assert_eq!(faults(&html), Vec::<String>::new(), "{text:?}: {html}");
    }
}

#[test]
fn html_is_shown_as_text() {
    for text in [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "<style>*{}</style>\n\n<!-- c -->",
        "<a href=\"javascript:alert(1)\">x</a>",
        "<svg/onload=alert(1)>",
        "</pre></main><script>",
        "<br onclick=x>",
        "<details open ontoggle=alert(1)>",
    ] {
        let html = html(text);
        assert_eq!(faults(&html), Vec::<String>::new(), "{text}: {html}");
        assert!(html.contains("&lt;"), "{html}");
    }
}

#[test]
fn attacks_come_out_harmless() {
    for text in [
        "[x](javascript:alert(1))",
        "[x](JAVASCRIPT&colon;alert(1))",
        "[x](java\tscript:alert(1))",
        "[x](&#106;&#97;vascript:alert(1))",
        "[x](&#x6A;avascript:alert(1))",
        "[x](javascript%3Aalert(1))",
        "[x](<java script:alert(1)>)",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](vbscript:msgbox(1))",
        "[x](//evil.example/x)",
        "[x](/\\evil.example)",
        "[x](\\\\evil.example)",
        "<javascript:alert(1)>",
        "<data:text/html,x>",
        "[a]: javascript:alert(1)\n\n[a]",
        "![x](javascript:alert(1))",
        "![x](/api/session)",
        "![\"><script>alert(1)</script>](/api/assets/1/content)",
        "[x](https://a.b \"\\\"onmouseover=alert(1) x=\")",
        "[x](https://a.b/\"onmouseover=alert(1))",
        "[[javascript:alert(1)]]",
        "# x {#main onclick=alert(1)}",
        "```\"><script>alert(1)</script>\nx\n```",
        "[^\"><script>]: x\n\n[^\"><script>]",
        "a\u{0}b [x](java\u{0}script:alert(1))",
        "[x](\u{1}javascript:alert(1))",
    ] {
        let html = html(text);
        assert_eq!(faults(&html), Vec::<String>::new(), "{text:?}: {html}");
        assert!(!html.contains("<script"), "{html}");
    }
    assert!(html("[x](javascript:alert(1))").contains("<a href=\"#\">x</a>"));
}

#[test]
fn headings_make_an_outline_without_gaps_and_with_ids_of_their_own() {
    let text = "# A\n#### B *b*\n# A\n# main\n# A.2\n";
    let rendered = render(text, STYLE);
    let told: Vec<(u8, &str, &str)> = rendered
        .outline
        .iter()
        .map(|heading| (heading.level, heading.text.as_str(), heading.id.as_str()))
        .collect();
    assert_eq!(
        told,
        [(2, "A", "s-a"), (3, "B b", "s-b-b"), (2, "A", "s-a.2"), (2, "main", "s-main"), (2, "A.2", "s-a2")]
    );
    let html = rendered.markup.into_string();
    assert!(html.contains("<h3 id=\"s-b-b\" data-l=\"2\">B <em>b</em></h3>"), "{html}");
    let as_page = render("# A\n## B", Style { top_level: 1, ..STYLE }).markup.into_string();
    assert!(as_page.starts_with("<h1 id=\"s-a\" data-l=\"1\">A</h1>"), "{as_page}");
}

#[test]
fn cited_lines_are_marked_in_their_blocks_alone() {
    let text = "---\na: 1\n---\n# H\n\none\ntwo\n\n- a\n  - b\n  - c\n- d\n\n| x |\n|---|\n| y |\n| z |\n";
    let marked = |first, last| -> Vec<String> {
        let html = cited(text, first, last);
        assert_eq!(faults(&html), Vec::<String>::new(), "{html}");
        let parts: Vec<&str> = html.split('<').filter(|part| part.contains("data-cited")).collect();
        assert_eq!(
            html.matches(&format!("id=\"L{first}\"")).count(),
            usize::from(!parts.is_empty()),
            "{html}"
        );
        parts
            .iter()
            .map(|part| part.split("data-l=\"").nth(1).unwrap().split('"').next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(marked(2, 2), ["1-3"]);
    assert_eq!(marked(4, 4), ["4"]);
    assert_eq!(marked(7, 7), ["6-7"]);
    assert_eq!(marked(10, 10), ["10"], "neither the item around it nor the one behind it");
    assert_eq!(marked(9, 9), ["9"]);
    assert_eq!(marked(11, 12), ["11", "12"]);
    assert_eq!(marked(17, 17), ["17"]);
    assert_eq!(marked(5, 5), Vec::<String>::new());
    assert_eq!(marked(90, 99), Vec::<String>::new());
    // A part counts lines from where it starts.
    let part = render(
        "one\n\ntwo",
        Style { first_line: 100, cited: Some(Lines { first: 102, last: 102 }), ..STYLE },
    );
    assert!(
        part.markup
            .into_string()
            .contains("<p data-l=\"102\" data-cited aria-current=\"true\" id=\"L102\">two</p>")
    );
}

#[test]
fn depth_is_cut() {
    for (text, tag) in [
        ("> ".repeat(2_000) + "a", "<blockquote"),
        ("- ".repeat(2_000) + "a", "<ul"),
        ("*a **b ".repeat(500) + &"** *".repeat(500), "<em"),
        ("[".repeat(500) + &"](x)".repeat(500), "<a"),
    ] {
        let html = html(&text);
        assert!(html.matches(tag).count() <= MAX_DEPTH, "{tag}");
        assert_eq!(faults(&html), Vec::<String>::new());
    }
}

/// Each of these made some Markdown parser quadratic. The test is that it terminates in reasonable time.
#[test]
fn odd_texts_take_time_in_proportion() {
    for part in [
        "[",
        "![",
        "[[",
        "*a ",
        "_a ",
        "`a",
        "``",
        "> ",
        "- ",
        "1. ",
        "# ",
        "|",
        "a|b\n",
        "<a ",
        "<!--",
        "&",
        "\\",
        "[^a]",
        "[^a]: ",
        "~",
        "~~a",
        "[a](",
        "[a](<",
        "\n- a",
        "a\n\n",
        "\t",
        "](",
        "]]",
        "![](/api/assets/1/content)",
        "- [x] ",
    ] {
        let text = part.repeat(200_000 / part.len());
        let html = cited(&text, 1, 3);
        assert!(html.len() < 40 * text.len() + 1_000, "{part:?}: {}", html.len());
    }
    let table = format!("|{}\n|{}\n", "a|".repeat(50_000), "-|".repeat(50_000));
    assert!(html(&table).contains("<table>"));
}

proptest! {
    #[test]
    fn nothing_but_our_own_elements_comes_out(
        text in "(\\PC|[\\n\\t \\[\\]()<>*_`#|&;:/!^~=-]|- |> |\\]\\(|\\[\\[|\\[\\^a\\]|<a |&#|---\\n|\\n\\n){0,60}",
        first in 1_usize..5,
    ) {
        let html = cited(&text, first, first + 2);
        prop_assert_eq!(faults(&html), Vec::<String>::new(), "{}", html);
    }
}

#[test]
fn several_texts_of_a_page_share_no_ids() {
    let text = "# A\n[a](#a) x[^1]\n\n[^1]: note\n";
    let html = render(text, Style { ids: "d2-", ..STYLE }).markup.into_string();
    for part in [
        "id=\"d2-s-a\"",
        "href=\"#d2-s-a\"",
        "id=\"d2-fn-1\"",
        "href=\"#d2-fn-1\"",
        "id=\"d2-fnref-1\"",
        "href=\"#d2-fnref-1\"",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
}
