//! Globs: `*`, `?`, `[…]` and a backslash before what stands for itself.

mod plain;

use plain::Plain;

/// Names are no longer, and few other texts are as short.
const SHORT: usize = 256;

/// A glob, ready to be matched.
#[derive(Debug, Clone)]
pub(crate) struct Glob {
    parts: Vec<Part>,
    /// The same, where it is as plain as that.
    plain: Option<Plain>,
    /// Folds the case of letters.
    folds: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// This character.
    Char(char),
    /// Any character.
    One,
    /// Any characters.
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
    pub(crate) fn new(pattern: &str, folds: bool) -> Self {
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
        Self { parts, plain, folds }
    }

    /// Whether the whole text is what the glob says. A star also takes slashes and leading dots.
    pub(crate) fn matches(&self, text: &str) -> bool {
        if !self.folds {
            return self.fits(text);
        }
        let mut room = [0; SHORT];
        if let Some(room) = room.get_mut(..text.len()).filter(|_| text.is_ascii()) {
            room.copy_from_slice(text.as_bytes());
            room.make_ascii_lowercase();
            return std::str::from_utf8(room).is_ok_and(|text| self.fits(text));
        }
        self.fits(&folded(text).collect::<String>())
    }

    /// Whether a text that is folded, where that is asked for, is what the glob says.
    fn fits(&self, text: &str) -> bool {
        self.plain.as_ref().map_or_else(|| self.fits_step_by_step(text), |plain| plain.matches(text))
    }

    fn fits_step_by_step(&self, text: &str) -> bool {
        let mut rest = text.chars();
        let mut part = 0;
        // Where to go on after a star that took one character more.
        let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
        loop {
            let before = rest.clone();
            let fits = match (self.parts.get(part), rest.next()) {
                (Some(Part::Many), _) => {
                    part += 1;
                    if part == self.parts.len() {
                        return true;
                    }
                    retry = Some((part, before.clone()));
                    rest = before;
                    continue;
                }
                (Some(wanted), Some(c)) => wanted.fits(c),
                (None, None) => return true,
                (Some(_), None) => return false,
                (None, Some(_)) => false,
            };
            if fits {
                part += 1;
                continue;
            }
            let Some((after_star, taken)) = &mut retry else { return false };
            if taken.next().is_none() {
                return false;
            }
            part = *after_star;
            rest = taken.clone();
        }
    }

    /// The text that the glob stands for, when it has nothing to expand.
    pub(crate) fn literal(&self) -> Option<String> {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Char(c) if !self.folds => Some(*c),
                Part::Char(_) | Part::One | Part::Many | Part::Set { .. } => None,
            })
            .collect()
    }

    /// Whether it asks for a leading dot, as a shell wants it for hidden files.
    pub(crate) fn starts_with_dot(&self) -> bool {
        self.parts.first() == Some(&Part::Char('.'))
    }
}

fn folded(text: &str) -> impl Iterator<Item = char> {
    text.chars().flat_map(char::to_lowercase)
}

impl Part {
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

/// The set whose inside begins here, and what comes after it; nothing if it is not closed.
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn matches_as_fnmatch_does() {
        for (pattern, text, expected) in [
            ("*.md", "notes.md", true),
            ("*.md", ".md", true),
            ("*.md", "notes.mdx", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("?", "é", true),
            ("?", "", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[^a-c]x", "dx", true),
            ("[]]", "]", true),
            ("[a", "[a", true),
            ("[[:digit:]]*", "7 things", true),
            ("[a\\-z]", "-", true),
            ("[a\\-z]", "b", false),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("", "", true),
            ("**", "anything/at all", true),
        ] {
            assert_eq!(Glob::new(pattern, false).matches(text), expected, "{pattern} on {text}");
        }
        assert!(Glob::new("READ*", true).matches("readme.MD"));
        assert!(Glob::new("É*", true).matches("école"));
        assert!(Glob::new(&format!("*{}", "A".repeat(300)), true).matches(&"a".repeat(400)));
    }

    #[test]
    fn many_stars_take_no_time() {
        for piece in ["*a", "*[a]"] {
            let glob = Glob::new(&piece.repeat(200), false);
            assert!(!glob.matches(&"a".repeat(199)));
            assert!(!glob.matches(&format!("{}b", "a".repeat(4000))));
        }
    }

    proptest! {
        #[test]
        fn plain_globs_match_what_others_do(
            pattern in "[abé]{0,2}([*][aAbé\\\\]{0,2}){0,4}",
            text in "[aAbBé*]{0,12}",
            folds in any::<bool>(),
        ) {
            let glob = Glob::new(&pattern, folds);
            prop_assert!(glob.plain.is_some());
            let slow = Glob { plain: None, ..glob.clone() };
            prop_assert_eq!(glob.matches(&text), slow.matches(&text), "{} on {}", pattern, text);
        }
    }
}
