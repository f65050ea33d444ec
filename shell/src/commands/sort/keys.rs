//! The sort keys of lines.

use std::cmp::Ordering;
use std::ops::Range;

/// How two texts compare.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) reverse: bool,
    numeric: bool,
    human: bool,
    version: bool,
    fold: bool,
    blanks: bool,
    dictionary: bool,
}

impl Order {
    /// Sets an option by its letter; returns whether it is one.
    pub(super) fn set(&mut self, letter: char) -> bool {
        match letter {
            'r' => self.reverse = true,
            'n' | 'g' => self.numeric = true,
            'h' => self.human = true,
            'V' => self.version = true,
            'f' => self.fold = true,
            'b' => self.blanks = true,
            'd' => self.dictionary = true,
            _ => return false,
        }
        true
    }

    pub(super) fn set_long(&mut self, name: &str) -> bool {
        self.set(match name {
            "reverse" => 'r',
            "numeric-sort" => 'n',
            "general-numeric-sort" => 'g',
            "human-numeric-sort" => 'h',
            "version-sort" => 'V',
            "ignore-case" => 'f',
            "ignore-leading-blanks" => 'b',
            "dictionary-order" => 'd',
            _ => return false,
        })
    }
}

/// A range of a line, from one field and character to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) order: Order,
    from: Place,
    /// `None`: to the end of the line.
    to: Option<Place>,
    /// Whether leading blanks of the last field are skipped.
    to_skips_blanks: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    /// Counted from 1.
    field: usize,
    /// Counted from 1; 0 in an end position: the last one of the field.
    char: usize,
}

impl Key {
    /// `FIELD[.CHAR][OPTIONS][,FIELD[.CHAR][OPTIONS]]`
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut order = Order::default();
        let (from, to) = text.split_once(',').map_or((text, None), |(from, to)| (from, Some(to)));
        let from = Place::parse(from, 1, &mut order)?;
        let from_skips_blanks = std::mem::take(&mut order.blanks);
        let to = match to {
            Some(to) => Some(Place::parse(to, 0, &mut order)?),
            None => None,
        };
        // `b` applies to the position that it is attached to; all other letters to the key.
        let to_skips_blanks = std::mem::replace(&mut order.blanks, from_skips_blanks);
        let counts = from.field > 0 && from.char > 0 && to.is_none_or(|to| to.field > 0);
        counts.then_some(Self { order, from, to, to_skips_blanks })
    }

    /// Inherits the ordering of the command, if it has none of its own.
    pub(super) fn inherit(&mut self, order: Order) {
        if self.order == Order::default() && !self.to_skips_blanks {
            self.order = order;
            self.to_skips_blanks = order.blanks;
        }
    }

    /// The range of the key in a line.
    pub(super) fn range(&self, line: &[u8], separator: Option<u8>) -> Range<usize> {
        let start = self.start(line, separator);
        let end = self.to.map_or(line.len(), |to| end(to, line, separator, self.to_skips_blanks));
        start..end.max(start)
    }

    /// The text of the key in a line.
    pub(super) fn of<'a>(&self, line: &'a [u8], separator: Option<u8>) -> &'a [u8] {
        line.get(self.range(line, separator)).unwrap_or_default()
    }

    fn start(&self, line: &[u8], separator: Option<u8>) -> usize {
        let mut at = field_start(line, separator, self.from.field);
        if self.order.blanks {
            at += blanks(line.get(at..).unwrap_or_default());
        }
        at.saturating_add(self.from.char - 1).min(line.len())
    }
}

fn end(place: Place, line: &[u8], separator: Option<u8>, skips_blanks: bool) -> usize {
    if place.char == 0 {
        return field_end(line, separator, place.field);
    }
    let mut at = field_start(line, separator, place.field);
    if skips_blanks {
        at += blanks(line.get(at..).unwrap_or_default());
    }
    at.saturating_add(place.char).min(line.len())
}

impl Place {
    fn parse(text: &str, char: usize, order: &mut Order) -> Option<Self> {
        let letters_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (numbers, letters) = text.split_at_checked(letters_at)?;
        if !letters.chars().all(|letter| order.set(letter)) {
            return None;
        }
        let (field, char) = match numbers.split_once('.') {
            Some((field, char)) => (field.parse().ok()?, char.parse().ok()?),
            None => (numbers.parse().ok()?, char),
        };
        Some(Self { field, char })
    }
}

/// The start of a field. Without a separator, leading blanks belong to the field.
fn field_start(line: &[u8], separator: Option<u8>, field: usize) -> usize {
    if field <= 1 {
        return 0;
    }
    let end = field_end(line, separator, field - 1);
    match separator {
        Some(_) => (end + 1).min(line.len()),
        None => end,
    }
}

