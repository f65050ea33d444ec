//! Streaming parser for untrusted XML: no custom entities, no document type, bounded depth.

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::Fault;

/// Feeds may contain whole pages as elements.
const MAX_DEPTH: usize = 128;
/// Bytes of a text; no value of interest is longer.
const MAX_TEXT_BYTES: usize = 64 * 1024;

const NOT_XML: Fault = Fault::broken("the provider's answer is not the XML that it should be");

/// A parse event, with local names.
pub(crate) enum Node<'a> {
    /// The start of an element.
    Open(&'a str),
    /// An attribute of the last started element: name and value.
    Attribute(&'a str, &'a str),
    /// The end of an element, with its own text, trimmed.
    Close(&'a str, &'a str),
}

/// Reports every element of a document.
///
/// # Errors
/// [`Fault::Broken`] if it is not XML, has a document type, or is nested deeper than 128 levels.
pub(crate) fn read(document: &[u8], mut tell: impl FnMut(Node<'_>)) -> Result<(), Fault> {
    let document = String::from_utf8_lossy(document);
    let mut reader = Reader::from_str(&document);
    reader.config_mut().expand_empty_elements = true;
    let mut texts: Vec<String> = Vec::new();
    let mut seen_any = false;
    loop {
        match reader.read_event().map_err(|_| NOT_XML)? {
            Event::Start(start) => {
                seen_any = true;
                if texts.len() >= MAX_DEPTH {
                    return Err(NOT_XML);
                }
                texts.push(String::new());
                tell(Node::Open(local(start.local_name().as_ref())));
                attributes(&start, &mut tell)?;
            }
            Event::End(end) => {
                let text = texts.pop().ok_or(NOT_XML)?;
                tell(Node::Close(local(end.local_name().as_ref()), text.trim()));
            }
            Event::Text(text) => add(&mut texts, &text.decode().map_err(|_| NOT_XML)?),
            Event::CData(text) => add(&mut texts, &text.decode().map_err(|_| NOT_XML)?),
            Event::GeneralRef(reference) => add(&mut texts, character(&reference)?.as_str()),
            Event::DocType(_) => {
                return Err(Fault::broken("the provider's XML has a document type, which is refused"));
            }
            Event::Eof if texts.is_empty() && seen_any => return Ok(()),
            Event::Eof => return Err(NOT_XML),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

fn attributes(start: &BytesStart<'_>, tell: &mut impl FnMut(Node<'_>)) -> Result<(), Fault> {
    // The duplicate check is off, as it takes quadratic time.
    let mut attributes = start.attributes();
    for attribute in attributes.with_checks(false) {
        let attribute = attribute.map_err(|_| NOT_XML)?;
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|_| NOT_XML)?;
        if value.len() <= MAX_TEXT_BYTES {
            tell(Node::Attribute(local(attribute.key.local_name().as_ref()), &value));
        }
    }
    Ok(())
}

fn local(name: &[u8]) -> &str {
    std::str::from_utf8(name).unwrap_or_default()
}

fn add(texts: &mut [String], more: &str) {
    if let Some(text) =
        texts.last_mut().filter(|text| text.len().saturating_add(more.len()) <= MAX_TEXT_BYTES)
    {
        text.push_str(more);
    }
}

/// One of the five predefined entities, or a character reference.
fn character(reference: &BytesRef<'_>) -> Result<String, Fault> {
    if let Some(character) = reference.resolve_char_ref().map_err(|_| NOT_XML)? {
        return Ok(character.to_string());
    }
    let known = match reference.decode().map_err(|_| NOT_XML)?.as_ref() {
        "quot" => "\"",
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "apos" => "'",
        _ => return Err(NOT_XML),
    };
    Ok(known.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(document: &str) -> Result<Vec<(String, String)>, Fault> {
        let mut found = Vec::new();
        read(document.as_bytes(), |node| {
            if let Node::Close(name, text) = node {
                found.push((name.to_owned(), text.to_owned()));
            }
        })?;
        Ok(found)
    }

    #[test]
    fn texts_are_told_with_their_characters() {
        let found = leaves(
            "<?xml version='1.0'?><a:l xmlns:a='x'><k> a&amp;b&#x41; </k><e/><c><![CDATA[<&>]]></c></a:l>",
        );
        let wanted = [("k", "a&bA"), ("e", ""), ("c", "<&>"), ("l", "")];
        assert_eq!(found.unwrap(), wanted.map(|(name, text)| (name.to_owned(), text.to_owned())));
    }

    #[test]
    fn attributes_are_told_behind_their_element() {
        let mut found = Vec::new();
        let document = "<a><l x:href='/b?c&amp;d' rel=\"self\"/></a>";
        let told = read(document.as_bytes(), |node| match node {
            Node::Open(name) => found.push(name.to_owned()),
            Node::Attribute(name, value) => found.push(format!("{name}={value}")),
            Node::Close(..) => {}
        });
        assert_eq!(
            (told, found),
            (Ok(()), ["a", "l", "href=/b?c&d", "rel=self"].map(str::to_owned).to_vec())
        );
        assert_eq!(read(b"<a b='&x;'></a>", |_| {}), Err(NOT_XML));
    }

    #[test]
    fn what_could_grow_is_refused() {
        let bomb = "<!DOCTYPE a [<!ENTITY b \"bbbb\"><!ENTITY c \"&b;&b;\">]><a>&c;</a>";
        assert!(matches!(leaves(bomb), Err(Fault::Broken(_))));
        assert_eq!(leaves("<a>&other;</a>"), Err(NOT_XML));
        assert_eq!(leaves(&format!("{}{}", "<a>".repeat(200), "</a>".repeat(200))), Err(NOT_XML));
        for odd in ["", "no xml", "<a>", "<a></b>", "{\"a\":1}", "<html><body><p>"] {
            assert!(leaves(odd).is_err(), "{odd}");
        }
        let long = leaves(&format!("<a>{}</a>", "x".repeat(100_000))).unwrap();
        assert_eq!(long[0].1, "");
    }
}
