//! Page tokens (AIP-158) of lists with the newest first: what comes meanwhile stands before them and disturbs no page.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_proto::ids::DocumentId;
use serde::{Deserialize, Serialize};

use crate::Error;

/// Which limits a list has.
const DEFAULT_PAGE: u32 = 50;
const MAX_PAGE: u32 = 1_000;

/// Where the next page begins: before this item. The number of all is carried along, so that it is counted once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cursor {
    #[serde(rename = "i")]
    pub(crate) id: DocumentId,
    #[serde(rename = "t")]
    pub(crate) total: u64,
}

/// Which page is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageRequest {
    pub(crate) size: u32,
    /// Absent for the first.
    pub(crate) after: Option<Cursor>,
}

/// A page of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// Empty after the last page.
    pub(crate) next: String,
    /// How many there are on all pages.
    pub(crate) total: u64,
}

impl PageRequest {
    /// From the fields of a request.
    pub(crate) fn new(size: u32, token: &str) -> Result<Self, Error> {
        let size = match size {
            0 => DEFAULT_PAGE,
            some => some.min(MAX_PAGE),
        };
        if token.is_empty() {
            return Ok(Self { size, after: None });
        }
        let bytes = URL_SAFE_NO_PAD.decode(token).ok();
        let cursor: Option<Cursor> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        match cursor {
            Some(after) => Ok(Self { size, after: Some(after) }),
            None => {
                Err(Error::invalid("pageToken", "invalid", "send the token of the previous page as it came"))
            }
        }
    }

    /// One more than the page holds, to learn whether another follows.
    pub(crate) fn fetch(&self) -> i64 {
        i64::from(self.size) + 1
    }

    /// Whether the number of all follows from what was fetched.
    pub(crate) fn known_total(&self, fetched: usize) -> Option<u64> {
        match &self.after {
            Some(after) => Some(after.total),
            None if fetched <= self.size as usize => Some(fetched as u64),
            None => None,
        }
    }

    /// The page out of what was fetched.
    pub(crate) fn page<T>(&self, mut items: Vec<T>, total: u64, id: impl Fn(&T) -> DocumentId) -> Page<T> {
        let size = self.size as usize;
        if items.len() <= size {
            return Page { items, next: String::new(), total };
        }
        items.truncate(size);
        let next = items.last().map(|last| Cursor { id: id(last), total }.encode()).unwrap_or_default();
        Page { items, next, total }
    }
}

impl Cursor {
    fn encode(self) -> String {
        serde_json::to_vec(&self).map(|bytes| URL_SAFE_NO_PAD.encode(bytes)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_token_leads_to_the_next_page() {
        let request = PageRequest::new(2, "").unwrap();
        assert_eq!((request.fetch(), request.known_total(2), request.known_total(3)), (3, Some(2), None));
        let ids = [3, 2, 1].map(|number| DocumentId(Uuid::from_u128(number)));
        let page = request.page(ids.to_vec(), 5, |id| *id);
        assert_eq!(page.items, ids[..2]);
        let next = PageRequest::new(0, &page.next).unwrap();
        assert_eq!(next.after, Some(Cursor { id: ids[1], total: 5 }));
        assert_eq!((next.size, next.known_total(3)), (DEFAULT_PAGE, Some(5)));
        assert_eq!(request.page(ids[..1].to_vec(), 1, |id| *id).next, "");
        for odd in ["x", "e30", "!!"] {
            assert!(PageRequest::new(0, odd).is_err(), "{odd}");
        }
        assert_eq!(PageRequest::new(5_000, "").unwrap().size, MAX_PAGE);
    }
}