fn field_end(line: &[u8], separator: Option<u8>, field: usize) -> usize {
    if let Some(separator) = separator {
        return memchr::memchr_iter(separator, line).nth(field - 1).unwrap_or(line.len());
    }
    let mut at = 0;
    for _ in 0..field {
        if at == line.len() {
            break;
        }
        let rest = line.get(at..).unwrap_or_default();
        let text = at + blanks(rest);
        let rest = line.get(text..).unwrap_or_default();
        at = rest.iter().position(|byte| is_blank(*byte)).map_or(line.len(), |length| text + length);
    }
    at
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn blanks(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_blank(**byte)).count()
}

/// The range to compare if the whole line is the key.
pub(super) fn whole(order: Order, line: &[u8]) -> Range<usize> {
    let start = if order.blanks { blanks(line) } else { 0 };
    start..line.len()
}

pub(super) fn compare_by(order: Order, left: &[u8], right: &[u8]) -> Ordering {
    let ordering = if order.numeric {
        Number::of(left).cmp(&Number::of(right))
    } else if order.human {
        human(left, order.fold).cmp(&human(right, order.fold))
    } else if order.version {
        compare_versions(left, right)
    } else if order.fold || order.dictionary {
        let kept = |byte: &&u8| !order.dictionary || byte.is_ascii_alphanumeric() || is_blank(**byte);
        let folded = |byte: &u8| if order.fold { byte.to_ascii_uppercase() } else { *byte };
        left.iter().filter(kept).map(folded).cmp(right.iter().filter(kept).map(folded))
    } else {
        left.cmp(right)
    };
    if order.reverse { ordering.reverse() } else { ordering }
}

/// A decimal number of any length; text that is not a number is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Number<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
}

impl<'a> Number<'a> {
    fn of(text: &'a [u8]) -> Self {
        let text = text.get(blanks(text)..).unwrap_or_default();
        let (negative, digits) = match text.strip_prefix(b"-") {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let (whole, rest) = digits.split_at(count_digits(digits));
        let fraction = rest.strip_prefix(b".").unwrap_or_default();
        let (fraction, _) = fraction.split_at(count_digits(fraction));
        let zeros = whole.iter().take_while(|digit| **digit == b'0').count();
        let whole = whole.get(zeros..).unwrap_or_default();
        let last = fraction.iter().rposition(|digit| *digit != b'0').map_or(0, |at| at + 1);
        let fraction = fraction.get(..last).unwrap_or_default();
        let zero = whole.is_empty() && fraction.is_empty();
        Self { negative: negative && !zero, whole, fraction }
    }

    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self.cmp_size(other),
            (true, true) => other.cmp_size(self),
        }
    }

    fn cmp_size(&self, other: &Self) -> Ordering {
        let by_whole = self.whole.len().cmp(&other.whole.len()).then_with(|| self.whole.cmp(other.whole));
        by_whole.then_with(|| self.fraction.cmp(other.fraction))
    }
}

fn count_digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// The key of `sort -h`: orders by sign, then by unit, then by number, as GNU does.
fn human(text: &[u8], fold: bool) -> HumanKey<'_> {
    let number = Number::of(text);
    let text = text.get(blanks(text)..).unwrap_or_default();
    let rest = text.strip_prefix(b"-").unwrap_or(text);
    let after = rest.get(count_digits(rest)..).unwrap_or_default();
    let after = match after.strip_prefix(b".") {
        Some(fraction) => fraction.get(count_digits(fraction)..).unwrap_or_default(),
        None => after,
    };
    let zero = number.whole.is_empty() && number.fraction.is_empty();
    let letter = after.first().map(|letter| if fold { letter.to_ascii_uppercase() } else { *letter });
    let unit = match letter {
        _ if zero => 0,
        Some(b'k' | b'K') => 1,
        Some(b'M') => 2,
        Some(b'G') => 3,
        Some(b'T') => 4,
        Some(b'P') => 5,
        Some(b'E') => 6,
        Some(_) | None => 0,
    };
    HumanKey { unit: if number.negative { -unit } else { unit }, number }
}

struct HumanKey<'a> {
    unit: i8,
    number: Number<'a>,
}

impl HumanKey<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let signs = other.number.negative.cmp(&self.number.negative);
        signs.then_with(|| self.unit.cmp(&other.unit)).then_with(|| self.number.cmp(&other.number))
    }
}

/// Digit sequences compare as numbers, everything else by bytes.
fn compare_versions(left: &[u8], right: &[u8]) -> Ordering {
    let (mut left, mut right) = (left, right);
    loop {
        let (left_text, left_rest) = split_text(left);
        let (right_text, right_rest) = split_text(right);
        let by_text = left_text.cmp(right_text);
        if by_text.is_ne() {
            return by_text;
        }
        let (left_digits, left_after) = left_rest.split_at(count_digits(left_rest));
        let (right_digits, right_after) = right_rest.split_at(count_digits(right_rest));
        let by_number = Number::of(left_digits).cmp(&Number::of(right_digits));
        if by_number.is_ne() {
            return by_number;
        }
        if left_after.is_empty() || right_after.is_empty() {
            return left_after.len().cmp(&right_after.len());
        }
        (left, right) = (left_after, right_after);
    }
}

fn split_text(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(u8::is_ascii_digit).unwrap_or(text.len()))
}
