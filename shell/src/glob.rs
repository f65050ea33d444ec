//! Globs: `*`, `?`, `[…]`, and a backslash that escapes the next character.

mod plain;

use plain::Plain;

use crate::context::Halt;
use crate::meter::Meter;

/// The maximum number of parts of a glob, which bounds the matching steps per character: a character, `?`, `*`, and
/// each range of a `[…]`. A glob of literals and stars, which is matched by substring search, has no limit.
const MAX_PARTS: usize = 256;
/// Names are at most this long, and few other texts are as short.
const SHORT: usize = 256;

/// A compiled glob.
#[derive(Debug, Clone)]
pub(crate) struct Glob {
    parts: Vec<Part>,
    /// The same as literals and stars, if possible.
    plain: Option<Plain>,
    /// Ignores case.
    folds: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// This character.
    Char(char),
    /// Any character.
    One,
    /// Any number of characters.
    Many,
    /// One of these, or one that is not of these.
    Set { negated: bool, items: Vec<Item> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Range(char, char),
    Named(Named),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Alpha,
    Digit,
    Alnum,
    Upper,
    Lower,
    Space,
    Punct,
}

impl Glob {
    /// Compiles a glob; fails with advice if it is too long to be matched quickly.
    pub(crate) fn new(pattern: &str, folds: bool) -> Result<Self, String> {
        let chars: Vec<char> = if folds { folded(pattern).collect() } else { pattern.chars().collect() };
        let mut parts = Vec::new();
        let mut at = 0;
        while let Some(&c) = chars.get(at) {
            at += 1;
            parts.push(match c {
                '*' if parts.last() == Some(&Part::Many) => continue,
                '*' => Part::Many,
                '?' => Part::One,
                '[' => match set(&chars, at) {
                    Some((part, after)) => {
                        at = after;
                        part
                    }
                    None => Part::Char('['),
                },
                '\\' => match chars.get(at) {
                    Some(&escaped) => {
                        at += 1;
                        Part::Char(escaped)
                    }
                    None => Part::Char('\\'),
                },
                other => Part::Char(other),
            });
        }
        let plain = Plain::of(&parts);
        let length: usize = parts.iter().map(Part::weight).sum();
        if plain.is_none() && length > MAX_PARTS {
            return Err(format!(
                "a glob of {length} parts is too long, {MAX_PARTS} are the most: write `*` for what varies, or pipe the paths into `grep`"
            ));
        }
        Ok(Self { parts, plain, folds })
    }

    /// Whether the whole text matches. A star also matches slashes and leading dots.
    pub(crate) fn matches(&self, text: &str, meter: &Meter<'_>) -> Result<bool, Halt> {
        meter.charge_bytes(1 + text.len())?;
        if !self.folds {
            return self.fits(text, meter);
        }
        let mut room = [0; SHORT];
        if let Some(room) = room.get_mut(..text.len()).filter(|_| text.is_ascii()) {
            room.copy_from_slice(text.as_bytes());
            room.make_ascii_lowercase();
            return std::str::from_utf8(room).map_or(Ok(false), |text| self.fits(text, meter));
        }
        self.fits(&folded(text).collect::<String>(), meter)
    }

    /// Whether a text matches that is already case-folded if required.
    fn fits(&self, text: &str, meter: &Meter<'_>) -> Result<bool, Halt> {
        match &self.plain {
            Some(plain) => Ok(plain.matches(text)),
            None => self.fits_step_by_step(text, meter),
        }
    }

    /// The general matcher. Only the last star is retried, so the steps are bounded by the parts times the characters
    /// of the text.
    fn fits_step_by_step(&self, text: &str, meter: &Meter<'_>) -> Result<bool, Halt> {
        let mut rest = text.chars();
        let mut part = 0;
        // Where to resume after the last star has consumed one more character.
        let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
        loop {
            let before = rest.clone();
            let fits = match (self.parts.get(part), rest.next()) {
                (Some(Part::Many), _) => {
                    part += 1;
                    if part == self.parts.len() {
                        return Ok(true);
                    }
                    retry = Some((part, before.clone()));
                    rest = before;
                    continue;
                }
                (Some(wanted), Some(c)) => {
                    meter.charge_bytes(wanted.weight())?;
                    wanted.fits(c)
                }
                (None, None) => return Ok(true),
                (Some(_), None) => return Ok(false),
                (None, Some(_)) => false,
            };
            if fits {
                part += 1;
                continue;
            }
            let Some((after_star, taken)) = &mut retry else { return Ok(false) };
            if taken.next().is_none() {
                return Ok(false);
            }
            part = *after_star;
            rest = taken.clone();
        }
    }

