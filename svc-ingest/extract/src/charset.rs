//! Bytes to text: by the byte order mark, by the charset that was sent, by the one that the document names, and last by
//! what the bytes look like.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// Where HTML names its charset (HTML standard, "prescan a byte stream": the first 1024 bytes).
const PRESCANNED: usize = 1024;

/// The text of these bytes, without a byte order mark. What is not of the charset becomes U+FFFD.
pub(crate) fn decode(bytes: &[u8], mime: Option<&str>, named: Option<&'static Encoding>) -> String {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(bytes.get(mark..).unwrap_or_default()).0.into_owned();
    }
    let sent = mime.and_then(of_media_type);
    let encoding = sent.or(named).unwrap_or_else(|| detect(bytes));
    encoding.decode_without_bom_handling(bytes).0.into_owned()
}

/// The charset parameter of a media type.
pub(crate) fn of_media_type(mime: &str) -> Option<&'static Encoding> {
    mime.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']);
        name.trim().eq_ignore_ascii_case("charset").then(|| Encoding::for_label(value.as_bytes())).flatten()
    })
}

/// The charset that HTML names in a `meta` element, or XML in its declaration.
pub(crate) fn named_in_markup(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = String::from_utf8_lossy(bytes.get(..PRESCANNED).unwrap_or(bytes)).to_ascii_lowercase();
    let declared = start.strip_prefix("<?xml").and_then(|rest| rest.split("?>").next());
    let xml = declared.and_then(|declaration| value_after(declaration, "encoding"));
    let meta =
        || start.split("<meta").skip(1).find_map(|rest| value_after(rest.split('>').next()?, "charset"));
    let encoding = xml.or_else(meta)?;
    // A document that could be read so far is not in UTF-16, whatever it says.
    Some(if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding })
}

fn value_after(text: &str, name: &str) -> Option<&'static Encoding> {
    let (_, rest) = text.split_once(name)?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let label: String =
        rest.chars().take_while(|char| !matches!(char, '"' | '\'' | ';' | ' ' | '/' | '>')).collect();
    Encoding::for_label(label.as_bytes())
}

fn detect(bytes: &[u8]) -> &'static Encoding {
    if std::str::from_utf8(bytes).is_ok() {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(bytes, true);
    detector.guess(None, Utf8Detection::Allow)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(bytes: &[u8], mime: Option<&str>) -> String {
        decode(bytes, mime, named_in_markup(bytes))
    }

    #[test]
    fn a_mark_is_believed_before_what_was_sent_and_that_before_what_is_named() {
        assert_eq!(html(b"\xEF\xBB\xBFcaf\xC3\xA9", Some("text/html; charset=iso-8859-1")), "café");
        assert_eq!(html(b"\xFF\xFEh\0i\0", None), "hi");
        let page = b"<meta charset=\"windows-1251\">\xEF\xF0\xE8";
        assert!(html(page, None).ends_with("при"));
        assert!(html(page, Some("text/html; charset=\"windows-1252\"")).ends_with("ïðè"));
        let old = b"<meta http-equiv=Content-Type content='text/html; charset=koi8-r'>\xD0\xD2\xC9";
        assert!(html(old, None).ends_with("при"));
        assert!(html(b"<?xml version='1.0' encoding='iso-8859-2'?>\xB3", None).ends_with('ł'));
    }

    #[test]
    fn without_any_the_bytes_tell() {
        assert_eq!(html("zażółć".as_bytes(), None), "zażółć");
        let (shift_jis, _, _) =
            encoding_rs::SHIFT_JIS.encode("これは日本語の文章です。文字コードを調べます。");
        assert_eq!(html(&shift_jis, None), "これは日本語の文章です。文字コードを調べます。");
        assert_eq!(html(b"caf\xE9 cr\xE8me", None), "café crème");
    }

    #[test]
    fn a_charset_that_nobody_knows_is_no_charset() {
        assert_eq!(html("é".as_bytes(), Some("text/html; charset=utf-99")), "é");
        assert_eq!(html("<meta charset=utf-16>é".as_bytes(), None), "<meta charset=utf-16>é");
    }
}
