//! Validation of filters: trees of conditions on typed values.

use cairn_chassis::wording::{self, Unit};
use cairn_proto::domain::limits::FILTER_LEVELS;
use cairn_proto::domain::{self, Misread, Operator};
use cairn_proto::ids::PropertyId;
use serde_json::Value;

use crate::checks::Checks;
use crate::model::{
    Condition, Database, Day, Filter, Property, PropertyType, Test, fold, micros_key, text_key,
};

const MAX_CONDITIONS: usize = 50;
const MAX_CHOICES: usize = 200;

/// The operators that apply to a property type.
const fn operators_of(kind: PropertyType) -> &'static [Operator] {
    match kind {
        PropertyType::Number => &[
            Operator::Equals,
            Operator::NotEquals,
            Operator::In,
            Operator::Gt,
            Operator::Gte,
            Operator::Lt,
            Operator::Lte,
            Operator::IsEmpty,
            Operator::IsNotEmpty,
        ],
        PropertyType::Boolean => {
            &[Operator::Equals, Operator::NotEquals, Operator::In, Operator::IsEmpty, Operator::IsNotEmpty]
        }
        PropertyType::Date => &[
            Operator::Equals,
            Operator::NotEquals,
            Operator::Before,
            Operator::After,
            Operator::Gt,
            Operator::Gte,
            Operator::Lt,
            Operator::Lte,
            Operator::IsEmpty,
            Operator::IsNotEmpty,
        ],
        PropertyType::Text
        | PropertyType::Url
        | PropertyType::Select
        | PropertyType::MultiSelect
        | PropertyType::Relation
        | PropertyType::FileReference
        | PropertyType::AssetReference => &[
            Operator::Equals,
            Operator::NotEquals,
            Operator::Contains,
            Operator::In,
            Operator::IsEmpty,
            Operator::IsNotEmpty,
        ],
    }
}

/// Validates a tree; `None` if it is invalid, in which case `checks` has the violation.
pub(crate) fn check(
    checks: &mut Checks,
    database: &Database,
    tree: &domain::Filter,
    path: &str,
    allow_names: bool,
) -> Option<Filter> {
    let mut reader = FilterReader { checks, database, allow_names, conditions: 0 };
    reader.tree(tree, path, 0)
}

struct FilterReader<'a> {
    checks: &'a mut Checks,
    database: &'a Database,
    allow_names: bool,
    conditions: usize,
}

