//! Validates settings and credentials: reports all violations at once, each with advice.

use std::ops::RangeInclusive;
use std::str::FromStr;

use cairn_chassis::outbound::{Guard, Refused};
use cairn_chassis::status::Violation;
use cairn_chassis::wording::{self, Unit};
use serde_json::{Map, Value};
use url::Url;

use crate::Secret;

const MAX_TEXT_CHARS: usize = 2_000;
const MAX_SECRET_CHARS: usize = 16_000;
const MAX_TEXTS: usize = 100;
/// Characters of a user's name or value that a message quotes.
const MAX_ECHO_CHARS: usize = 64;
/// The minimum similarity of a suggestion for an unknown name.
const LIKE_ENOUGH: f64 = 0.6;

/// The fields of an object. Fields that the provider never reads are reported as unknown.
pub(crate) struct Fields<'a> {
    place: &'static str,
    object: Option<&'a Map<String, Value>>,
    known: Vec<&'static str>,
    violations: Vec<Violation>,
}

impl<'a> Fields<'a> {
    /// The fields of a value, which must be an object; absent and `null` count as an empty one.
    pub(crate) fn new(place: &'static str, value: Option<&'a Value>) -> Self {
        let mut fields = Self { place, object: None, known: Vec::new(), violations: Vec::new() };
        match value {
            None | Some(Value::Null) => {}
            Some(Value::Object(object)) => fields.object = Some(object),
            Some(_) => fields.violations.push(Violation::new(place, "invalid_type", "must be an object")),
        }
        fields
    }

    /// Adds a violation of a field.
    pub(crate) fn refuse(&mut self, name: &str, code: &str, message: impl Into<String>) {
        self.violations.push(Violation::new(format!("{}.{name}", self.place), code, message));
    }

    /// The raw value of a field; `null` counts as absent.
    pub(crate) fn value(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.object?.get(name).filter(|value| !value.is_null())
    }

