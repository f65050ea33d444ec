//! Decodes feeds, most of which are UTF-8.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// Bytes that are searched for an XML declaration.
const DECLARATION: usize = 256;

/// Decodes a document by its byte order mark, else by the charset in the header, else by its declaration. Invalid bytes become U+FFFD.
pub(super) fn decode<'a>(bytes: &'a [u8], mime: Option<&str>) -> Cow<'a, str> {
    let encoding = mime.and_then(sent).or_else(|| declared(bytes)).unwrap_or(UTF_8);
    encoding.decode(bytes).0
}

fn sent(mime: &str) -> Option<&'static Encoding> {
    mime.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let label = value.trim().trim_matches(['"', '\'']);
        name.trim().eq_ignore_ascii_case("charset").then(|| Encoding::for_label(label.as_bytes())).flatten()
    })
}

fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = String::from_utf8_lossy(bytes.get(..DECLARATION).unwrap_or(bytes)).into_owned();
    let declaration = start.strip_prefix("<?xml")?.split("?>").next()?;
    let (_, value) = declaration.split_once("encoding")?;
    let label = value.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let encoding = Encoding::for_label(label.split(['"', '\'']).next()?.as_bytes())?;
    // A declaration that is readable as ASCII is not UTF-16, whatever it claims.
    Some(if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_believed_before_what_was_sent_and_that_before_what_is_declared() {
        let declared = b"<?xml version='1.0' encoding='ISO-8859-2'?><a>\xB3</a>";
        assert!(decode(declared, None).ends_with("<a>ł</a>"));
        assert!(decode(declared, Some("text/xml; charset=\"windows-1251\"")).ends_with("<a>і</a>"));
        assert_eq!(decode(b"\xFF\xFE<\0a\0", Some("text/xml; charset=utf-8")), "<a");
        assert_eq!(decode("<a>é".as_bytes(), Some("text/xml; charset=utf-99")), "<a>é");
        assert_eq!(decode(b"<?xml encoding='utf-16'?>\xC3\xA9", None), "<?xml encoding='utf-16'?>é");
        assert_eq!(decode(b"\xE9", None), "\u{FFFD}");
    }
}
