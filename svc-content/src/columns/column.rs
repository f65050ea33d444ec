//! The values of one property as a column.

use std::cmp::Ordering;

use cairn_proto::ids::PropertyId;
use uuid::Uuid;

use super::bitmap::{Bitmap, lanes, passing};
use super::blocks::Blocks;
use super::texts::Texts;
use crate::model::{Cell, GroupBy, MAX_KEY_CHARS, Property, PropertyType, Ranked, Test, day_of, units_of};

/// With fewer selected rows in a block, their lists are looked up one by one instead of iterating over the block.
const SPARSE_BLOCK_ROWS: u32 = 16;

/// The parts of a property that its column depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ColumnSchema {
    pub(super) property: PropertyId,
    pub(super) kind: PropertyType,
    /// Option ids in order; the place of an option is its code.
    pub(super) options: Vec<String>,
}

impl ColumnSchema {
    pub(super) fn of(property: &Property) -> Self {
        let options = property.config.options.iter().map(|option| option.id.clone()).collect();
        Self { property: property.id, kind: property.kind, options }
    }

    /// For each option code whether its id is among these.
    pub(super) fn places_of(&self, ids: &[String]) -> Vec<bool> {
        self.options.iter().map(|option| ids.contains(option)).collect()
    }
}

/// A group key. Keys order as the groups do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Key<'a> {
    /// An option code; for truth values 0 and 1.
    Place(u16),
    Number(Ranked),
    Text(&'a [u8]),
    Id(u128),
}

#[derive(Debug, Clone)]
pub(super) enum Column {
    Text(Texts),
    /// Numbers and dates: NaN for none, and the text form that searches scan.
    Number {
        keys: Vec<f64>,
        texts: Texts,
    },
    /// Truth values and single options: 0 for none, otherwise the sort key plus one.
    Choice(Vec<u16>),
    /// Option codes.
    Choices(Blocks<u16>),
    References(Blocks<u128>),
}

impl Column {
    pub(super) fn of(kind: PropertyType) -> Self {
        match kind {
            PropertyType::Text | PropertyType::Url => Self::Text(Texts::of_words()),
            PropertyType::Number | PropertyType::Date => {
                Self::Number { keys: Vec::new(), texts: Texts::of_numbers() }
            }
            PropertyType::Boolean | PropertyType::Select => Self::Choice(Vec::new()),
            PropertyType::MultiSelect => Self::Choices(Blocks::default()),
            PropertyType::Relation | PropertyType::FileReference | PropertyType::AssetReference => {
                Self::References(Blocks::default())
            }
        }
    }

    /// Whether an order is maintained for it. No query sorts by referenced ids alone.
    pub(super) const fn is_ordered(&self) -> bool {
        !matches!(self, Self::References(_))
    }

    /// Replaces the cells of a row.
    pub(super) fn set(&mut self, row: u32, cells: &[&Cell]) {
        let first = cells.first();
        match self {
            Self::Text(texts) => texts.set(row, first.and_then(|cell| whole(cell)).unwrap_or_default()),
            Self::Number { keys, texts } => {
                // Adding zero turns -0.0 into 0.0, so that both compare equal.
                let key = first.and_then(|cell| cell.number).map_or(f64::NAN, |number| number + 0.0);
                put(keys, row, key, f64::NAN);
                texts.set(row, first.and_then(|cell| whole(cell)).unwrap_or_default());
            }
            Self::Choice(codes) => {
                let code = first.and_then(|cell| cell.number).map_or(0, |number| number as u16 + 1);
                put(codes, row, code, 0);
            }
            Self::Choices(places) => {
                let list: Vec<u16> =
                    cells.iter().filter_map(|cell| cell.number).map(|number| number as u16).collect();
                places.set(row, &list);
            }
            Self::References(ids) => {
                let texts = cells.iter().filter_map(|cell| cell.text.as_deref());
                let list: Vec<u128> =
                    texts.filter_map(|text| Uuid::try_parse(text).ok()).map(|id| id.as_u128()).collect();
                ids.set(row, &list);
            }
        }
    }

    /// Builds or rebuilds the text index if the column has outgrown it.
    pub(super) fn update_index(&mut self) {
        match self {
            Self::Text(texts) | Self::Number { texts, .. } => texts.update_index(),
            Self::Choice(_) | Self::Choices(_) | Self::References(_) => {}
        }
    }

