//! One JSON Schema per input: derived by utoipa from the type, with references inlined.
//!
//! REST bodies, the OpenAPI document and the MCP tools all use it, so they cannot drift apart.

use std::sync::OnceLock;

use jsonschema::Validator;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use utoipa::ToSchema;

const REFERENCE: &str = "#/components/schemas/";
/// No schema of ours nests deeper; bounds the inlining of a recursive type.
const MAX_DEPTH: usize = 24;

/// A type that callers send: its schema validates the JSON before serde decodes it.
pub(crate) trait Input: ToSchema + DeserializeOwned + Send + 'static {
    /// The type's contract, built at first use: a cold start must not pay for unused schemas.
    fn contract() -> &'static Contract;
}

/// Implements [`Input`]: each type needs its own static for its contract, which a generic function cannot provide.
macro_rules! inputs {
    ($($name:ident),+ $(,)?) => {
        $(
            impl $crate::schema::Input for $name {
                fn contract() -> &'static $crate::schema::Contract {
                    static CONTRACT: std::sync::OnceLock<$crate::schema::Contract> = std::sync::OnceLock::new();
                    CONTRACT.get_or_init($crate::schema::Contract::of::<$name>)
                }
            }
        )+
    };
}
pub(crate) use inputs;

/// The schema of an input and its compiled validator.
pub(crate) struct Contract {
    schema: Value,
    validator: OnceLock<Option<Validator>>,
    takes_nothing: OnceLock<bool>,
}

cairn_chassis::debug_fields!(Contract { schema });

impl Contract {
    pub(crate) fn of<T: Input>() -> Self {
        Self { schema: inlined::<T>(), validator: OnceLock::new(), takes_nothing: OnceLock::new() }
    }

    pub(crate) fn schema(&self) -> &Value {
        &self.schema
    }

    /// The schema of one field.
    pub(crate) fn field(&self, name: &str) -> Option<&Value> {
        self.schema.get("properties")?.get(name)
    }

    /// Whether a field is a list.
    pub(crate) fn is_list(&self, name: &str) -> bool {
        self.field(name).is_some_and(|field| field.get("items").is_some())
    }

    /// `None` if the schema itself is invalid: a bug of ours, caught by a test over all inputs.
    pub(crate) fn validator(&self) -> Option<&Validator> {
        let compile = || jsonschema::options().should_validate_formats(true).build(&self.schema).ok();
        self.validator.get_or_init(compile).as_ref()
    }

    /// Whether an input may be empty, in which case an empty one needs no validation.
    pub(crate) fn takes_nothing(&self) -> bool {
        let nothing = Value::Object(Map::new());
        let is_valid = || self.validator().is_some_and(|validator| validator.is_valid(&nothing));
        *self.takes_nothing.get_or_init(is_valid)
    }

    /// The schema as published with tools: some clients do not support lists of types, and optional arguments are
    /// simply omitted, so `null` is not offered (but still accepted).
    pub(crate) fn portable(&self) -> Value {
        let mut schema = self.schema.clone();
        without_null(&mut schema);
        schema
    }
}

/// The schema of a type with all references inlined.
pub(crate) fn inlined<T: ToSchema>() -> Value {
    let mut parts = Vec::new();
    T::schemas(&mut parts);
    let components: Map<String, Value> =
        parts.into_iter().map(|(name, schema)| (name, as_value(&schema))).collect();
    inline(as_value(&T::schema()), &components, 0)
}

fn as_value<T: Serialize>(schema: &T) -> Value {
    serde_json::to_value(schema).unwrap_or_default()
}