    /// A trimmed string; an empty one counts as absent.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        let value = self.value(name)?;
        let text = self.checked_text(name, value, MAX_TEXT_CHARS)?;
        (!text.is_empty()).then_some(text)
    }

    /// A required string; `advice` is for the message.
    pub(crate) fn required_text(&mut self, name: &'static str, advice: &str) -> Option<String> {
        let problems = self.violations.len();
        let text = self.text(name);
        if text.is_none() && self.violations.len() == problems {
            self.refuse(name, "required", advice);
        }
        text
    }

    /// A list of strings; absent counts as empty.
    pub(crate) fn texts(&mut self, name: &'static str) -> Vec<String> {
        let Some(value) = self.value(name) else { return Vec::new() };
        let Some(list) = value.as_array() else {
            self.refuse(name, "invalid_type", "must be an array of strings");
            return Vec::new();
        };
        if list.len() > MAX_TEXTS {
            self.refuse(name, "too_long", wording::at_most(MAX_TEXTS, Unit::Entries));
            return Vec::new();
        }
        let mut texts = Vec::with_capacity(list.len());
        for (index, value) in list.iter().enumerate() {
            let place = format!("{name}[{index}]");
            match self.checked_text(&place, value, MAX_TEXT_CHARS) {
                Some(text) if text.is_empty() => self.refuse(&place, "required", wording::EMPTY),
                Some(text) => texts.push(text),
                None => {}
            }
        }
        texts
    }

    /// A list of keywords; absent counts as empty.
    pub(crate) fn choices<T: FromStr>(&mut self, name: &'static str, words: &[&str]) -> Vec<T> {
        let texts = self.texts(name);
        let chosen = texts.iter().enumerate();
        chosen.filter_map(|(index, text)| self.chosen(&format!("{name}[{index}]"), text, words)).collect()
    }

    /// A required keyword; `advice` is for the message.
    pub(crate) fn required_choice<T: FromStr>(
        &mut self,
        name: &'static str,
        words: &[&str],
        advice: &str,
    ) -> Option<T> {
        let text = self.required_text(name, advice)?;
        self.chosen(name, &text, words)
    }

    /// A whole number in a range.
    pub(crate) fn number(&mut self, name: &'static str, range: RangeInclusive<u32>) -> Option<u32> {
        let value = self.value(name)?;
        let Some(number) = value.as_u64() else {
            let message = format!("must be {}", wording::json_type("integer"));
            self.refuse(name, "invalid_type", message);
            return None;
        };
        let number = u32::try_from(number).ok().filter(|number| range.contains(number));
        if number.is_none() {
            self.refuse(name, "out_of_range", wording::between(range.start(), range.end()));
        }
        number
    }

    fn chosen<T: FromStr>(&mut self, place: &str, text: &str, words: &[&str]) -> Option<T> {
        let chosen = words.contains(&text).then(|| text.parse().ok()).flatten();
        if chosen.is_none() {
            self.refuse(place, "invalid_value", wording::one_of(words));
        }
        chosen
    }

    /// A URL that the guard allows, as far as can be checked before DNS resolution.
    pub(crate) fn address(&mut self, name: &'static str, guard: &Guard) -> Option<Url> {
        let text = self.text(name)?;
        self.checked_address(name, &text, guard)
    }

    /// A list of URLs; absent counts as empty.
    pub(crate) fn addresses(&mut self, name: &'static str, guard: &Guard) -> Vec<Url> {
        let texts = self.texts(name);
        let addresses = texts.iter().enumerate();
        addresses
            .filter_map(|(index, text)| self.checked_address(&format!("{name}[{index}]"), text, guard))
            .collect()
    }

    fn checked_address(&mut self, name: &str, text: &str, guard: &Guard) -> Option<Url> {
        let has_credentials =
            Url::parse(text).is_ok_and(|url| !url.username().is_empty() || url.password().is_some());
        let (code, message) = match guard.check(text) {
            Ok(url) => return Some(url),
            Err(_) if has_credentials => (
                "credentials_in_url",
                "may hold no user name and no password; give them in `credentials`".to_owned(),
            ),
            Err(Refused::NotPublic) => (
                "not_public",
                "must lead to a public host over https; an operator can list networks inside".to_owned(),
            ),
            Err(_) => (
                "invalid_url",
                "must be an https URL with a host, such as https://example.com/, and without a fragment"
                    .to_owned(),
            ),
        };
        self.refuse(name, code, message);
        None
    }

    /// A required URL.
    pub(crate) fn required_address(
        &mut self,
        name: &'static str,
        advice: &str,
        guard: &Guard,
    ) -> Option<Url> {
        let problems = self.violations.len();
        let address = self.address(name, guard);
        if address.is_none() && self.violations.len() == problems {
            self.refuse(name, "required", advice);
        }
        address
    }

    /// A secret; an empty one counts as absent.
    pub(crate) fn secret(&mut self, name: &'static str) -> Option<Secret> {
        let value = self.value(name)?;
        let text = self.checked_text(name, value, MAX_SECRET_CHARS)?;
        (!text.is_empty()).then(|| Secret::new(text))
    }

    /// A required secret; `advice` says where to get it.
    pub(crate) fn required_secret(&mut self, name: &'static str, advice: &str) -> Option<Secret> {
        let problems = self.violations.len();
        let secret = self.secret(name);
        if secret.is_none() && self.violations.len() == problems {
            self.refuse(name, "required", advice);
        }
        secret
    }

    fn checked_text(&mut self, place: &str, value: &Value, most_chars: usize) -> Option<String> {
        let Some(text) = value.as_str().map(str::trim) else {
            self.refuse(place, "invalid_type", "must be a string");
            return None;
        };
        if text.chars().count() > most_chars {
            self.refuse(place, "too_long", wording::at_most(most_chars, Unit::Characters));
            return None;
        }
        if text.chars().any(char::is_control) {
            self.refuse(place, "invalid_value", wording::NO_CONTROL_CHARACTERS);
            return None;
        }
        Some(text.to_owned())
    }

    /// All violations, including unknown fields.
    pub(crate) fn finish(mut self) -> Vec<Violation> {
        let given = self.object.map(|object| object.keys().collect::<Vec<_>>()).unwrap_or_default();
        for name in given.into_iter().filter(|name| !self.known.contains(&name.as_str())) {
            let shown: String = name.chars().take(MAX_ECHO_CHARS).collect();
            self.violations.push(unknown_field(self.place, &shown, &self.known));
        }
        self.violations
    }
}

fn unknown_field(place: &str, name: &str, known: &[&str]) -> Violation {
    let advice = match nearest(name, known) {
        Some(field) => format!("did you mean `{field}`?"),
        None if known.is_empty() => "there are no fields here".to_owned(),
        None => format!("the fields are: {}", known.join(", ")),
    };
    Violation::new(format!("{place}.{name}"), "unknown_field", format!("is not a known field; {advice}"))
}

/// The most similar known name, if any is similar enough.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |text: &str| text.replace(['_', '-'], "").to_lowercase();
    let wanted = plain(name);
    known
        .iter()
        .map(|candidate| (strsim::normalized_damerau_levenshtein(&wanted, &plain(candidate)), *candidate))
        .filter(|(likeness, _)| *likeness >= LIKE_ENOUGH)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests;
