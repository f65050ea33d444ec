//! Record values: rendering, and form fields. The service validates types; here typed text is only converted to the
//! most likely JSON.

use cairn_chassis::status::Problem;
use cairn_proto::domain::PropertyType;
use cairn_proto::ids::RecordId;
use maud::{Markup, html};
use serde_json::{Number, Value, json};

use super::model::{as_text, elements, field_name, kind_of, options};
use super::names::Names;
use crate::answers::Property;
use crate::pages::form::Form;
use crate::pages::{file, words};

/// Longer texts are truncated in the grid, but not in the record beside it.
const MAX_CHARS_IN_GRID: usize = 160;
/// Longer texts get a text area.
const MAX_CHARS_IN_A_LINE: usize = 80;
const MAX_LINES_OF_A_LIST: usize = 8;

/// The space for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Cell,
    Whole,
}

/// Renders a value.
pub(super) fn render_value(property: &Property, value: Option<&Value>, names: &Names, room: Room) -> Markup {
    let Some(value) = value.filter(|value| !value.is_null()) else { return html! {} };
    match kind_of(property) {
        PropertyType::Text => match room {
            Room::Cell => html! { bdi { (truncate(&as_text(Some(value)))) } },
            Room::Whole => html! { div.text dir="auto" { (as_text(Some(value))) } },
        },
        PropertyType::Number | PropertyType::Date => html! { (as_text(Some(value))) },
        PropertyType::Boolean => html! { (words::capital(&as_text(Some(value)))) },
        PropertyType::Select | PropertyType::MultiSelect => html! {
            @for name in elements(Some(value)) { span.badge { bdi { (name) } } " " }
        },
        PropertyType::Url => web_address(&as_text(Some(value)), room),
        PropertyType::Relation => {
            let related = property.config.as_ref().and_then(|config| config.relation_database_id.as_deref());
            linked(value, |id| {
                let address = related.map(|database| super::record_address(database, id));
                (address, names.record(id).unwrap_or("A record"))
            })
        }
        PropertyType::FileReference => {
            linked(value, |id| (Some(file::address(id)), names.file(id).unwrap_or("A file")))
        }
        PropertyType::AssetReference => {
            linked(value, |id| (Some(format!("/api/assets/{id}/content")), "An asset"))
        }
    }
}

/// Linked references, separated by commas.
fn linked<'a>(value: &'a Value, of: impl Fn(&'a str) -> (Option<String>, &'a str)) -> Markup {
    html! {
        @for (place, id) in elements(Some(value)).into_iter().enumerate() {
            @if place > 0 { ", " }
            @match of(id) {
                // An id is always a UUID: the service stores nothing else.
                (Some(address), name) if is_id(id) => { a href=(address) { bdi { (name) } } }
                (_, name) => { bdi { (name) } }
            }
        }
    }
}

/// An external link. The service only stores `http` and `https`; anything else is not linked all the same.
fn web_address(text: &str, room: Room) -> Markup {
    let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
    let is_web = lower.starts_with("https://") || lower.starts_with("http://");
    let label = if room == Room::Cell { truncate(text) } else { text.to_owned() };
    html! {
        @if is_web { a href=(text) rel="noopener noreferrer" { bdi { (label) } } } @else { bdi { (label) } }
    }
}

/// Truncates a long text.
fn truncate(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS_IN_GRID) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}

fn is_id(text: &str) -> bool {
    text.parse::<RecordId>().is_ok()
}

/// A value as the form fields of its property.
pub(super) fn as_typed(property: &Property, value: Option<&Value>) -> Vec<String> {
    let value = value.filter(|value| !value.is_null());
    match kind_of(property) {
        PropertyType::Boolean => {
            value.filter(|value| **value == Value::Bool(true)).map(|_| "yes".to_owned()).into_iter().collect()
        }
        PropertyType::MultiSelect
        | PropertyType::Relation
        | PropertyType::FileReference
        | PropertyType::AssetReference => elements(value).into_iter().map(ToOwned::to_owned).collect(),
        PropertyType::Text
        | PropertyType::Number
        | PropertyType::Date
        | PropertyType::Select
        | PropertyType::Url => {
            let text = as_text(value).replace("\r\n", "\n");
            Some(text).filter(|text| !text.is_empty()).into_iter().collect()
        }
    }
}

/// The submitted values of a property's fields.
pub(super) fn typed(property: &Property, form: &Form) -> Vec<String> {
    let name = field_name(property);
    let given = form.all(&name).map(|text| text.replace("\r\n", "\n"));
    if kind_of(property).is_reference() {
        return given.flat_map(|text| ids(&text)).collect();
    }
    given.filter(|text| !text.is_empty()).collect()
}

