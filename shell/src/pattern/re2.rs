//! Translates RE2 syntax to that of the regex crate, which is stricter in a few places; features that RE2 lacks are
//! rejected by name.

/// The pattern in the syntax of the regex crate.
pub(super) fn translated(pattern: &str) -> Result<String, String> {
    let chars: Vec<char> = pattern.chars().collect();
    let mut text = String::with_capacity(pattern.len() + 8);
    let mut at = 0;
    // The repetition that ends here.
    let mut repeated: &[char] = &[];
    while let Some(&c) = chars.get(at) {
        let rest = chars.get(at..).unwrap_or_default();
        if let Some(length) = repetition(rest) {
            let (now, _) = rest.split_at_checked(length).unwrap_or((rest, &[]));
            if !repeated.is_empty() {
                return Err(stacked(repeated, now));
            }
            text.extend(now);
            repeated = now;
            at += length;
            continue;
        }
        repeated = &[];
        match c {
            '\\' => at += escape(rest, &mut text)?,
            '[' => at += class(rest, &mut text)?,
            '(' => {
                group(rest)?;
                text.push('(');
                at += 1;
            }
            '{' => {
                text.push_str("\\{");
                at += 1;
            }
            _ => {
                text.push(c);
                at += 1;
            }
        }
    }
    Ok(text)
}

/// Why a repetition may not follow another one.
fn stacked(first: &[char], second: &[char]) -> String {
    let both: String = first.iter().chain(second).collect();
    let once: String = first.iter().collect();
    if second.first() == Some(&'+') {
        return unsupported(
            &format!("a possessive repetition (`{both}`)"),
            &format!("write `{once}`, no search goes back over what it has taken"),
        );
    }
    unsupported(
        &format!("a repetition of a repetition (`{both}`)"),
        &format!("write one of them, or a group: `(?:…{once})` and the other one behind it"),
    )
}

fn unsupported(what: &str, instead: &str) -> String {
    format!("{what} is not supported, patterns are RE2: {instead}")
}

/// Copies an escape sequence; returns its length in characters.
fn escape(rest: &[char], text: &mut String) -> Result<usize, String> {
    match rest.get(1) {
        Some('0'..='9') => octal(rest, text),
        Some(edge @ ('<' | '>')) => Err(unsupported(
            &format!("the {} of a word (`\\{edge}`)", if *edge == '<' { "start" } else { "end" }),
            &format!("write `\\b`, or -w for whole words; a `{edge}` by itself needs no backslash"),
        )),
        Some(letter @ ('u' | 'U')) => Err(by_number(*letter)),
        Some('k' | 'g') => Err(unsupported(
            "a backreference (`\\k<name>`)",
            "write the text out, or pipe into a second grep",
        )),
        Some('K') => Err(unsupported("`\\K`", "use -o with a pattern of just what is wanted")),
        Some('Q') => {
            let quoted = rest.get(2..).unwrap_or_default();
            let end = quoted.windows(2).position(|pair| pair == ['\\', 'E']);
            let literal: String = quoted.iter().take(end.unwrap_or(quoted.len())).collect();
            text.push_str(&regex_syntax::escape(&literal));
            Ok(end.map_or(rest.len(), |end| end + 4))
        }
        // `\pN` and `\x{…}` keep their braces.
        Some(kind @ ('p' | 'P' | 'x')) if rest.get(2) == Some(&'{') => {
            let length = rest.iter().position(|c| *c == '}').map_or(rest.len(), |end| end + 1);
            text.push('\\');
            text.push(*kind);
            text.extend(rest.iter().take(length).skip(2));
            Ok(length)
        }
        // Punctuation is often escaped needlessly.
        Some(c) if !c.is_ascii_alphanumeric() && !c.is_ascii_punctuation() => {
            text.push(*c);
            Ok(2)
        }
        Some(c) => {
            text.extend(['\\', *c]);
            Ok(2)
        }
        None => Err("the pattern ends with a backslash: write `\\\\` to have one".to_owned()),
    }
}

/// Copies an octal escape; returns its length in characters. A single digit other than 0 is a backreference.
fn octal(rest: &[char], text: &mut String) -> Result<usize, String> {
    let digits: Vec<u32> = rest.iter().skip(1).take(3).map_while(|c| c.to_digit(8)).collect();
    if digits.is_empty() || (digits.len() == 1 && digits != [0]) {
        let digit: String = rest.iter().skip(1).take(1).collect();
        return Err(unsupported(
            &format!("a backreference (`\\{digit}`)"),
            "write the text out, or pipe into a second grep",
        ));
    }
    let code = digits.iter().fold(0, |code, digit| code * 8 + digit);
    text.push_str(&format!("\\x{{{code:x}}}"));
    Ok(1 + digits.len())
}

