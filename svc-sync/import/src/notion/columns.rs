//! Infers the types of columns: a type must fit every value, otherwise the column is text.

use std::collections::{HashMap, HashSet};

use cairn_proto::domain::limits::NAME_CHARS;

use super::dates;
use super::table::Table;
use crate::plan::{Property, PropertyKind, Value};
use crate::text::fold;

/// Options of a property.
const MAX_OPTIONS: usize = 500;
/// Characters of an option; longer values are sentences.
const MAX_OPTION_CHARS: usize = 100;
/// Characters of an element of a list.
const MAX_PART_CHARS: usize = 60;

/// Resolves links in values.
pub(super) trait LinkResolver {
    /// The database and the record of a row's page at this path.
    fn row(&self, path: &str) -> Option<(usize, usize)>;
    /// The attachment at this path.
    fn asset(&self, path: &str) -> Option<usize>;
}

/// The properties for a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) property: Property,
    /// The name of the second property, for the ends of ranges.
    pub(super) end: Option<String>,
}

/// The types of all columns. The first is the primary property, which is text. `declared` has Notion's names for the types of some columns,
/// which decide where values are ambiguous.
pub(super) fn types(
    table: &Table,
    declared: &HashMap<String, String>,
    follow: &impl LinkResolver,
) -> Vec<Column> {
    let mut names = table.columns.clone();
    let columns = table.columns.iter().enumerate().map(|(place, name)| {
        let declared = declared.get(name).map(String::as_str);
        let kind = if place == 0 { PropertyKind::Text } else { kind(table, place, declared, follow) };
        let is_range = kind == PropertyKind::Date && table.values(place).any(|value| value.contains('→'));
        let end = is_range.then(|| {
            let end = super::table::distinct(&names, &format!("{name} (end)"));
            names.push(end.clone());
            end
        });
        Column { property: Property { name: name.clone(), kind }, end }
    });
    columns.collect()
}

fn kind(table: &Table, column: usize, declared: Option<&str>, follow: &impl LinkResolver) -> PropertyKind {
    let values = || table.values(column);
    let all = |fits: &dyn Fn(&str) -> bool| values().all(fits);
    if values().next().is_none() {
        return PropertyKind::Text;
    }
    let chosen = match declared {
        Some("text" | "rich_text" | "title") => Some(PropertyKind::Text),
        Some("select" | "status") => distinct(values()).map(PropertyKind::Select),
        Some("multi_select") => lists(values()).and_then(distinct).map(PropertyKind::MultiSelect),
        _ => None,
    };
    if let Some(chosen) = chosen {
        return chosen;
    }
    if all(&|value| boolean(value).is_some()) {
        return PropertyKind::Boolean;
    }
    if all(&|value| number(value).is_some()) {
        return PropertyKind::Number;
    }
    if all(&|value| dates::read(value).is_some()) {
        return PropertyKind::Date;
    }
    if let Some(database) = related(values(), follow) {
        return PropertyKind::Relation(database);
    }
    if all(&|value| assets(value, follow).is_some()) {
        return PropertyKind::Assets;
    }
    if all(&is_url) {
        return PropertyKind::Url;
    }
    if let Some(options) = parts(values()) {
        return PropertyKind::MultiSelect(options);
    }
    options(values()).map_or(PropertyKind::Text, PropertyKind::Select)
}

/// The values of a row for a column's properties.
pub(super) fn value(
    column: &Column,
    text: &str,
    follow: &impl LinkResolver,
) -> Option<(Value, Option<Value>)> {
    if text.is_empty() {
        return None;
    }
    let value = match &column.property.kind {
        PropertyKind::Text => Value::Text(text.to_owned()),
        PropertyKind::Url => Value::Text(text.to_owned()),
        PropertyKind::Boolean => Value::Boolean(boolean(text)?),
        PropertyKind::Number => Value::Number(number(text)?),
        PropertyKind::Date => {
            let (begin, end) = dates::read(text)?;
            return Some((Value::Date(begin), end.map(Value::Date)));
        }
        PropertyKind::Select(_) => Value::Options(vec![text.to_owned()]),
        PropertyKind::MultiSelect(_) => Value::Options(text.split(", ").map(str::to_owned).collect()),
        PropertyKind::Relation(_) => {
            Value::Items(rows(text, follow)?.into_iter().map(|(_, row)| row).collect())
        }
        PropertyKind::Assets => Value::Items(assets(text, follow)?),
    };
    Some((value, None))
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "Yes" => Some(true),
        "No" => Some(false),
        _ => None,
    }
}

