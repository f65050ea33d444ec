//! Page tokens (AIP-158) of lists that are sorted by name, then id.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::status::{Problem, Violation};

/// The cursor after an item, where the next page begins. It carries the total, so that it is counted only once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// The sort key of the item; empty in a list that is sorted by ids alone.
    #[serde(rename = "n")]
    pub name: String,
    /// The id of the last item of the previous page.
    #[serde(rename = "i")]
    pub id: String,
    /// The number of items on all pages.
    #[serde(rename = "t")]
    pub total: u64,
}

/// The page sizes of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// When the request has none.
    pub default: u32,
    /// The maximum.
    pub most: u32,
}

/// A request for a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// The maximum number of items.
    pub size: u32,
    /// The cursor; absent for the first page.
    pub after: Option<Cursor>,
}

/// A page of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// In the order of the list.
    pub items: Vec<T>,
    /// The token of the next page; empty after the last one.
    pub next: String,
    /// The number of items on all pages.
    pub total: u64,
}

impl PageRequest {
    /// From the fields of a request; a size of 0 is the default.
    ///
    /// # Errors
    /// VALIDATION at `pageToken` when the token is not one of ours.
    pub fn new(sizes: Sizes, size: u32, token: &str) -> Result<Self, Problem> {
        let size = if size == 0 { sizes.default } else { size.min(sizes.most) };
        if token.is_empty() {
            return Ok(Self { size, after: None });
        }
        let bytes = URL_SAFE_NO_PAD.decode(token).ok();
        let cursor: Option<Cursor> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        // PostgreSQL takes no NUL.
        let is_storable = |cursor: &Cursor| !cursor.name.contains('\0') && !cursor.id.contains('\0');
        match cursor.filter(is_storable) {
            Some(after) => Ok(Self { size, after: Some(after) }),
            None => Err(Problem::validation(vec![foreign_token()])),
        }
    }

    /// The SQL limit: one more than the page size, to learn whether another page follows.
    pub fn fetch(&self) -> i64 {
        i64::from(self.size) + 1
    }

    /// The total, if it is known without counting.
    pub fn known_total(&self, fetched: usize) -> Option<u64> {
        match &self.after {
            Some(after) => Some(after.total),
            None if fetched <= self.size as usize => Some(fetched as u64),
            None => None,
        }
    }

    /// Makes the page from the fetched items; `key` returns the name and the id of an item.
    pub fn page<T>(&self, mut items: Vec<T>, total: u64, key: impl Fn(&T) -> (String, String)) -> Page<T> {
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

/// The violation for a page token that is not of this list.
pub fn foreign_token() -> Violation {
    Violation::new("pageToken", "invalid", "send the token of the previous page as it came")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { default: 50, most: 200 };

    #[test]
    fn a_token_leads_to_the_next_page() {
        let request = PageRequest::new(SIZES, 2, "").unwrap();
        assert_eq!((request.fetch(), request.known_total(2), request.known_total(3)), (3, Some(2), None));
        let page = request.page(vec!["a", "b", "c"], 5, |name| ((*name).to_owned(), "id".to_owned()));
        assert_eq!(page.items, ["a", "b"]);
        let next = PageRequest::new(SIZES, 0, &page.next).unwrap();
        assert_eq!(next.after, Some(Cursor { name: "b".into(), id: "id".into(), total: 5 }));
        assert_eq!((next.size, next.known_total(3)), (50, Some(5)));
        assert_eq!(request.page(vec!["a"], 1, |_| Default::default()).next, "");
        assert_eq!(PageRequest::new(SIZES, 5_000, "").unwrap().size, 200);
    }

    #[test]
    fn a_foreign_token_is_refused() {
        for odd in ["x", "e30", "!!", &URL_SAFE_NO_PAD.encode(r#"{"n":"a\u0000","i":"","t":1}"#)] {
            assert!(PageRequest::new(SIZES, 0, odd).is_err(), "{odd}");
        }
    }
}
