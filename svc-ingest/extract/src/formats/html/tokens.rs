//! Token-level processing of HTML: detects input that would overload a tree-building parser, and extracts its text without a tree.
//!
//! Nesting of thousands of levels costs html5ever quadratic time, and overflows the stack when the tree is walked.

use std::convert::Infallible;

use html5gum::emitters::default::DefaultEmitter;
use html5gum::{StartTag, StringReader, Token, Tokenizer};

use super::sheets::Sheets;
use crate::clean;

/// The maximum nesting depth, as in browsers.
const MAX_OPEN: usize = 512;
const MAX_ELEMENTS: usize = 500_000;
/// Attributes of an element, as the parser compares each with all others.
const MAX_ATTRIBUTES: usize = 500;

const VOID: [&[u8]; 14] = [
    b"area", b"base", b"br", b"col", b"embed", b"hr", b"img", b"input", b"link", b"meta", b"param",
    b"source", b"track", b"wbr",
];
/// Elements with optional end tags, which the next one of their kind closes.
const ENDED_BY_THE_NEXT: [&[u8]; 17] = [
    b"a",
    b"p",
    b"li",
    b"dt",
    b"dd",
    b"tr",
    b"td",
    b"th",
    b"tbody",
    b"thead",
    b"tfoot",
    b"colgroup",
    b"option",
    b"optgroup",
    b"rp",
    b"rt",
    b"body",
];

fn tokens(html: &str) -> impl Iterator<Item = Token> {
    let mut emitter = DefaultEmitter::<()>::default();
    emitter.naively_switch_states(true);
    let tokenizer: Tokenizer<StringReader<'_>, _> = Tokenizer::new_with_emitter(html, emitter);
    tokenizer.map(|token| token.unwrap_or_else(|never: Infallible| match never {}))
}

/// Whether the page can safely be parsed into a tree.
pub(super) fn can_be_a_tree(html: &str) -> bool {
    let (mut open, mut elements) = (0_usize, 0_usize);
    for token in tokens(html) {
        match token {
            Token::StartTag(tag) => {
                elements += 1;
                let name: &[u8] = &tag.name;
                if !tag.self_closing && !VOID.contains(&name) && !ENDED_BY_THE_NEXT.contains(&name) {
                    open += 1;
                }
                if open > MAX_OPEN || elements > MAX_ELEMENTS || tag.attributes.len() > MAX_ATTRIBUTES {
                    return false;
                }
            }
            Token::EndTag(tag) => {
                let name: &[u8] = &tag.name;
                if !ENDED_BY_THE_NEXT.contains(&name) {
                    open = open.saturating_sub(1);
                }
            }
            Token::String(_) | Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    true
}

/// The embedded style sheets of a page.
fn sheets(html: &str) -> Sheets {
    let (mut sheets, mut is_open) = (Vec::new(), false);
    for token in tokens(html) {
        match token {
            Token::StartTag(tag) => {
                let name: &[u8] = &tag.name;
                is_open = name == b"style";
                if is_open {
                    sheets.push(String::new());
                }
            }
            Token::EndTag(_) => is_open = false,
            Token::String(string) if is_open => {
                let string: &[u8] = &string;
                if let Some(sheet) = sheets.last_mut() {
                    sheet.push_str(&String::from_utf8_lossy(string));
                }
            }
            Token::String(_) | Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    Sheets::of(sheets.into_iter())
}

/// Whether its attributes, or simple rules of the style sheets, hide an element.
fn is_hidden(tag: &StartTag<()>, sheets: &Sheets) -> bool {
    let (mut class, mut id, mut hidden) = (String::new(), None, false);
    for (attribute, value) in &tag.attributes {
        let (attribute, value): (&[u8], &[u8]) = (attribute, value);
        match attribute {
            b"hidden" => hidden = true,
            b"style" => hidden |= super::hidden::hides(&String::from_utf8_lossy(value)),
            b"class" => class = String::from_utf8_lossy(value).into_owned(),
            b"id" => id = Some(String::from_utf8_lossy(value).into_owned()),
            _ => {}
        }
    }
    hidden || sheets.hides_named(&class, id.as_deref())
}

/// The title and the text of a page, one line per block. Only rules with a single class or id are applied.
pub(super) fn words(html: &str) -> (Option<String>, String) {
    const UNSEEN: [&[u8]; 8] =
        [b"script", b"style", b"template", b"noscript", b"nav", b"aside", b"footer", b"svg"];
    const INLINE: [&[u8]; 12] =
        [b"a", b"b", b"i", b"em", b"strong", b"span", b"code", b"u", b"small", b"sub", b"sup", b"font"];
    let sheets = sheets(html);
    let (mut title, mut text) = (String::new(), String::new());
    let mut in_title = false;
    // The element that is being skipped, and its nesting depth in elements of the same name.
    let mut skipped: Option<(Vec<u8>, usize)> = None;
    for token in tokens(html) {
        match token {
            Token::StartTag(tag) => {
                let name: &[u8] = &tag.name;
                if let Some((unseen, open)) = &mut skipped {
                    *open += usize::from(unseen == name);
                    continue;
                }
                let is_page = name == b"html" || name == b"body";
                let hidden = !is_page && is_hidden(&tag, &sheets);
                if UNSEEN.contains(&name) || (hidden && !VOID.contains(&name) && !tag.self_closing) {
                    skipped = Some((name.to_vec(), 1));
                }
                in_title = name == b"title";
                if !INLINE.contains(&name) {
                    text.push('\n');
                }
            }
            Token::EndTag(tag) => {
                let name: &[u8] = &tag.name;
                in_title = false;
                skipped = skipped.and_then(|(unseen, open)| match open - usize::from(unseen == name) {
                    0 => None,
                    open => Some((unseen, open)),
                });
                if !INLINE.contains(&name) {
                    text.push('\n');
                }
            }
            Token::String(string) if skipped.is_none() => {
                let string: &[u8] = &string;
                let place = if in_title { &mut title } else { &mut text };
                place.push_str(&String::from_utf8_lossy(string));
            }
            Token::String(_) | Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    (clean::title(&title), lines.join("\n"))
}
