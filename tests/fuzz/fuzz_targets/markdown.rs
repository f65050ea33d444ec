//! Shows any text as the console does: as Markdown, as source, and beside another text.
//!
//! The module is compiled as it stands in the gateway, which shows it to nobody: `tests/fuzz/run.sh markdown`.
#![no_main]

#[path = "../../../gateway/src/pages"]
mod pages {
    #![allow(dead_code, unused_imports, reason = "the gateway uses what is not used here")]

    mod text;

    use std::collections::BTreeSet;

    use html5gum::emitters::default::DefaultEmitter;
    use html5gum::{Token, Tokenizer};

    use self::text::{Language, Lines, Relative, Style, compare, nearest, problems, render, source_lines};

    /// Elements that have no end.
    const EMPTY: [&[u8]; 4] = [b"br", b"hr", b"img", b"input"];
    /// Beside quotes, lists and emphasis, of which the writer counts 32 each, some stand in each other: a table's cell, an alert.
    const MAX_DEPTH: usize = 200;
    /// What a page may be larger than its text: each sign may be written as a word, and each line begin an element.
    const MAX_RATIO: usize = 200;
    /// Cells that the rows of a table lack are filled in, by a parser that bounds their number.
    const FILLED_IN: usize = 8 << 20;

    /// The first line says how the text is shown; a line of `====` divides it into two that are compared.
    pub(crate) fn show(input: &str) {
        let (first, text) = input.split_once('\n').unwrap_or_default();
        let folder = Relative::Folder { workspace: "w1", path: "/notes" };
        let relative = if first.contains('p') { Relative::Page } else { folder };
        let cited =
            Lines::parse(first.trim_matches(|letter: char| !letter.is_ascii_digit() && letter != '-'));
        let style = Style { top_level: 2, first_line: 1, cited, relative, ids: "" };
        let shown = render(text, style);
        let html = shown.markup.into_string();
        let ids = check(&html, relative);
        for heading in &shown.outline {
            assert!((2..=6).contains(&heading.level), "a heading of level {}", heading.level);
            assert!(ids.contains(heading.id.as_bytes()), "no element has the id {}", heading.id);
        }
        assert!(html.len() <= text.len() * MAX_RATIO + FILLED_IN, "{} bytes of {}", html.len(), text.len());

        for language in [Language::Json, Language::Yaml, Language::Markdown, Language::Plain] {
            let lines: Vec<String> = source_lines(language, text).map(|line| line.into_string()).collect();
            assert_eq!(lines.len(), text.lines().count());
            for line in &lines {
                drop(check(line, relative));
            }
        }
        for told in [problems::of_yaml(text), problems::of_front_matter(text)].into_iter().flatten() {
            assert!(!told.is_empty());
        }
        let (old, new) = text.split_once("\n====\n").unwrap_or((text, ""));
        beside(old, new, relative);
    }

    /// Both texts come out of a comparison as they went in, and what is found again stands there.
    fn beside(old: &str, new: &str, relative: Relative<'_>) {
        let compared = compare(old, new);
        let (mut before, mut after) = (String::new(), String::new());
        for (is_same, old, new) in compared.parts() {
            assert!(!is_same || old == new);
            before.extend(old.iter().copied());
            after.extend(new.iter().copied());
        }
        assert!(before == old && after == new, "a comparison loses no line");
        drop(check(&compared.markup().into_string(), relative));
        if let Some(found) = nearest(old, new) {
            assert!(1 <= found.lines.first && found.lines.first <= found.lines.last);
            assert!(found.lines.last <= old.split('\n').count());
        }
    }

    /// Elements are closed in their order, none of them runs anything, addresses lead where a reader can go, and ids are given
    /// once; tells the ids.
    fn check(html: &str, relative: Relative<'_>) -> BTreeSet<Vec<u8>> {
        let (mut open, mut ids) = (Vec::new(), BTreeSet::new());
        for token in Tokenizer::<_, DefaultEmitter<()>>::new(html) {
            let Ok(token) = token;
            match token {
                Token::StartTag(tag) => {
                    let name: &[u8] = &tag.name;
                    let is_ours =
                        !matches!(name, b"script" | b"style" | b"iframe" | b"object" | b"form" | b"svg");
                    assert!(is_ours, "{html}");
                    for (attribute, value) in &tag.attributes {
                        let attribute: &[u8] = attribute;
                        let value: &[u8] = value;
                        assert!(!attribute.starts_with(b"on") && attribute != b"style", "{html}");
                        match attribute {
                            b"src" => assert!(value.starts_with(b"/api/assets/"), "{html}"),
                            b"href" => assert!(is_harmless(value, relative), "{html}"),
                            b"id" => assert!(ids.insert(value.to_vec()), "an id is given twice: {html}"),
                            _ => {}
                        }
                    }
                    if !EMPTY.contains(&name) {
                        open.push(name.to_vec());
                        assert!(open.len() <= MAX_DEPTH, "{} elements in each other", open.len());
                    }
                }
                Token::EndTag(tag) => {
                    let name: &[u8] = &tag.name;
                    assert_eq!(open.pop().as_deref(), Some(name), "{html}");
                }
                Token::Comment(_) | Token::Doctype(_) => panic!("a comment or doctype: {html}"),
                Token::String(_) => {}
                // What somebody has written into a text is shown as it is.
                Token::Error(error) if is_of_text(&error.value) => {}
                Token::Error(error) => panic!("{error:?}: {html}"),
            }
        }
        assert!(open.is_empty(), "{html}");
        ids
    }

    fn is_of_text(error: &html5gum::Error) -> bool {
        matches!(
            error,
            html5gum::Error::ControlCharacterInInputStream | html5gum::Error::NoncharacterInInputStream
        )
    }

    fn is_harmless(address: &[u8], relative: Relative<'_>) -> bool {
        let lower = address.to_ascii_lowercase();
        let known: [&[u8]; 5] = [b"http://", b"https://", b"mailto:", b"/", b"#"];
        if known.iter().any(|start| lower.starts_with(start)) {
            return !lower.starts_with(b"//");
        }
        // What is relative to the page has no scheme.
        let start = lower.split(|byte| matches!(byte, b'/' | b'?' | b'#')).next().unwrap_or_default();
        matches!(relative, Relative::Page) && !start.contains(&b':')
    }
}

libfuzzer_sys::fuzz_target!(|input: &str| pages::show(input));