/// The ids in a text, given directly or as page URLs.
fn ids(text: &str) -> Vec<String> {
    let words = text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
    let id = |word: &str| {
        let parts = || word.split(['/', '?', '=', '&', '#']);
        parts().rfind(|part| is_id(part)).unwrap_or(word).to_owned()
    };
    words.map(id).collect()
}

/// The submitted value if it has changed. `null` clears.
pub(super) fn changed(property: &Property, form: &Form, before: Option<&Value>) -> Option<Value> {
    let (mut old, mut new) = (as_typed(property, before), typed(property, form));
    let value = as_value(property, &new);
    if kind_of(property) == PropertyType::MultiSelect {
        // Browsers submit them in the order of the options.
        old.sort_unstable();
        new.sort_unstable();
    }
    (old != new).then_some(value)
}

fn as_value(property: &Property, typed: &[String]) -> Value {
    let kind = kind_of(property);
    let Some(only) = typed.first() else {
        return if kind == PropertyType::Boolean { json!(false) } else { Value::Null };
    };
    match kind {
        PropertyType::Boolean => json!(true),
        PropertyType::MultiSelect => json!(typed),
        PropertyType::Relation | PropertyType::FileReference | PropertyType::AssetReference => {
            let is_list = property.config.as_ref().is_some_and(|config| config.multiple) || typed.len() > 1;
            if is_list { json!(typed) } else { json!(only) }
        }
        PropertyType::Number => number(only.trim()).map_or_else(|| json!(only), Value::Number),
        PropertyType::Date | PropertyType::Url => json!(only.trim()),
        PropertyType::Text | PropertyType::Select => json!(only),
    }
}

fn number(text: &str) -> Option<Number> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Number::from(whole));
    }
    Number::from_f64(text.parse().ok()?)
}

/// The form control of a property.
#[derive(Debug, Clone, Copy)]
pub(super) struct Control<'a> {
    pub(super) property: &'a Property,
    /// Its values, as returned by [`as_typed`].
    pub(super) typed: &'a [String],
    /// The problem of the form; the control shows its part.
    pub(super) problem: Option<&'a Problem>,
    /// Ids and titles of the records that a relation can reference, if there are few.
    pub(super) choices: Option<&'a [(String, String)]>,
}

