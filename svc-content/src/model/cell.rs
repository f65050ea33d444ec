//! Cells: values in the form in which the engines compare, sort and count them.

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::PropertyId;
use serde_json::Value;

use super::{Database, Property, PropertyType, Values, fold};

/// Keeps keys below the page size of an index, in any script.
pub(crate) const MAX_KEY_CHARS: usize = 200;

pub(crate) const MICROS_PER_DAY: i64 = 86_400_000_000;

/// A date, or a point in time, as a half-open interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Day {
    pub(crate) start: i64,
    /// The exclusive end: the next day, or the next microsecond.
    pub(crate) end: i64,
}

impl Day {
    /// Parses `YYYY-MM-DD` (in UTC) or RFC 3339.
    pub(crate) fn read(text: &str) -> Option<Self> {
        const DATE_LENGTH: usize = 10;
        if text.len() == DATE_LENGTH {
            let start = Timestamp::parse_rfc3339(&format!("{text}T00:00:00Z"))?.as_micros();
            return Some(Self { start, end: start.saturating_add(MICROS_PER_DAY) });
        }
        let start = Timestamp::parse_rfc3339(text)?.as_micros();
        Some(Self { start, end: start.saturating_add(1) })
    }
}

/// One element of a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    pub(crate) property: PropertyId,
    pub(crate) place: usize,
    pub(crate) number: Option<f64>,
    pub(crate) text: Option<String>,
    /// The whole text where the key is only a prefix, or the searched text where there is no text key.
    pub(crate) rest: Option<String>,
    pub(crate) target: Option<String>,
}

/// The key of a text, and the whole text where the key is only a prefix.
pub(crate) fn text_key(folded: &str) -> (String, Option<String>) {
    match folded.char_indices().nth(MAX_KEY_CHARS) {
        None => (folded.to_owned(), None),
        Some((end, _)) => (folded.get(..end).unwrap_or(folded).to_owned(), Some(folded.to_owned())),
    }
}

/// The microseconds of a date as a key: exact up to the year 2255, and monotonic beyond.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "a key; see above")]
pub(crate) fn micros_key(micros: i64) -> f64 {
    micros as f64
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "a few hundred options at most")]
pub(crate) fn place_key(place: usize) -> f64 {
    place as f64
}

/// The cells of the values of a record.
pub(crate) fn cells(database: &Database, values: &Values) -> Vec<Cell> {
    let mut cells = Vec::new();
    for property in &database.properties {
        let Some(value) = values.get(&property.id.to_string()) else { continue };
        let elements = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
        let made = elements.iter().filter_map(|element| cell(property, element));
        cells.extend(made.enumerate().map(|(place, cell)| Cell { place, ..cell }));
    }
    cells
}

fn cell(property: &Property, element: &Value) -> Option<Cell> {
    let mut cell =
        Cell { property: property.id, place: 0, number: None, text: None, rest: None, target: None };
    match property.kind {
        PropertyType::Text | PropertyType::Url => {
            let folded = fold(element.as_str().filter(|text| !text.is_empty())?);
            let (key, rest) = text_key(&folded);
            cell.text = Some(key);
            cell.rest = rest;
        }
        PropertyType::Number => {
            cell.number = Some(element.as_f64()?);
            cell.rest = Some(element.to_string());
        }
        PropertyType::Boolean => cell.number = Some(if element.as_bool()? { 1.0 } else { 0.0 }),
        PropertyType::Date => {
            let text = element.as_str()?;
            cell.number = Some(micros_key(Day::read(text)?.start));
            cell.rest = Some(fold(text));
        }
        PropertyType::Select | PropertyType::MultiSelect => {
            let id = element.as_str()?;
            cell.number = Some(place_key(property.option_place(id)?));
            cell.text = Some(id.to_owned());
        }
        PropertyType::Relation | PropertyType::FileReference | PropertyType::AssetReference => {
            let id = element.as_str()?;
            cell.text = Some(id.to_owned());
            cell.target = Some(id.to_owned());
        }
    }
    Some(cell)
}

/// The folded texts of the values of a record for free-text search; options are matched by their ids.
pub(crate) fn searched(cells: &[Cell]) -> String {
    let texts =
        cells.iter().filter(|cell| cell.target.is_none() && !(cell.number.is_some() && cell.text.is_some()));
    let read: Vec<&str> = texts.filter_map(|cell| cell.rest.as_deref().or(cell.text.as_deref())).collect();
    read.join("\n")
}