    /// A sort key of 64 bits; `None` for a row without a value. Texts with the same first 8 bytes have equal ranks, which
    /// [`tie`](Self::tie) breaks.
    pub(super) fn rank(&self, row: u32) -> Option<u64> {
        match self {
            Self::Text(texts) => {
                let text = texts.text(row);
                let mut prefix = [0; size_of::<u64>()];
                prefix.iter_mut().zip(text).for_each(|(to, from)| *to = *from);
                (!text.is_empty()).then(|| u64::from_be_bytes(prefix))
            }
            Self::Number { .. } => self.number(row).map(|number| Ranked::of(number).bits()),
            Self::Choice(codes) => {
                codes.get(row as usize).filter(|code| **code > 0).map(|code| (*code).into())
            }
            Self::Choices(places) => places.list(row).first().map(|place| (*place).into()),
            Self::References(ids) => ids.list(row).first().map(|id| (*id >> 64) as u64),
        }
    }

    /// Breaks the tie between two rows of equal rank.
    pub(super) fn tie(&self, one: u32, other: u32) -> Ordering {
        match self {
            Self::Text(texts) => sort_key(texts.text(one)).cmp(sort_key(texts.text(other))),
            Self::References(ids) => ids.list(one).first().cmp(&ids.list(other).first()),
            Self::Number { .. } | Self::Choice(_) | Self::Choices(_) => Ordering::Equal,
        }
    }

    /// The number of a row; `None` if it has none, or the column is not numeric.
    pub(super) fn number(&self, row: u32) -> Option<f64> {
        let Self::Number { keys, .. } = self else { return None };
        keys.get(row as usize).copied().filter(|key| !key.is_nan())
    }

    /// Calls `each` with every group key of a row.
    pub(super) fn keys<'a>(&'a self, row: u32, by: &GroupBy, each: &mut impl FnMut(Key<'a>)) {
        match self {
            Self::Text(texts) => {
                let text = sort_key(texts.text(row));
                if !text.is_empty() {
                    each(Key::Text(text));
                }
            }
            Self::Number { .. } => {
                let Some(number) = self.number(row) else { return };
                each(Key::Number(Ranked::of(match by {
                    GroupBy::Date(unit) => units_of(day_of(number), *unit) as f64,
                    GroupBy::Number
                    | GroupBy::Option
                    | GroupBy::Text
                    | GroupBy::Reference
                    | GroupBy::Visible { .. } => number,
                })));
            }
            Self::Choice(codes) => {
                let place = codes.get(row as usize).and_then(|code| code.checked_sub(1));
                place.into_iter().for_each(|place| each(Key::Place(place)));
            }
            Self::Choices(places) => places.list(row).iter().for_each(|place| each(Key::Place(*place))),
            Self::References(ids) => ids.list(row).iter().for_each(|id| each(Key::Id(*id))),
        }
    }

    /// The rows of `within` that have a value.
    pub(super) fn present(&self, within: &Bitmap) -> Bitmap {
        match self {
            Self::Text(texts) => texts.present(within),
            Self::Number { keys, .. } => scan(keys, within, |key| !key.is_nan()),
            Self::Choice(codes) => scan(codes, within, |code| code > 0),
            Self::Choices(places) => any(places, within, |_| true),
            Self::References(ids) => any(ids, within, |_| true),
        }
    }

    /// The rows of `within` with a value that passes a test; `None` if the column cannot evaluate it. Text equality is
    /// evaluated by the sorted order instead.
    pub(super) fn passing(&self, schema: &ColumnSchema, test: &Test, within: &Bitmap) -> Option<Bitmap> {
        Some(match (self, test) {
            (_, Test::Present { .. }) => self.present(within),
            (Self::Text(texts), Test::TextHas(part)) => texts.matching(part, within),
            (Self::Number { keys, .. }, Test::NumberIs(numbers)) => match numbers.as_slice() {
                [only] => scan(keys, within, |key| key == *only),
                several => scan(keys, within, |key| several.contains(&key)),
            },
            (Self::Number { keys, .. }, Test::Between { from, to }) => {
                let (low, has_low) = from.unwrap_or((f64::NEG_INFINITY, true));
                let (high, has_high) = to.unwrap_or((f64::INFINITY, true));
                scan(keys, within, |key| {
                    (key > low || has_low && key == low) && (key < high || has_high && key == high)
                })
            }
            (Self::Choice(codes), Test::NumberIs(numbers)) => {
                scan(codes, within, |code| code > 0 && numbers.contains(&f64::from(code - 1)))
            }
            (Self::Choice(codes), Test::KeyIs(ids)) => choose(codes, within, &schema.places_of(ids)),
            (Self::Choices(places), Test::KeyIs(ids)) => {
                let wanted = schema.places_of(ids);
                any(places, within, |place| wanted.get(usize::from(place)).copied().unwrap_or(false))
            }
            (Self::References(ids), Test::KeyIs(texts)) => {
                let parsed = texts.iter().filter_map(|text| Uuid::try_parse(text).ok());
                let wanted: Vec<u128> = parsed.map(|id| id.as_u128()).collect();
                any(ids, within, |id| wanted.contains(&id))
            }
            _ => return None,
        })
    }

