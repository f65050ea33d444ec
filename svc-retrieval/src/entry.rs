//! The index form of a catalog entry: one chunk with everything that it is found by.

use cairn_proto::document::v1::Document;

/// Letters of the word that encodes an address: 96 bits.
const ADDRESS_LETTERS: usize = 24;

/// The lines of an entry's chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    /// The document's title.
    pub(crate) title: &'a str,
    /// The source's name and the folders that the document stands in.
    pub(crate) folders: &'a str,
    /// The word that encodes its address; empty without one.
    pub(crate) address: &'a str,
}

impl<'a> Entry<'a> {
    /// Parses the text of a chunk. Chunks of earlier versions have only the title line.
    pub(crate) fn read(text: &'a str) -> Self {
        let mut lines = text.lines();
        let mut next = || lines.next().unwrap_or_default();
        Self { title: next(), folders: next(), address: next() }
    }
}

/// The text of an entry's chunk.
pub(crate) fn text(document: &Document) -> String {
    let folders = document.path.rsplit_once('/').map_or("", |(folders, _)| folders);
    let folders = folders.strip_prefix("/sources/").unwrap_or(folders);
    let address = document.url.as_deref().map(address_word).unwrap_or_default();
    format!("{}\n{}\n{address}", one_line(&document.title), one_line(folders))
}

/// Encodes an address as one word, so that it matches as a whole and not by its parts. Ignores scheme, fragment and a trailing
/// slash.
pub(crate) fn address_word(url: &str) -> String {
    let url = url.trim();
    let place = url.split_once("://").map_or(url, |(_, place)| place);
    let place = place.split_once('#').map_or(place, |(place, _)| place).trim_end_matches('/');
    let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let hash = blake3::hash(format!("{}{path}", host.to_lowercase()).as_bytes());
    let halves = hash.as_bytes().iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves.take(ADDRESS_LETTERS).map(|half| char::from(b'a' + half)).collect()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let document = Document {
            title: "Rollout\nplan".to_owned(),
            path: "/sources/Team wiki/Plans/Rollout plan.md".to_owned(),
            url: Some("https://wiki.example/p/1#top".to_owned()),
            ..Document::default()
        };
        let written = text(&document);
        let address = address_word("https://wiki.example/p/1");
        let expected = Entry { title: "Rollout plan", folders: "Team wiki/Plans", address: &address };
        assert_eq!(Entry::read(&written), expected);
        assert_eq!(Entry::read("Old"), Entry { title: "Old", folders: "", address: "" });
        assert_eq!(Entry::read(&text(&Document::default())), Entry { title: "", folders: "", address: "" });
    }

    #[test]
    fn an_address_has_one_word_however_it_is_written() {
        let word = address_word("https://Wiki.example/p/1");
        for same in ["http://wiki.example/p/1/", "wiki.example/p/1#a", " https://wiki.example/p/1 "] {
            assert_eq!(address_word(same), word, "{same}");
        }
        for other in ["https://wiki.example/P/1", "https://wiki.example/p/1?v=2", ""] {
            assert_ne!(address_word(other), word, "{other}");
        }
        assert!(word.len() == ADDRESS_LETTERS && word.bytes().all(|byte| byte.is_ascii_lowercase()));
    }
}