fn by_number(letter: char) -> String {
    unsupported(
        &format!("a character by its number as `\\{letter}…`"),
        "write `\\x{e9}` for é, or the character itself",
    )
}

/// Rejects groups that RE2 does not support: it has `(…)`, `(?:…)`, names, and the flags `i`, `m`, `s` and `U`.
fn group(rest: &[char]) -> Result<(), String> {
    let start: String = rest.iter().take(4).collect();
    let instead = "pipe into a second grep, or `grep -v` for what must not be there";
    let plain = "write the text out as often as it may nest";
    for (opening, name) in [
        ("(?<=", "lookbehind (`(?<=…)`)"),
        ("(?<!", "negative lookbehind (`(?<!…)`)"),
        ("(?=", "lookahead (`(?=…)`)"),
        ("(?!", "negative lookahead (`(?!…)`)"),
        ("(?>", "an atomic group (`(?>…)`)"),
        ("(?P=", "a backreference (`(?P=name)`)"),
        ("(?(", "a conditional (`(?(…)…)`)"),
        ("(?#", "a comment (`(?#…)`)"),
    ] {
        if start.starts_with(opening) {
            return Err(unsupported(name, instead));
        }
    }
    let Some(inside) = start.strip_prefix("(?") else { return Ok(()) };
    if inside.starts_with("P>") || inside.starts_with(['R', '&', '+']) || inside.starts_with(is_digit) {
        let whole: String = rest.iter().take_while(|c| **c != ')').take(20).collect();
        return Err(unsupported(&format!("recursion (`{whole})`)"), plain));
    }
    if inside.starts_with("P<") || inside.starts_with('<') {
        return Ok(());
    }
    let flags = rest.iter().skip(2).take_while(|c| !matches!(c, ')' | ':'));
    match flags.into_iter().find(|flag| !matches!(flag, 'i' | 'm' | 's' | 'U' | '-')) {
        Some(flag) => Err(unsupported(
            &format!("a group that begins with `(?{flag}`, or that flag"),
            "there are `(…)`, `(?:…)`, `(?P<name>…)` and the flags i, m, s and U, as in `(?i)`",
        )),
        None => Ok(()),
    }
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// The length of the repetition at this position, if there is one. A brace that begins none is a literal.
fn repetition(rest: &[char]) -> Option<usize> {
    let length = match rest.first()? {
        '*' | '+' | '?' => 1,
        '{' => braces(rest)?,
        _ => return None,
    };
    // A lazy repetition.
    Some(length + usize::from(rest.get(length) == Some(&'?')))
}

/// The length of a repetition in braces.
fn braces(rest: &[char]) -> Option<usize> {
    let end = rest.iter().position(|c| *c == '}')?;
    let inside: String = rest.get(1..end)?.iter().collect();
    let (least, most) = inside.split_once(',').unwrap_or((&inside, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (!least.is_empty() && is_number(least) && is_number(most)).then_some(end + 1)
}

/// Copies a class; returns its length in characters. In RE2 a bracket in it is a literal, and there are no set
/// operations.
fn class(rest: &[char], text: &mut String) -> Result<usize, String> {
    text.push('[');
    let mut at = 1;
    if rest.get(at) == Some(&'^') {
        text.push('^');
        at += 1;
    }
    let first = at;
    while let Some(&c) = rest.get(at) {
        match c {
            ']' if at > first => {
                text.push(']');
                return Ok(at + 1);
            }
            ']' => text.push_str("\\]"),
            '\\' => {
                let escaped = rest.get(at..).unwrap_or_default();
                at += match escaped.get(1) {
                    Some('0'..='9') => octal(escaped, text)?,
                    Some(letter @ ('u' | 'U')) => return Err(by_number(*letter)),
                    Some(plain @ ('<' | '>')) => {
                        text.push(*plain);
                        2
                    }
                    next => {
                        text.push('\\');
                        text.extend(next);
                        2
                    }
                };
                continue;
            }
            '[' if rest.get(at + 1) == Some(&':') => {
                let name = rest.get(at..).unwrap_or_default();
                match name.windows(2).position(|pair| pair == [':', ']']).filter(|end| *end > 1) {
                    Some(end) => {
                        text.extend(name.iter().take(end + 2));
                        at += end + 1;
                    }
                    None => text.push_str("\\["),
                }
            }
            '[' => text.push_str("\\["),
            '&' | '~' if rest.get(at + 1) == Some(&c) => text.extend(['\\', c]),
            '-' if rest.get(at + 1) == Some(&'-') => text.push_str("\\-"),
            other => text.push(other),
        }
        at += 1;
    }
    Ok(at)
}