fn inline(value: Value, components: &Map<String, Value>, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return Value::Bool(true);
    }
    match value {
        Value::Object(fields) => inline_object(fields, components, depth),
        Value::Array(items) => items.into_iter().map(|item| inline(item, components, depth + 1)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

fn inline_object(mut fields: Map<String, Value>, components: &Map<String, Value>, depth: usize) -> Value {
    if let Some(Value::String(text)) = fields.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    if let Some(name) =
        fields.get("$ref").and_then(Value::as_str).and_then(|link| link.strip_prefix(REFERENCE))
    {
        let target = components.get(name).cloned().unwrap_or_default();
        fields.remove("$ref");
        return merged(inline(target, components, depth + 1), fields);
    }
    let mut whole: Map<String, Value> =
        fields.into_iter().map(|(key, item)| (key, inline(item, components, depth + 1))).collect();
    // int32 and int64 are OpenAPI formats, noise to other readers.
    let keeps_format = whole.get("format").is_none_or(|format| format == "uuid" || format == "date-time");
    if !keeps_format {
        whole.remove("format");
    }
    flatten_nullable(whole)
}

/// The description beside a reference overrides that of its target.
fn merged(target: Value, beside: Map<String, Value>) -> Value {
    let Value::Object(mut whole) = target else {
        return target;
    };
    whole.extend(beside);
    Value::Object(whole)
}

/// Turns `oneOf: [{type: null}, X]` into X with a nullable type, so that errors refer to X and not to the
/// alternatives.
fn flatten_nullable(mut fields: Map<String, Value>) -> Value {
    let is_null = |option: &Value| option.get("type").is_some_and(|kind| kind == "null");
    let options = match fields.get("oneOf").and_then(Value::as_array).map(Vec::as_slice) {
        Some([null, other]) if is_null(null) => other.clone(),
        Some([other, null]) if is_null(null) => other.clone(),
        _ => return Value::Object(fields),
    };
    fields.remove("oneOf");
    let Value::Object(mut whole) = merged(options, fields) else {
        return Value::Bool(true);
    };
    if let Some(kind) = whole.get("type").cloned() {
        whole.insert("type".to_owned(), Value::from(vec![kind, Value::from("null")]));
    }
    if let Some(Value::Array(values)) = whole.get_mut("enum") {
        values.push(Value::Null);
    }
    Value::Object(whole)
}

fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Array(values)) = fields.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
            if let Some(kinds) = fields.get("type").and_then(Value::as_array) {
                let kept: Vec<Value> = kinds.iter().filter(|kind| *kind != "null").cloned().collect();
                let only = if let [only] = kept.as_slice() { only.clone() } else { Value::Array(kept) };
                fields.insert("type".to_owned(), only);
            }
            fields.values_mut().for_each(without_null);
        }
        Value::Array(items) => items.iter_mut().for_each(without_null),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize, ToSchema)]
    #[serde(rename_all = "lowercase")]
    enum Colour {
        Red,
        Blue,
    }

    #[derive(Deserialize, ToSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema is read")]
    struct Paint {
        /// Which colour.
        colour: Option<Colour>,
        coats: u32,
    }

    #[derive(Deserialize, ToSchema)]
    #[expect(dead_code, reason = "only its schema is read")]
    struct Choice {
        colour: Option<Colour>,
    }

    inputs!(Paint, Choice);

    #[test]
    fn references_are_written_out_and_nullable_ones_flattened() {
        let schema = inlined::<Paint>();
        assert_eq!(schema["properties"]["colour"]["type"], json!(["string", "null"]));
        assert_eq!(schema["properties"]["colour"]["enum"], json!(["red", "blue", null]));
        assert_eq!(schema["properties"]["colour"]["description"], "Which colour.");
        assert_eq!(schema["additionalProperties"], json!(false));
        assert_eq!(schema["required"], json!(["coats"]));
        assert!(!schema.to_string().contains("$ref"));
        assert!(schema["properties"]["coats"].get("format").is_none());
    }

    #[test]
    fn what_may_be_left_out_altogether_is_known() {
        assert!(!Contract::of::<Paint>().takes_nothing(), "coats are required");
        assert!(Contract::of::<Choice>().takes_nothing());
    }

    #[test]
    fn tools_are_shown_no_null() {
        let schema = Contract::of::<Paint>().portable();
        assert_eq!(schema["properties"]["colour"]["type"], "string");
        assert_eq!(schema["properties"]["colour"]["enum"], json!(["red", "blue"]));
    }
}