    /// The literal text of the glob, if it has no wildcards.
    pub(crate) fn literal(&self) -> Option<String> {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Char(c) if !self.folds => Some(*c),
                Part::Char(_) | Part::One | Part::Many | Part::Set { .. } => None,
            })
            .collect()
    }

    /// Whether it begins with a literal dot, which shells require for hidden files.
    pub(crate) fn starts_with_dot(&self) -> bool {
        self.parts.first() == Some(&Part::Char('.'))
    }
}

fn folded(text: &str) -> impl Iterator<Item = char> {
    text.chars().flat_map(char::to_lowercase)
}

impl Part {
    /// The number of parts, which is also the cost of a step.
    fn weight(&self) -> usize {
        match self {
            Self::Set { items, .. } => items.len(),
            Self::Char(_) | Self::One | Self::Many => 1,
        }
    }

    fn fits(&self, c: char) -> bool {
        match self {
            Self::Char(wanted) => *wanted == c,
            Self::One | Self::Many => true,
            Self::Set { negated, items } => items.iter().any(|item| item.has(c)) != *negated,
        }
    }
}

impl Item {
    fn has(&self, c: char) -> bool {
        match self {
            Self::Range(from, to) => (*from..=*to).contains(&c),
            Self::Named(named) => match named {
                Named::Alpha => c.is_alphabetic(),
                Named::Digit => c.is_ascii_digit(),
                Named::Alnum => c.is_alphanumeric(),
                Named::Upper => c.is_uppercase(),
                Named::Lower => c.is_lowercase(),
                Named::Space => c.is_whitespace(),
                Named::Punct => c.is_ascii_punctuation(),
            },
        }
    }
}

/// The set whose inside begins here, and the rest after it; `None` if it is not closed.
fn set(chars: &[char], inside: usize) -> Option<(Part, usize)> {
    let negated = matches!(chars.get(inside), Some('!' | '^'));
    let first = inside + usize::from(negated);
    let mut items = Vec::new();
    let mut at = first;
    loop {
        let mut c = *chars.get(at)?;
        if c == ']' && at > first {
            return Some((Part::Set { negated, items }, at + 1));
        }
        let opens_name = c == '[' && chars.get(at + 1) == Some(&':');
        if let Some((named, after)) = opens_name.then(|| named(chars, at + 2)).flatten() {
            items.push(Item::Named(named));
            at = after;
            continue;
        }
        if c == '\\' {
            at += 1;
            c = *chars.get(at)?;
        }
        at += 1;
        let mut to = c;
        if chars.get(at) == Some(&'-') && chars.get(at + 1).is_some_and(|next| *next != ']') {
            at += 1;
            to = *chars.get(at)?;
            if to == '\\' {
                at += 1;
                to = *chars.get(at)?;
            }
            at += 1;
        }
        items.push(Item::Range(c, to));
    }
}

fn named(chars: &[char], at: usize) -> Option<(Named, usize)> {
    let rest = chars.get(at..)?;
    let length = rest.iter().position(|c| *c == ':')?;
    if rest.get(length + 1) != Some(&']') {
        return None;
    }
    let name: String = rest.iter().take(length).collect();
    let named = match name.as_str() {
        "alpha" => Named::Alpha,
        "digit" => Named::Digit,
        "alnum" => Named::Alnum,
        "upper" => Named::Upper,
        "lower" => Named::Lower,
        "space" => Named::Space,
        "punct" => Named::Punct,
        _ => return None,
    };
    Some((named, at + length + 2))
}

#[cfg(test)]
mod tests;