impl FilterReader<'_> {
    fn tree(&mut self, tree: &domain::Filter, path: &str, depth: usize) -> Option<Filter> {
        if depth >= FILTER_LEVELS {
            let too_deep = Misread::too_deep(path);
            self.checks.violation(path, too_deep.code, too_deep.message);
            return None;
        }
        match tree {
            domain::Filter::All(branches) => {
                self.branches(branches, &format!("{path}.and"), depth).map(Filter::All)
            }
            domain::Filter::Any(branches) => {
                self.branches(branches, &format!("{path}.or"), depth).map(Filter::Any)
            }
            domain::Filter::Is(condition) => self.condition(condition, path),
        }
    }

    fn branches(&mut self, branches: &[domain::Filter], path: &str, depth: usize) -> Option<Vec<Filter>> {
        let mut read = Vec::with_capacity(branches.len().min(MAX_CONDITIONS));
        let mut is_whole = true;
        for (place, branch) in branches.iter().enumerate() {
            if self.conditions > MAX_CONDITIONS {
                return None;
            }
            match self.tree(branch, &format!("{path}[{place}]"), depth + 1) {
                Some(filter) => read.push(filter),
                None => is_whole = false,
            }
        }
        is_whole.then_some(read)
    }

    fn condition(&mut self, condition: &domain::Condition, path: &str) -> Option<Filter> {
        self.conditions += 1;
        if self.conditions > MAX_CONDITIONS {
            self.checks.violation(path, "too_many", wording::at_most(MAX_CONDITIONS, Unit::Conditions));
            return None;
        }
        if condition.operator.is_none() {
            let at = format!("{path}.operator");
            self.checks.violation(&at, "invalid_value", wording::one_of(&Operator::NAMES));
        }
        let field = format!("{path}.fieldId");
        let property = self.database.find(self.checks, &field, &condition.field_id, self.allow_names);
        let (operator, property) = (condition.operator?, property?);
        let value = condition.value.as_ref().unwrap_or(&Value::Null);
        let (test, is_negated) = self.test(property, operator, value, path)?;
        let is_single = !matches!(
            property.kind,
            PropertyType::MultiSelect
                | PropertyType::Relation
                | PropertyType::FileReference
                | PropertyType::AssetReference
        );
        Some(Filter::Is(Condition { property: property.id, test, is_negated, is_single }))
    }

    fn test(
        &mut self,
        property: &Property,
        operator: Operator,
        value: &Value,
        path: &str,
    ) -> Option<(Test, bool)> {
        let present = Test::Present { by_number: sorts_by_number(property.kind) };
        if matches!(operator, Operator::IsEmpty | Operator::IsNotEmpty) {
            return Some((present, operator == Operator::IsEmpty));
        }
        let refuse = |reader: &mut Self| {
            let message = format!(
                "does not apply to {}: use one of {}",
                property.kind.as_str(),
                operators_of(property.kind).iter().map(|one| one.as_str()).collect::<Vec<_>>().join(", ")
            );
            reader.checks.violation(&format!("{path}.operator"), "invalid_operator", message);
            None
        };
        if !operators_of(property.kind).contains(&operator) {
            return refuse(self);
        }
        let is_negated = operator == Operator::NotEquals;
        let operator = if is_negated { Operator::Equals } else { operator };
        let choices: Vec<&Value> = match (operator, value) {
            (Operator::In, Value::Array(elements)) => elements.iter().collect(),
            (_, one) => vec![one],
        };
        let at = format!("{path}.value");
        if choices.len() > MAX_CHOICES {
            self.checks.violation(&at, "too_many", wording::at_most(MAX_CHOICES, Unit::Entries));
            return None;
        }
        let test = match property.kind {
            PropertyType::Text | PropertyType::Url => text(operator, &choices),
            PropertyType::Number => number(operator, &choices),
            PropertyType::Boolean => boolean(operator, &choices),
            PropertyType::Date => date(operator, &choices),
            PropertyType::Select | PropertyType::MultiSelect => option(property, operator, &choices),
            PropertyType::Relation | PropertyType::FileReference | PropertyType::AssetReference => {
                reference(operator, &choices)
            }
        };
        match test {
            Ok(test) => Some((test, is_negated)),
            Err(Refusal::Operator) => refuse(self),
            Err(Refusal::Value(message)) => {
                self.checks.violation(&at, "invalid_value", message);
                None
            }
        }
    }
}

fn text(operator: Operator, choices: &[&Value]) -> Result<Test, Refusal> {
    let mut texts = Vec::with_capacity(choices.len());
    for choice in choices {
        texts
            .push(fold(as_text(choice).filter(|text| !text.contains('\0')).ok_or_else(needs_text)?.as_str()));
    }
    match (operator, texts.as_slice()) {
        (Operator::Equals | Operator::In, texts) => {
            Ok(Test::TextIs(texts.iter().map(|text| text_key(text)).collect()))
        }
        (Operator::Contains, [only]) => Ok(Test::TextHas(only.clone())),
        _ => Err(Refusal::Operator),
    }
}

fn number(operator: Operator, choices: &[&Value]) -> Result<Test, Refusal> {
    let mut numbers = Vec::with_capacity(choices.len());
    for choice in choices {
        let read = choice.as_f64().or_else(|| choice.as_str()?.trim().parse().ok());
        let message = || Refusal::Value("must be a number".to_owned());
        numbers.push(read.filter(|number| number.is_finite()).ok_or_else(message)?);
    }
    match (operator, numbers.as_slice()) {
        (Operator::Equals | Operator::In, numbers) => Ok(Test::NumberIs(numbers.to_vec())),
        (operator, [only]) => between(operator, *only, *only),
        _ => Err(Refusal::Operator),
    }
}

