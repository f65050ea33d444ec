//! Decodes JSON into a typed input and reports all violations at once: path, code, and what would be valid.

use cairn_chassis::status::{Problem, Violation};
use cairn_chassis::wording::{self, Unit};
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use serde_json::{Map, Value};

use crate::schema::{Contract, Input};

/// Similarity threshold of suggestions: a wrong guess misleads more than none.
const MIN_SIMILARITY: f64 = 0.6;
/// Longer values are probably content in the wrong field rather than typos, and content must not appear in errors.
const MAX_ECHO_LENGTH: usize = 40;

/// Three times the longest field name of ours.
const MAX_NAME_LENGTH: usize = 128;
/// Nobody reads more violations at once, and each repeats a name chosen by the caller.
const MAX_VIOLATIONS: usize = 50;
/// Elements of a list beyond this are not validated further.
const MAX_SEARCHED: usize = 1_000;

/// Validates and decodes an input; `root` names the whole value: `body`, `arguments`.
pub(crate) fn read<T: Input>(mut value: Value, root: &str) -> Result<T, Problem> {
    let contract = T::contract();
    drop_required_nulls(&mut value, contract);
    check(contract, &mut value, root)?;
    decode(value, root)
}

/// The default of an input without required fields ([`Contract::takes_nothing`]).
pub(crate) fn nothing<T: Input>(root: &str) -> Result<T, Problem> {
    decode(Value::Object(Map::new()), root)
}

fn decode<T: Input>(value: Value, root: &str) -> Result<T, Problem> {
    serde_json::from_value(value)
        .map_err(|error| Problem::validation(vec![Violation::new(root, "invalid", error.to_string())]))
}

fn check(contract: &Contract, value: &mut Value, root: &str) -> Result<(), Problem> {
    let validator =
        contract.validator().ok_or_else(|| Problem::internal("an input's schema does not compile"))?;
    let Err(error) = validator.validate(value) else { return Ok(()) };
    let explained = |error: ValidationError<'_>| explain(&error, contract.schema(), root);
    let mut first = explained(error);
    truncate(value, contract.schema());
    let mut violations: Vec<Violation> =
        validator.iter_errors(value).flat_map(explained).take(MAX_VIOLATIONS + 1).collect();
    if violations.len() > MAX_VIOLATIONS {
        violations.truncate(MAX_VIOLATIONS);
        violations.push(Violation::new(root, "more", "has more problems than these"));
    }
    // The only violation may be in the part that was cut.
    if violations.is_empty() {
        violations.append(&mut first);
    }
    if violations.is_empty() {
        let (code, message) = shapeless();
        violations.push(Violation::new(root, code, message));
    }
    Err(Problem::validation(violations))
}