    /// The rows of `within` that a search word matches: in their text, or in the name of one of their options. `None` if no row
    /// can match, without reading any.
    pub(super) fn found(
        &self,
        schema: &ColumnSchema,
        word: &str,
        options: &[String],
        within: &Bitmap,
    ) -> Option<Bitmap> {
        let has_only = |marks: &[u8]| word.bytes().all(|byte| byte.is_ascii_digit() || marks.contains(&byte));
        let is_named = || schema.options.iter().any(|option| options.contains(option));
        Some(match self {
            Self::Text(texts) => texts.matching(word, within),
            // A word with a character that numbers and dates never contain cannot match.
            Self::Number { texts, .. } if has_only(b"-+:.etz") => texts.matching(word, within),
            Self::Choice(codes) if schema.kind == PropertyType::Select && is_named() => {
                choose(codes, within, &schema.places_of(options))
            }
            Self::Choices(places) if is_named() => {
                let wanted = schema.places_of(options);
                any(places, within, |place| wanted.get(usize::from(place)).copied().unwrap_or(false))
            }
            Self::Number { .. } | Self::Choice(_) | Self::Choices(_) | Self::References(_) => return None,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Text(texts) => texts.bytes(),
            Self::Number { keys, texts } => keys.capacity() * size_of::<f64>() + texts.bytes(),
            Self::Choice(codes) => codes.capacity() * size_of::<u16>(),
            Self::Choices(places) => places.bytes(),
            Self::References(ids) => ids.bytes(),
        }
    }
}

/// The prefix of a text that it sorts by.
pub(super) fn sort_key(text: &[u8]) -> &[u8] {
    if text.len() <= MAX_KEY_CHARS {
        return text;
    }
    let mut begins = text.iter().enumerate().filter(|(_, byte)| **byte & 0xC0 != 0x80);
    let end = begins.nth(MAX_KEY_CHARS).map_or(text.len(), |(place, _)| place);
    text.get(..end).unwrap_or(text)
}

fn whole(cell: &Cell) -> Option<&str> {
    cell.rest.as_deref().or(cell.text.as_deref())
}

fn put<T: Copy>(list: &mut Vec<T>, row: u32, value: T, nothing: T) {
    let row = row as usize;
    if row >= list.len() {
        list.resize(row + 1, nothing);
    }
    if let Some(place) = list.get_mut(row) {
        *place = value;
    }
}

fn scan<T: Copy>(values: &[T], within: &Bitmap, test: impl Fn(T) -> bool) -> Bitmap {
    let mut found = Bitmap::empty_like(within);
    for (word, rows) in within.words() {
        found.add_word(word, rows & passing(values, word, &test));
    }
    found
}

fn choose(codes: &[u16], within: &Bitmap, wanted: &[bool]) -> Bitmap {
    let is_wanted = |place: u16| wanted.get(usize::from(place)).copied().unwrap_or(false);
    let mut chosen = wanted.iter().enumerate().filter(|(_, is_wanted)| **is_wanted).map(|(place, _)| place);
    match (chosen.next(), chosen.next()) {
        (None, _) => Bitmap::empty_like(within),
        (Some(only), None) => {
            let code = only as u16 + 1;
            scan(codes, within, |one| one == code)
        }
        _ => scan(codes, within, |code| code > 0 && is_wanted(code - 1)),
    }
}

fn any<T: Copy>(lists: &Blocks<T>, within: &Bitmap, test: impl Fn(T) -> bool) -> Bitmap {
    let mut found = Bitmap::empty_like(within);
    for (number, rows) in within.words() {
        let Some(block) = lists.block(number) else { continue };
        let has = |list: &[T]| list.iter().any(|item| test(*item));
        let hits = if rows.count_ones() < SPARSE_BLOCK_ROWS {
            let hits = lanes(rows).filter(|lane| has(block.list(*lane as usize)));
            hits.fold(0_u64, |bits, lane| bits | 1 << lane)
        } else {
            let lists = block.lists().enumerate();
            rows & lists.fold(0_u64, |bits, (lane, list)| bits | u64::from(has(list)) << lane)
        };
        found.add_word(number, hits);
    }
    found
}
