//! Typed parsing of JSON responses. Items of lists are parsed one by one, so that an invalid item does not fail the others.

use std::fmt;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::{ExternalId, Fault, ItemFault, Page};

/// Parses a response.
///
/// # Errors
/// [`Fault::Broken`] if it is not JSON of that shape.
pub(crate) fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Fault> {
    serde_json::from_slice(body).map_err(|_| {
        let begins_a_tag = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'<');
        Fault::broken(if begins_a_tag {
            "the provider answers with a page for people where data should be: is the address right?"
        } else {
            "the provider's answer is cut off, or not what its interface says"
        })
    })
}

/// A bounded list of unparsed items, which borrow from the response.
#[derive(Debug, Default)]
pub(crate) struct Items<'a, const MAX: usize = { Page::MAX_ITEMS }>(Vec<&'a RawValue>);

impl<'a, const MAX: usize> Items<'a, MAX> {
    /// Whether the list is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Parses each item, or reports its fault.
    pub(crate) fn each<T: Deserialize<'a>>(&self) -> impl Iterator<Item = Result<T, ItemFault>> {
        self.0.iter().map(|item| {
            let item: &'a RawValue = item;
            serde_json::from_str(item.get()).map_err(|_| unreadable(item))
        })
    }
}

/// The fault of an item with an unexpected shape, with its id if it can be found.
fn unreadable(item: &RawValue) -> ItemFault {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Id {
        Text(String),
        Number(u64),
    }
    #[derive(Deserialize)]
    struct Named {
        id: Id,
    }
    let id = match serde_json::from_str::<Named>(item.get()) {
        Ok(Named { id: Id::Text(text) }) => text,
        Ok(Named { id: Id::Number(number) }) => number.to_string(),
        Err(_) => String::new(),
    };
    let reason = "what the provider says about it cannot be read";
    match ExternalId::new(id) {
        Ok(id) => ItemFault::passing(id.clone(), id.as_str(), reason),
        Err(_) => ItemFault {
            id: None,
            version: None,
            title: String::new(),
            reason: reason.into(),
            is_lasting: false,
        },
    }
}

impl<'de: 'a, 'a, const MAX: usize> Deserialize<'de> for Items<'a, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Bounded::<MAX>)
    }
}

/// Fails at the limit of items, before more are allocated.
struct Bounded<const MAX: usize>;

impl<'de, const MAX: usize> Visitor<'de> for Bounded<MAX> {
    type Value = Items<'de, MAX>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element()? {
            if items.len() == MAX {
                return Err(A::Error::custom("more items than there may be"));
            }
            items.push(item);
        }
        Ok(Items(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Listed<'a> {
        #[serde(borrow)]
        results: Items<'a>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Thing {
        id: String,
        at: u8,
    }

    #[test]
    fn an_item_that_cannot_be_read_costs_itself() {
        let text = br#"{"results": [{"id": "a", "at": 1}, {"id": "b", "at": "x"}, {"id": 7}, 3, {"id": "c", "at": 2}]}"#;
        let listed: Listed<'_> = read(text).unwrap();
        let each: Vec<Result<Thing, ItemFault>> = listed.results.each().collect();
        assert_eq!(each.iter().filter(|thing| thing.is_ok()).count(), 2);
        let ids: Vec<_> = each.into_iter().filter_map(Result::err).map(|fault| fault.id).collect();
        let known = |id: &str| Some(ExternalId::new(id).unwrap());
        assert_eq!(ids, [known("b"), known("7"), None]);
    }

    #[test]
    fn what_is_no_answer_is_said_so() {
        for (body, words) in [
            (&b"<!DOCTYPE html><title>Sign in</title>"[..], "page for people"),
            (b"  <html>", "page for people"),
            (br#"{"results": [{"id": "#, "cut off"),
            (b"", "cut off"),
            (b"[]", "cut off"),
            (br#"{"results": 3}"#, "cut off"),
        ] {
            let Err(Fault::Broken(reason)) = read::<Listed<'_>>(body) else { panic!("{body:?}") };
            assert!(reason.contains(words), "{reason}");
        }
    }

    #[test]
    fn a_million_items_are_refused_and_deep_nesting_too() {
        let many = format!("{{\"results\": [{}0]}}", "0,".repeat(1_000_000));
        assert!(read::<Listed<'_>>(many.as_bytes()).is_err());
        let most = format!("{{\"results\": [{}0]}}", "0,".repeat(Page::MAX_ITEMS - 1));
        assert_eq!(read::<Listed<'_>>(most.as_bytes()).unwrap().results.0.len(), Page::MAX_ITEMS);
        let deep = format!("{{\"results\": [{}]}}", "[".repeat(100_000));
        assert!(read::<Listed<'_>>(deep.as_bytes()).is_err());
    }
}