impl Control<'_> {
    /// With label, hint and error.
    pub(super) fn labelled(&self) -> Markup {
        let id = format!("f-{}", field_name(self.property));
        let (hint, said) = (self.hint(), self.said());
        let about = [hint.map(|_| format!("{id}-hint")), said.as_ref().map(|_| format!("{id}-said"))];
        let about = about.into_iter().flatten().collect::<Vec<_>>().join(" ");
        html! {
            div.field {
                label for=(id) { bdi { (self.property.name) } }
                @if let Some(hint) = hint { span.hint id={ (id) "-hint" } { (hint) } }
                @if let Some(said) = &said { span.said id={ (id) "-said" } { (said) } }
                (self.input(&id, Some(&about).filter(|about| !about.is_empty()), None))
                input type="hidden" name="field" value=(self.property.id);
            }
        }
    }

    /// Without a label, for a cell.
    pub(super) fn alone(&self) -> Markup {
        let said = self.said();
        let about = said.is_some().then(|| "cell-said".to_owned());
        html! {
            (self.input("cell-value", about.as_ref(), Some(&self.property.name)))
            @if let Some(said) = &said { span.said #cell-said role="alert" { (said) } }
            input type="hidden" name="field" value=(self.property.id);
        }
    }

    fn said(&self) -> Option<String> {
        let name = field_name(self.property);
        let broken = self.problem?.violations.iter().find(|broken| broken.path == name)?;
        Some(words::sentence(&broken.message))
    }

    fn hint(&self) -> Option<&'static str> {
        match kind_of(self.property) {
            PropertyType::MultiSelect => Some("Several with Ctrl or ⌘."),
            PropertyType::Relation if self.choices.is_some() => Some("Several with Ctrl or ⌘."),
            PropertyType::Relation => Some("Ids of records, or the addresses of their pages."),
            PropertyType::FileReference => Some("The id of a file, or the address of its page."),
            PropertyType::AssetReference => Some("The id of an asset."),
            PropertyType::Url => Some("With https:// before it."),
            PropertyType::Text
            | PropertyType::Number
            | PropertyType::Boolean
            | PropertyType::Date
            | PropertyType::Select => None,
        }
    }

    fn input(&self, id: &str, about: Option<&String>, label: Option<&String>) -> Markup {
        let name = field_name(self.property);
        let text = self.typed.join(", ");
        let is_wrong = self.said().map(|_| "true");
        let has = |value: &str| self.typed.iter().any(|typed| typed == value);
        let kind = match kind_of(self.property) {
            PropertyType::Boolean => {
                return html! {
                    input id=(id) type="checkbox" name=(name) value="yes" checked[!self.typed.is_empty()] aria-label=[label] aria-describedby=[about];
                };
            }
            PropertyType::Select => {
                return html! {
                    select id=(id) name=(name) aria-label=[label] aria-describedby=[about] aria-invalid=[is_wrong] {
                        option value="" { "" }
                        @for option in options(self.property) { option value=(option) selected[has(option)] dir="auto" { (option) } }
                    }
                };
            }
            PropertyType::MultiSelect => {
                let all = options(self.property).map(|option| (option, option));
                return self.several(id, about, label, all.collect());
            }
            PropertyType::Relation if self.choices.is_some() => {
                let all = self.choices.unwrap_or_default().iter();
                return self.several(
                    id,
                    about,
                    label,
                    all.map(|(id, title)| (id.as_str(), title.as_str())).collect(),
                );
            }
            PropertyType::Text if is_long(&text) => {
                return html! {
                    // Browsers drop a leading line break.
                    textarea id=(id) name=(name) rows="5" dir="auto" autocomplete="off" aria-label=[label] aria-describedby=[about] aria-invalid=[is_wrong] { "\n" (text) }
                };
            }
            PropertyType::Number => "number",
            PropertyType::Url => "url",
            // A date input cannot hold a time.
            PropertyType::Date if text.is_empty() || text.len() == 10 => "date",
            PropertyType::Text
            | PropertyType::Date
            | PropertyType::Relation
            | PropertyType::FileReference
            | PropertyType::AssetReference => "text",
        };
        html! {
            input id=(id) type=(kind) name=(name) value=(text) step=[(kind == "number").then_some("any")] dir=[(kind == "text").then_some("auto")]
                autocomplete="off" aria-label=[label] aria-describedby=[about] aria-invalid=[is_wrong];
        }
    }

    fn several(
        &self,
        id: &str,
        about: Option<&String>,
        label: Option<&String>,
        all: Vec<(&str, &str)>,
    ) -> Markup {
        let has = |value: &str| self.typed.iter().any(|typed| typed == value);
        html! {
            select id=(id) name=(field_name(self.property)) multiple size=(all.len().clamp(2, MAX_LINES_OF_A_LIST))
                aria-label=[label] aria-describedby=[about] aria-invalid=[self.said().map(|_| "true")] {
                @for (value, name) in &all { option value=(value) selected[has(value)] dir="auto" { (name) } }
                // Removed options stay selected until somebody deselects them.
                @for kept in self.typed.iter().filter(|kept| !all.iter().any(|(value, _)| value == kept)) {
                    option value=(kept) selected dir="auto" { (kept) }
                }
            }
        }
    }
}

fn is_long(text: &str) -> bool {
    text.contains('\n') || text.chars().count() > MAX_CHARS_IN_A_LINE
}

/// Renames violation paths to the form's field names.
pub(super) fn named(mut problem: Problem) -> Problem {
    for violation in &mut problem.violations {
        let rest = violation.path.strip_prefix("values.");
        let id = rest.and_then(|rest| rest.split(['[', '.']).next());
        if let Some(id) = id {
            violation.path = format!("v-{id}");
        }
    }
    problem
}

/// The name of a type for people.
pub(super) const fn kind_name(kind: PropertyType) -> &'static str {
    match kind {
        PropertyType::Text => "Text",
        PropertyType::Number => "Number",
        PropertyType::Boolean => "Check box",
        PropertyType::Date => "Date",
        PropertyType::Select => "Select",
        PropertyType::MultiSelect => "Multi-select",
        PropertyType::Url => "Web address",
        PropertyType::Relation => "Relation",
        PropertyType::FileReference => "File",
        PropertyType::AssetReference => "Asset",
    }
}

#[cfg(test)]
mod tests {
    use cairn_chassis::status::Violation;
    use cairn_proto::content::v1::{PropertyConfig, PropertyOption};

    use super::*;

    const ID: &str = "0199c0de-0000-7000-8000-0000000000c1";

    fn property(kind: PropertyType) -> Property {
        let option = |name: &str| PropertyOption { id: name.into(), name: name.into(), color: None };
        Property {
            id: "p".into(),
            name: "A <field>".into(),
            r#type: kind.number(),
            config: Some(PropertyConfig {
                options: vec![option("b"), option("a")],
                ..PropertyConfig::default()
            }),
            ..Property::default()
        }
    }

