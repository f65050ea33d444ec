//! Page tokens (AIP-158) of lists in the order of names, and of runs.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::Error;

/// Which limits a list has.
const DEFAULT_PAGE: u32 = 50;
const MOST_PAGE: u32 = 200;

/// Where the next page begins: after this item. The number of all is carried along, so that it is counted once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursor {
    #[serde(rename = "n")]
    pub(super) name: String,
    #[serde(rename = "i")]
    pub(super) id: String,
    #[serde(rename = "t")]
    pub(super) total: Option<u64>,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// Empty after the last page.
    pub(crate) next: String,
    /// How many there are on all pages.
    pub(crate) total: u64,
}

/// Where a page begins; an empty token is the first.
pub(super) fn read(token: &str) -> Result<Cursor, Error> {
    if token.is_empty() {
        return Ok(Cursor::default());
    }
    let bytes = URL_SAFE_NO_PAD.decode(token).ok();
    let cursor: Option<Cursor> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let is_storable = |cursor: &Cursor| !cursor.name.contains('\0') && !cursor.id.contains('\0');
    let message = "send the token of the previous page as it came";
    cursor.filter(is_storable).ok_or_else(|| Error::invalid("pageToken", "invalid", message))
}

/// How many items a page has.
pub(super) fn size(asked: u32) -> usize {
    let size = if asked == 0 { DEFAULT_PAGE } else { asked.min(MOST_PAGE) };
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// A page out of what was fetched: one more than it holds, where there is one.
pub(super) fn page<T>(
    mut items: Vec<T>,
    size: usize,
    total: u64,
    key: impl Fn(&T) -> (String, String),
) -> Page<T> {
    if items.len() <= size {
        return Page { items, next: String::new(), total };
    }
    items.truncate(size);
    let next = items.last().map(key).map(|(name, id)| Cursor { name, id, total: Some(total) });
    let next = next.and_then(|cursor| serde_json::to_vec(&cursor).ok());
    Page { items, next: next.map(|bytes| URL_SAFE_NO_PAD.encode(bytes)).unwrap_or_default(), total }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leads_to_the_next_page() {
        let page = page(vec!["a", "b", "c"], 2, 5, |name| ((*name).to_owned(), "id".to_owned()));
        assert_eq!(page.items, ["a", "b"]);
        let next = read(&page.next).unwrap();
        assert_eq!(next, Cursor { name: "b".into(), id: "id".into(), total: Some(5) });
        assert_eq!(super::page(vec!["a"], 2, 1, |_| Default::default()).next, "");
        assert_eq!((size(0), size(7), size(1_000)), (50, 7, 200));
        for odd in ["x", "!!", &URL_SAFE_NO_PAD.encode(r#"{"n":"a\u0000","i":"","t":1}"#)] {
            assert!(read(odd).is_err(), "{odd}");
        }
    }
}