/// Parses a number that round-trips. Leading zeros mean codes, and more than 15 digits do not fit a double.
fn number(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let has_zeros = whole.len() > 1 && whole.starts_with('0');
    (is_digits(whole) && is_digits(part) && !has_zeros && whole.len() <= 15 && part.len() <= 20)
        .then(|| text.parse().ok())?
}

fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty()) && !text.contains(char::is_whitespace)
}

/// The database, if all values link to rows of one.
fn related<'a>(values: impl Iterator<Item = &'a str>, follow: &impl LinkResolver) -> Option<usize> {
    let mut database = None;
    for value in values {
        for (of, _) in rows(value, follow)? {
            if *database.get_or_insert(of) != of {
                return None;
            }
        }
    }
    database
}

/// Parses rows in the form `Title (path), Title (path)`.
fn rows(value: &str, follow: &impl LinkResolver) -> Option<Vec<(usize, usize)>> {
    let mut found = Vec::new();
    let mut rest = value;
    while !rest.is_empty() {
        // Titles and paths may contain brackets and commas, so a path is recognized by resolving it.
        let ends = rest.match_indices(')').map(|(end, _)| end);
        let ends = ends
            .filter(|end| rest.get(end + 1..).is_some_and(|rest| rest.is_empty() || rest.starts_with(", ")));
        let (row, end) = ends.take(16).find_map(|end| {
            let before = rest.get(..end)?;
            let begins = before.rmatch_indices(" (").take(16);
            let row = begins.filter_map(|(begin, _)| follow.row(before.get(begin + 2..)?)).next()?;
            Some((row, end))
        })?;
        found.push(row);
        rest = rest.get(end + 1..)?;
        rest = rest.strip_prefix(", ").unwrap_or(rest);
    }
    Some(found)
}

/// Parses attachments in the form `path, path`.
fn assets(value: &str, follow: &impl LinkResolver) -> Option<Vec<usize>> {
    value.split(", ").map(|path| follow.asset(path)).collect()
}

/// Splits values at commas, if all of them are lists.
fn lists<'a>(values: impl Iterator<Item = &'a str> + Clone) -> Option<impl Iterator<Item = &'a str> + Clone> {
    for value in values.clone() {
        let mut seen = HashSet::new();
        let fits = |part: &str| {
            !part.trim().is_empty() && part.trim() == part && part.chars().count() <= MAX_PART_CHARS
        };
        if !value.split(", ").all(|part| fits(part) && seen.insert(part)) {
            return None;
        }
    }
    Some(values.flat_map(|value| value.split(", ")))
}

/// The options of comma-separated lists, if elements recur.
fn parts<'a>(values: impl Iterator<Item = &'a str> + Clone) -> Option<Vec<String>> {
    if !values.clone().any(|value| value.contains(", ")) {
        return None;
    }
    let parts = lists(values)?;
    recurs(parts.clone()).then(|| distinct(parts))?
}

/// The options of a column of short values, if one recurs.
fn options<'a>(values: impl Iterator<Item = &'a str> + Clone) -> Option<Vec<String>> {
    recurs(values.clone()).then(|| distinct(values))?
}

fn recurs<'a>(mut names: impl Iterator<Item = &'a str>) -> bool {
    let mut seen = HashSet::new();
    !names.all(|name| seen.insert(name))
}

/// Distinct names in order of first occurrence; `None` if one is too long, or two differ only in case.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Option<Vec<String>> {
    let (mut seen, mut folded) = (HashSet::new(), HashSet::new());
    let mut options: Vec<String> = Vec::new();
    for name in names {
        let is_long = name.chars().count() > MAX_OPTION_CHARS.min(NAME_CHARS);
        if is_long || name.contains(char::is_control) {
            return None;
        }
        if seen.insert(name) {
            if !folded.insert(fold(name)) || options.len() == MAX_OPTIONS {
                return None;
            }
            options.push(name.to_owned());
        }
    }
    Some(options)
}

#[cfg(test)]
mod tests;
