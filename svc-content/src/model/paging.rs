//! Page tokens (AIP-158) of lists in the order of name, then id.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_proto::domain::limits::PAGE;
use serde::{Deserialize, Serialize};

use crate::Error;

/// Where the next page begins: after this item. The number of all is carried along, so that it is counted once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cursor {
    #[serde(rename = "n")]
    pub(crate) name: String,
    #[serde(rename = "i")]
    pub(crate) id: String,
    #[serde(rename = "t")]
    pub(crate) total: u64,
}

/// Which page is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
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
            0 => PAGE,
            some => some.min(PAGE),
        };
        if token.is_empty() {
            return Ok(Self { size, after: None });
        }
        let bytes = URL_SAFE_NO_PAD.decode(token).ok();
        let cursor: Option<Cursor> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let is_storable = |cursor: &Cursor| !cursor.name.contains('\0') && !cursor.id.contains('\0');
        match cursor.filter(is_storable) {
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
    pub(crate) fn page<T>(
        &self,
        mut items: Vec<T>,
        total: u64,
        key: impl Fn(&T) -> (String, String),
    ) -> Page<T> {
        let size = self.size as usize;
        if items.len() <= size {
            return Page { items, next: String::new(), total };
        }
        items.truncate(size);
        let next =
            items.last().map(key).map(|(name, id)| Cursor { name, id, total }.encode()).unwrap_or_default();
        Page { items, next, total }
    }
}

impl Cursor {
    fn encode(&self) -> String {
        serde_json::to_vec(self).map(|bytes| URL_SAFE_NO_PAD.encode(bytes)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leads_to_the_next_page() {
        let request = PageRequest::new(2, "").unwrap();
        assert_eq!((request.fetch(), request.known_total(2), request.known_total(3)), (3, Some(2), None));
        let page = request.page(vec!["a", "b", "c"], 5, |name| ((*name).to_owned(), "id".to_owned()));
        assert_eq!(page.items, ["a", "b"]);
        let next = PageRequest::new(0, &page.next).unwrap();
        assert_eq!(next.after, Some(Cursor { name: "b".into(), id: "id".into(), total: 5 }));
        assert_eq!(next.size, PAGE);
        assert_eq!(next.known_total(3), Some(5));
        assert_eq!(request.page(vec!["a"], 1, |_| Default::default()).next, "");
    }

    #[test]
    fn a_foreign_token_is_refused() {
        for odd in ["x", "e30", "!!", &URL_SAFE_NO_PAD.encode(r#"{"n":"a\u0000","i":"","t":1}"#)] {
            assert!(PageRequest::new(0, odd).is_err(), "{odd}");
        }
        assert_eq!(PageRequest::new(5_000, "").unwrap().size, PAGE);
    }
}