    fn sent(body: &str) -> Form {
        Form::read(body.as_bytes())
    }

    #[test]
    fn what_was_typed_becomes_what_it_means() {
        let (page, several) = (format!("v-p=%2Ffile%2F{ID}%3Flines%3D1"), format!("v-p={ID}%2C+x"));
        for (kind, body, expected) in [
            (PropertyType::Text, "v-p=a%0D%0Ab", json!("a\nb")),
            (PropertyType::Number, "v-p=-12", json!(-12)),
            (PropertyType::Number, "v-p=1.5", json!(1.5)),
            (PropertyType::Number, "v-p=many", json!("many")),
            (PropertyType::Number, "v-p=NaN", json!("NaN")),
            (PropertyType::Boolean, "v-p=yes", json!(true)),
            (PropertyType::Select, "v-p=a", json!("a")),
            (PropertyType::MultiSelect, "v-p=a&v-p=b", json!(["a", "b"])),
            (PropertyType::FileReference, page.as_str(), json!(ID)),
            (PropertyType::Relation, several.as_str(), json!([ID, "x"])),
        ] {
            assert_eq!(changed(&property(kind), &sent(body), None), Some(expected), "{kind:?} {body}");
        }
    }

    #[test]
    fn what_stays_is_not_sent() {
        let related = format!("v-p={ID}");
        for (kind, before, body) in [
            (PropertyType::Text, json!("a\r\nb"), "v-p=a%0D%0Ab"),
            (PropertyType::Number, json!(1.50), "v-p=1.5"),
            (PropertyType::Boolean, json!(false), ""),
            (PropertyType::Boolean, json!(true), "v-p=yes"),
            (PropertyType::MultiSelect, json!(["b", "a"]), "v-p=a&v-p=b"),
            (PropertyType::Relation, json!([ID]), related.as_str()),
            (PropertyType::Date, Value::Null, "v-p="),
        ] {
            assert_eq!(changed(&property(kind), &sent(body), Some(&before)), None, "{kind:?}");
        }
        let cleared = changed(&property(PropertyType::Text), &sent("v-p="), Some(&json!("a")));
        assert_eq!(cleared, Some(Value::Null));
        let unchecked = changed(&property(PropertyType::Boolean), &sent(""), Some(&json!(true)));
        assert_eq!(unchecked, Some(json!(false)));
    }

    #[test]
    fn values_are_text_whatever_they_hold() {
        let hostile = json!("<script>alert(1)</script>\" onload=\"x");
        for kind in PropertyType::ALL {
            let property = property(kind);
            for room in [Room::Cell, Room::Whole] {
                let html = render_value(&property, Some(&hostile), &Names::default(), room).into_string();
                assert!(!html.contains("<script") && !html.contains("\" onload"), "{kind:?}: {html}");
                assert!(!html.contains("<a "), "{kind:?}: {html}");
            }
            let typed = as_typed(&property, Some(&hostile));
            let control = Control { property: &property, typed: &typed, problem: None, choices: None };
            let html = control.labelled().into_string() + &control.alone().into_string();
            assert!(!html.contains("<script") && !html.contains("\" onload"), "{kind:?}: {html}");
            assert!(html.contains("A &lt;field&gt;"), "{kind:?}: {html}");
        }
    }

    #[test]
    fn addresses_of_other_hosts_tell_them_nothing() {
        let url = property(PropertyType::Url);
        let html = render_value(&url, Some(&json!("HTTPS://a.example/x")), &Names::default(), Room::Cell)
            .into_string();
        assert!(html.contains("rel=\"noopener noreferrer\""), "{html}");
        let html = render_value(&url, Some(&json!("javascript:alert(1)")), &Names::default(), Room::Cell)
            .into_string();
        assert!(!html.contains("<a"), "{html}");
    }

    #[test]
    fn what_is_wrong_stands_with_its_field() {
        let refused = Problem::validation(vec![Violation::new("values.p[0]", "invalid_id", "must be an id")]);
        let refused = named(refused);
        let property = property(PropertyType::Text);
        let control = Control { property: &property, typed: &[], problem: Some(&refused), choices: None };
        assert!(control.labelled().into_string().contains("Must be an id."));
        assert!(control.alone().into_string().contains("role=\"alert\""));
    }

    #[test]
    fn a_long_text_is_cut_between_letters() {
        assert_eq!(truncate("short"), "short");
        assert_eq!(truncate(&"é".repeat(500)).chars().count(), MAX_CHARS_IN_GRID + 1);
    }
}