/// Truncates an invalid value to what is needed to report it: the validator collects all errors before returning the
/// first. An overlong list keeps one excess entry, an object a few of its unknown fields.
fn truncate(value: &mut Value, schema: &Value) {
    match value {
        Value::Array(items) => {
            let most =
                schema.get("maxItems").and_then(Value::as_u64).and_then(|most| usize::try_from(most).ok());
            items.truncate(most.map_or(MAX_SEARCHED, |most| most.saturating_add(1)));
            if let Some(of_items) = schema.get("items") {
                items.iter_mut().for_each(|item| truncate(item, of_items));
            }
        }
        Value::Object(fields) => {
            let known = schema.get("properties").and_then(Value::as_object);
            let known = |name: &str| known.and_then(|properties| properties.get(name));
            let mut unknown = 0;
            fields.retain(|name, _| {
                unknown += usize::from(known(name).is_none());
                known(name).is_some() || unknown <= MAX_VIOLATIONS + 1
            });
            for (name, field) in fields {
                if let Some(of_field) = known(name) {
                    truncate(field, of_field);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// `null` in a required field counts as absent (contract, "Names").
fn drop_required_nulls(value: &mut Value, contract: &Contract) {
    let required = contract.schema().get("required").and_then(Value::as_array);
    let (Some(fields), Some(required)) = (value.as_object_mut(), required) else { return };
    fields.retain(|name, value| !value.is_null() || !required.iter().any(|one| one == name));
}

/// Converts strings to the numbers and booleans of the schema: query parameters are always strings, and some agents
/// send `"5"` for 5.
pub(crate) fn coerce(fields: &mut Map<String, Value>, contract: &Contract) {
    for (name, value) in fields.iter_mut() {
        let Some(wanted) = contract.field(name) else { continue };
        if let Some(read) = coerced(value, wanted) {
            *value = read;
        }
    }
}

fn coerced(value: &Value, wanted: &Value) -> Option<Value> {
    match value {
        Value::String(text) if allows(wanted, "integer") => text.trim().parse::<i64>().ok().map(Value::from),
        Value::String(text) if allows(wanted, "number") => text.trim().parse::<f64>().ok().map(Value::from),
        Value::String(text) if allows(wanted, "boolean") => {
            text.trim().to_lowercase().parse::<bool>().ok().map(Value::from)
        }
        // JSON Schema accepts 5.0 as an integer, serde does not.
        Value::Number(number) if allows(wanted, "integer") => whole(number.as_f64()?).map(Value::from),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => None,
    }
}

pub(crate) fn whole(number: f64) -> Option<i64> {
    let fits = number.fract() == 0.0 && number.abs() < 9e15;
    fits.then(|| format!("{number:.0}").parse().ok()).flatten()
}

fn allows(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(several)) => several.iter().any(|one| one == kind),
        _ => false,
    }
}

/// Drops fields that the schema does not know.
pub(crate) fn keep_known(fields: &mut Map<String, Value>, contract: &Contract) {
    let known = contract.schema().get("properties").and_then(Value::as_object);
    fields.retain(|name, _| known.is_some_and(|properties| properties.contains_key(name)));
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library's list is open; what is left out is `limit`'s"
)]
fn explain(error: &ValidationError<'_>, schema: &Value, root: &str) -> Vec<Violation> {
    let path = place(error.instance_path());
    let at = if path.is_empty() { root.to_owned() } else { path.clone() };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            vec![Violation::new(joined(&path, name), "required", "is required")]
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let known = known_fields(error, schema);
            let few = unexpected.iter().take(MAX_VIOLATIONS + 1);
            few.map(|name| unknown_field(&path, name, &known)).collect()
        }
        // A wrong type is reported by its own violation.
        ValidationErrorKind::Enum { .. } if !error.instance().is_string() => Vec::new(),
        ValidationErrorKind::Enum { options } => vec![wrong_choice(at, options, error.instance())],
        ValidationErrorKind::Type { kind } => vec![Violation::new(
            at,
            "wrong_type",
            format!("must be {}, not {}", expected_types(kind), found(&path, error.instance())),
        )],
        kind => {
            let (code, message) = limit(kind);
            let message = match kind {
                ValidationErrorKind::Format { .. }
                | ValidationErrorKind::Maximum { .. }
                | ValidationErrorKind::Minimum { .. } => not_that(message, &path, error.instance()),
                _ => message,
            };
            vec![Violation::new(at, code, message)]
        }
    }
}

/// Values under this path may be secrets of any shape.
fn is_secret(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let is_within = ["credential", "password", "secret"].iter().any(|word| path.contains(word));
    is_within || path.rsplit('.').next() == Some("token")
}