fn boolean(operator: Operator, choices: &[&Value]) -> Result<Test, Refusal> {
    if !matches!(operator, Operator::Equals | Operator::In) {
        return Err(Refusal::Operator);
    }
    let mut numbers = Vec::with_capacity(choices.len());
    for choice in choices {
        let read = choice.as_bool().or_else(|| choice.as_str()?.trim().parse().ok());
        let message = || Refusal::Value("must be true or false".to_owned());
        numbers.push(if read.ok_or_else(message)? { 1.0 } else { 0.0 });
    }
    Ok(Test::NumberIs(numbers))
}

fn date(operator: Operator, choices: &[&Value]) -> Result<Test, Refusal> {
    let message = || Refusal::Value("must be a date such as 2026-11-20, or an RFC 3339 time".to_owned());
    let [only] = choices else { return Err(Refusal::Operator) };
    let day = only.as_str().and_then(Day::read).ok_or_else(message)?;
    let (start, end) = (micros_key(day.start), micros_key(day.end));
    match operator {
        Operator::Equals => Ok(Test::Between { from: Some((start, true)), to: Some((end, false)) }),
        Operator::Before | Operator::Lt => Ok(Test::Between { from: None, to: Some((start, false)) }),
        Operator::Lte => Ok(Test::Between { from: None, to: Some((end, false)) }),
        Operator::After | Operator::Gt => Ok(Test::Between { from: Some((end, true)), to: None }),
        Operator::Gte => Ok(Test::Between { from: Some((start, true)), to: None }),
        Operator::In
        | Operator::Contains
        | Operator::NotEquals
        | Operator::IsEmpty
        | Operator::IsNotEmpty => Err(Refusal::Operator),
    }
}

fn option(property: &Property, operator: Operator, choices: &[&Value]) -> Result<Test, Refusal> {
    let mut ids = Vec::with_capacity(choices.len());
    for choice in choices {
        let text = choice.as_str().ok_or_else(needs_text)?;
        let named = property.option_named(text).map(|option| option.id.clone());
        match (operator, named) {
            (Operator::Equals | Operator::In | Operator::Contains, Some(id)) => ids.push(id),
            (Operator::Contains, None) => {
                let wanted = fold(text);
                let alike =
                    property.config.options.iter().filter(|option| fold(&option.name).contains(&wanted));
                ids.extend(alike.map(|option| option.id.clone()));
            }
            (Operator::Equals | Operator::In, None) => {
                let message = format!("must be one of the options: {}", property.choices());
                return Err(Refusal::Value(message));
            }
            _ => return Err(Refusal::Operator),
        }
    }
    Ok(Test::KeyIs(ids))
}

fn reference(operator: Operator, choices: &[&Value]) -> Result<Test, Refusal> {
    if !matches!(operator, Operator::Equals | Operator::In | Operator::Contains) {
        return Err(Refusal::Operator);
    }
    let mut ids = Vec::with_capacity(choices.len());
    for choice in choices {
        let id: Option<PropertyId> = choice.as_str().and_then(|text| text.parse().ok());
        let message = || Refusal::Value(wording::ID.to_owned());
        ids.push(id.ok_or_else(message)?.to_string());
    }
    Ok(Test::KeyIs(ids))
}

enum Refusal {
    Operator,
    Value(String),
}

fn needs_text() -> Refusal {
    Refusal::Value("must be a text".to_owned())
}

/// A JSON number or truth value for a text property means its literal.
fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn between(operator: Operator, low: f64, high: f64) -> Result<Test, Refusal> {
    match operator {
        Operator::Gt => Ok(Test::Between { from: Some((high, false)), to: None }),
        Operator::Gte => Ok(Test::Between { from: Some((low, true)), to: None }),
        Operator::Lt => Ok(Test::Between { from: None, to: Some((low, false)) }),
        Operator::Lte => Ok(Test::Between { from: None, to: Some((high, true)) }),
        Operator::Equals
        | Operator::NotEquals
        | Operator::Contains
        | Operator::In
        | Operator::Before
        | Operator::After
        | Operator::IsEmpty
        | Operator::IsNotEmpty => Err(Refusal::Operator),
    }
}

/// Whether a property type has numeric sort keys.
pub(crate) const fn sorts_by_number(kind: PropertyType) -> bool {
    matches!(
        kind,
        PropertyType::Number
            | PropertyType::Boolean
            | PropertyType::Date
            | PropertyType::Select
            | PropertyType::MultiSelect
    )
}

#[cfg(test)]
mod tests;
