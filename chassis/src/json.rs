//! Decodes JSON from callers after counting its values in the text.
//!
//! A value in memory takes many times the bytes of its text: `{"a":0},` is eight bytes and, as an object in a tree, some seven
//! hundred. So a limit of bytes alone does not bound memory.

use memchr::{memchr, memchr2};
use serde::de::DeserializeOwned;

/// The maximum number of values; objects and arrays count, too. No legitimate request has as many: the largest, a directory of
/// 5 000 documents, has 25 000. In the worst case they take 40 MB.
pub const MAX_VALUES: usize = 100_000;

/// Why a text was not decoded.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It is not JSON, or not of the expected type.
    #[error("is not JSON: {0}")]
    Invalid(#[from] serde_json::Error),
    /// It has too many values.
    #[error("holds more than {MAX_VALUES} values; send less at once")]
    TooMany,
}

/// Decodes a text of a caller, if it has at most [`MAX_VALUES`] values.
///
/// # Errors
/// When it has more, or is not JSON of that type.
pub fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, Unreadable> {
    if holds_more_than(text, MAX_VALUES) {
        return Err(Unreadable::TooMany);
    }
    Ok(serde_json::from_slice(text)?)
}

/// Whether the text has more values than that. Each value but the root follows a comma, or is the first of its array or
/// object.
fn holds_more_than(text: &[u8], most: usize) -> bool {
    // Each value takes at least one byte and a separator.
    if text.len() / 2 < most {
        return false;
    }
    let mut values = 1;
    let mut rest = text;
    loop {
        let quote = memchr(b'"', rest);
        let (between, string) = rest.split_at_checked(quote.unwrap_or(rest.len())).unwrap_or((rest, &[]));
        values += between.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
        if values > most {
            return true;
        }
        let Some(after) = behind_string(string) else { return false };
        rest = after;
    }
}

/// The text after a string that begins with the opening quote; `None` when the string does not end.
fn behind_string(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text.get(1..)?;
    loop {
        let at = memchr2(b'"', b'\\', rest)?;
        let is_end = rest.get(at) == Some(&b'"');
        rest = rest.get(at + if is_end { 1 } else { 2 }..)?;
        if is_end {
            return Some(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn count(value: &Value) -> usize {
        1 + match value {
            Value::Array(items) => items.iter().map(count).sum(),
            Value::Object(fields) => fields.values().map(count).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        }
    }

    #[test]
    fn what_holds_too_much_is_not_read() {
        let most = format!("[{}0]", "0,".repeat(MAX_VALUES - 2));
        assert!(read::<Value>(most.as_bytes()).is_ok());
        for much in [
            format!("[{}0]", "0,".repeat(MAX_VALUES)),
            format!("[{}{{}}]", "{\"a\":[]},".repeat(MAX_VALUES)),
            "[".repeat(4 * MAX_VALUES),
        ] {
            assert!(matches!(read::<Value>(much.as_bytes()), Err(Unreadable::TooMany)));
        }
        assert!(matches!(read::<Value>(b"[1,"), Err(Unreadable::Invalid(_))));
    }

    #[test]
    fn what_stands_in_a_text_is_one_value() {
        let content = format!("{}\\\"[", "[{,".repeat(MAX_VALUES));
        let text = json!({"content": content}).to_string();
        assert_eq!(read::<Value>(text.as_bytes()).unwrap()["content"], content);
        assert!(!holds_more_than(b"\"[[[[[[[[[[[[", 2), "a text that does not end");
        assert!(!holds_more_than(b"\"[[[[[[[[[[[[\\", 2));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<i32>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 48, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(".{0,4}", inner, 0..6)
                    .prop_map(|fields| fields.into_iter().collect()),
            ]
        })
    }

    proptest! {
        /// An empty list counts as if something stood in it: the count is never too low.
        #[test]
        fn no_value_is_missed(value in any_json()) {
            let text = value.to_string();
            let values = count(&value);
            prop_assert!(holds_more_than(text.as_bytes(), values - 1), "{text}");
        }
    }
}