/// A value as echoed in an error, if it is short, scalar and no secret.
fn echo(path: &str, value: &Value) -> Option<String> {
    if is_secret(path) {
        return None;
    }
    let text = match value {
        Value::String(_) | Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    (text.chars().count() <= MAX_ECHO_LENGTH).then_some(text)
}

fn not_that(message: String, path: &str, value: &Value) -> String {
    match echo(path, value) {
        Some(shown) => format!("{message}; not {shown}"),
        None => message,
    }
}

fn found(path: &str, value: &Value) -> String {
    let kind = kind_of(value);
    match (echo(path, value), kind.split_once(' ')) {
        (Some(shown), Some((_, kind))) => format!("the {kind} {shown}"),
        _ => kind.to_owned(),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library's list is open, and our schemas use few of its rules"
)]
fn limit(kind: &ValidationErrorKind) -> (&'static str, String) {
    match kind {
        ValidationErrorKind::MaxLength { limit } => {
            ("too_long", wording::at_most(counted(*limit), Unit::Characters))
        }
        ValidationErrorKind::MinLength { limit } => {
            ("too_short", wording::at_least(counted(*limit), Unit::Characters))
        }
        ValidationErrorKind::Maximum { limit } => ("too_large", format!("may be at most {limit}")),
        ValidationErrorKind::Minimum { limit } => ("too_small", format!("must be at least {limit}")),
        ValidationErrorKind::MaxItems { limit } => {
            ("too_many", wording::at_most(counted(*limit), Unit::Entries))
        }
        ValidationErrorKind::MinItems { limit } => {
            ("too_few", wording::at_least(counted(*limit), Unit::Entries))
        }
        ValidationErrorKind::Format { format } if format == "uuid" => ("invalid_id", wording::ID.to_owned()),
        ValidationErrorKind::Format { format } if format == "date-time" => {
            ("invalid_time", wording::TIME.to_owned())
        }
        ValidationErrorKind::Format { format } => {
            ("invalid_format", format!("must have the form of: {format}"))
        }
        ValidationErrorKind::MinProperties { limit } => {
            ("empty", wording::at_least(counted(*limit), Unit::Fields))
        }
        _ => shapeless(),
    }
}

fn shapeless() -> (&'static str, String) {
    ("invalid", "does not have the shape that the OpenAPI document gives".to_owned())
}

fn counted(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

fn place(location: &Location) -> String {
    let mut path = String::new();
    for segment in location.segments() {
        match segment {
            LocationSegment::Property(name) => path = joined(&path, &name),
            LocationSegment::Index(index) => path.push_str(&format!("[{index}]")),
        }
    }
    path
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The fields of the object that the error is about.
fn known_fields<'a>(error: &ValidationError<'_>, schema: &'a Value) -> Vec<&'a str> {
    let keyword = error.schema_path().as_str();
    let object = keyword.strip_suffix("/additionalProperties").and_then(|parent| schema.pointer(parent));
    let properties = object.and_then(|object| object.get("properties")).and_then(Value::as_object);
    properties.map(|fields| fields.keys().map(String::as_str).collect()).unwrap_or_default()
}

fn unknown_field(path: &str, name: &str, known: &[&str]) -> Violation {
    let shown: String = name.chars().take(MAX_ECHO_LENGTH).collect();
    let advice = match nearest(name, known) {
        Some(field) => format!("did you mean `{field}`?"),
        None if known.is_empty() => "there are no fields here".to_owned(),
        None => format!("the fields are: {}", known.join(", ")),
    };
    Violation::new(joined(path, &shown), "unknown_field", format!("is not a known field; {advice}"))
}

fn wrong_choice(at: String, options: &Value, given: &Value) -> Violation {
    let accepted: Vec<&str> = options.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let list = wording::one_of(&accepted);
    let message = match given.as_str() {
        Some(text) if text.chars().count() <= MAX_ECHO_LENGTH => {
            let guess =
                nearest(text, &accepted).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            format!("{list}; not \"{text}\"{guess}")
        }
        _ => list,
    };
    Violation::new(at, "invalid_value", message)
}

/// The JSON spelling of a name: `folder_id` is `folderId`.
pub(crate) fn camel_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut raise = false;
    for letter in name.chars() {
        match letter {
            '_' | '-' => raise = !out.is_empty(),
            other if raise => {
                out.extend(other.to_uppercase());
                raise = false;
            }
            other => out.push(other),
        }
    }
    out
}

/// The known name most similar to this one, if above the threshold.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    // The comparison takes time and memory in both lengths, and no name of ours is similar to such a long one.
    if name.len() > MAX_NAME_LENGTH {
        return None;
    }
    let plain = |text: &str| text.replace(['_', '-'], "").to_lowercase();
    let wanted = plain(name);
    known
        .iter()
        .map(|candidate| (strsim::normalized_damerau_levenshtein(&wanted, &plain(candidate)), *candidate))
        .filter(|(likeness, _)| *likeness >= MIN_SIMILARITY)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate)
}

fn expected_types(kind: &TypeKind) -> String {
    let names: Vec<String> = match kind {
        TypeKind::Single(only) => vec![only.to_string()],
        TypeKind::Multiple(several) => several.iter().map(|one| one.to_string()).collect(),
    };
    // Whether a field is optional is irrelevant to a value that is present.
    let named = names.iter().filter(|name| *name != "null").map(|name| wording::json_type(name));
    wording::listed(&named.collect::<Vec<&str>>(), "or")
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::json;
    use utoipa::ToSchema;

    use super::*;
    use crate::schema::inputs;

    #[derive(Debug, Deserialize, ToSchema)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Markdown,
        Text,
    }

    #[derive(Debug, Deserialize, ToSchema)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Member {
        #[expect(dead_code, reason = "only checked")]
        #[schema(format = "uuid")]
        file_id: String,
    }

    #[derive(Debug, Deserialize, ToSchema)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Sample {
        #[schema(min_length = 1, max_length = 5)]
        name: String,
        file_type: Option<Kind>,
        #[expect(dead_code, reason = "only checked")]
        folder_id: Option<String>,
        #[serde(default)]
        #[schema(required = false)]
        members: Vec<Member>,
        #[schema(minimum = 1, maximum = 50)]
        limit: Option<u32>,
        #[expect(dead_code, reason = "only checked")]
        #[schema(max_items = 2)]
        few: Option<Vec<String>>,
    }

    inputs!(Sample);

    fn problems(value: Value) -> Vec<(String, String, String)> {
        let problem = read::<Sample>(value, "body").unwrap_err();
        let mut found: Vec<_> = problem
            .violations
            .into_iter()
            .map(|violation| (violation.path, violation.code, violation.message))
            .collect();
        found.sort();
        found
    }

    #[test]
    fn every_problem_is_named_at_once() {
        let found = problems(json!({
            "name": "too long", "fileType": "markdwn", "folderid": "x", "limit": 51,
            "members": [{"fileId": "0199c0de-0000-7000-8000-000000000001"}, {"fileId": "no"}, {}],
        }));
        let codes: Vec<_> = found.iter().map(|(path, code, _)| (path.as_str(), code.as_str())).collect();
        assert_eq!(
            codes,
            [
                ("fileType", "invalid_value"),
                ("folderid", "unknown_field"),
                ("limit", "too_large"),
                ("members[1].fileId", "invalid_id"),
                ("members[2].fileId", "required"),
                ("name", "too_long"),
            ]
        );
        assert!(
            found[0].2.contains("markdown, text") && found[0].2.contains("did you mean `markdown`"),
            "{:?}",
            found[0]
        );
        assert!(found[1].2.contains("`folderId`"), "{:?}", found[1]);
    }

    #[test]
    fn a_wrong_type_says_what_is_wanted() {
        assert_eq!(problems(json!({"name": 5}))[0].2, "must be a string, not the number 5");
        assert_eq!(
            problems(json!([])),
            [("body".into(), "wrong_type".into(), "must be an object, not an array".into())]
        );
        assert_eq!(problems(json!({"name": ""}))[0].2, "may not be empty");
        assert_eq!(
            problems(json!({"name": "a", "limit": "x"}))[0].2,
            "must be a whole number, not the string \"x\""
        );
    }

    #[test]
    fn a_secret_in_the_wrong_shape_is_not_repeated() {
        for path in ["credentials", "credentials.token", "password", "token"] {
            assert_eq!(found(path, &json!("hunter2")), "a string");
        }
        assert_eq!(found("maxTokens", &json!("x")), "the string \"x\"");
    }

    #[test]
    fn null_is_absence_and_texts_become_numbers() {
        let mut fields = json!({"name": "a", "fileType": null, "limit": "5"}).as_object().cloned().unwrap();
        coerce(&mut fields, Sample::contract());
        let sample = read::<Sample>(Value::Object(fields), "body").unwrap();
        assert_eq!((sample.limit, sample.members.len()), (Some(5), 0));
        assert!(sample.file_type.is_none() && sample.name == "a");
        let mut fields = json!({"name": "a", "limit": 5.0}).as_object().cloned().unwrap();
        coerce(&mut fields, Sample::contract());
        assert_eq!(read::<Sample>(Value::Object(fields), "body").unwrap().limit, Some(5));
    }

    #[test]
    fn a_long_wrong_value_is_not_repeated() {
        let secret = "s3cret".repeat(20);
        assert!(!problems(json!({"name": "a", "fileType": secret}))[0].2.contains("s3cret"));
    }

    #[test]
    fn problems_are_gathered_up_to_a_number() {
        let unknown: Map<String, Value> = (0..5_000).map(|at| (format!("x{at}"), Value::Null)).collect();
        let found = problems(Value::Object(unknown));
        assert_eq!(found.len(), MAX_VIOLATIONS + 1);
        assert!(found.iter().any(|(path, code, _)| path == "body" && code == "more"));
        let members = vec![json!({}); 5_000];
        assert_eq!(problems(json!({"name": "a", "members": members})).len(), MAX_VIOLATIONS + 1);
    }

    #[test]
    fn a_problem_far_behind_is_found_and_a_list_that_is_too_long_is_not_searched() {
        let right = json!({"fileId": "0199c0de-0000-7000-8000-000000000001"});
        let mut members = vec![right; 3 * MAX_SEARCHED];
        members.push(json!({}));
        let found = problems(json!({"name": "a", "members": members}));
        assert_eq!(found, [("members[3000].fileId".into(), "required".into(), "is required".into())]);
        let found = problems(json!({"name": "a", "few": ["x", "y", "z", 4, 5, 6]}));
        assert_eq!(found, [("few".into(), "too_many".into(), "may have at most 2 entries".into())]);
    }

    proptest! {
        #[test]
        fn any_json_is_judged_without_a_panic(text in "\\PC{0,64}", number in any::<f64>()) {
            let value = json!({"name": text, "limit": number, "members": [text], "x": {"y": [number]}});
            let _ = read::<Sample>(value, "body");
        }
    }
}
