//! From RE2's syntax to that of the regex crate, which is stricter in a few places; what RE2 lacks is named.

/// The pattern as the regex crate reads it.
pub(super) fn translated(pattern: &str) -> Result<String, String> {
    let chars: Vec<char> = pattern.chars().collect();
    let mut text = String::with_capacity(pattern.len() + 8);
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let rest = chars.get(at..).unwrap_or_default();
        match c {
            '\\' => at += escape(rest, &mut text)?,
            '[' => at += class(rest, &mut text),
            '(' => {
                group(rest)?;
                text.push('(');
                at += 1;
            }
            '{' if repetition(rest).is_none() => {
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

fn unsupported(what: &str, instead: &str) -> String {
    format!("{what} is not supported, patterns are RE2: {instead}")
}

/// Copies an escape and tells how many characters it had.
fn escape(rest: &[char], text: &mut String) -> Result<usize, String> {
    match rest.get(1) {
        Some(digit @ '1'..='9') => Err(unsupported(
            &format!("a backreference (`\\{digit}`)"),
            "write the text out, or pipe into a second grep",
        )),
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
        Some(kind @ ('p' | 'P' | 'x' | 'u')) if rest.get(2) == Some(&'{') => {
            let length = rest.iter().position(|c| *c == '}').map_or(rest.len(), |end| end + 1);
            text.push('\\');
            text.push(*kind);
            text.extend(rest.iter().take(length).skip(2));
            Ok(length)
        }
        // Quotes and the like are often escaped without need.
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

/// Refuses groups that look around.
fn group(rest: &[char]) -> Result<(), String> {
    let start: String = rest.iter().take(4).collect();
    let instead = "pipe into a second grep, or `grep -v` for what must not be there";
    for (opening, name) in [
        ("(?<=", "lookbehind (`(?<=…)`)"),
        ("(?<!", "negative lookbehind (`(?<!…)`)"),
        ("(?=", "lookahead (`(?=…)`)"),
        ("(?!", "negative lookahead (`(?!…)`)"),
        ("(?>", "an atomic group (`(?>…)`)"),
        ("(?P=", "a backreference (`(?P=name)`)"),
        ("(?P>", "recursion (`(?P>name)`)"),
        ("(?(", "a conditional (`(?(…)…)`)"),
        ("(?#", "a comment (`(?#…)`)"),
    ] {
        if start.starts_with(opening) {
            return Err(unsupported(name, instead));
        }
    }
    Ok(())
}

/// The length of a repetition in braces, if that is what begins here. Otherwise the brace is a character.
fn repetition(rest: &[char]) -> Option<usize> {
    let end = rest.iter().position(|c| *c == '}')?;
    let inside: String = rest.get(1..end)?.iter().collect();
    let (least, most) = inside.split_once(',').unwrap_or((&inside, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (!least.is_empty() && is_number(least) && is_number(most)).then_some(end + 1)
}

/// Copies a class and tells how many characters it had. In RE2 a bracket in it is a character, and there is no
/// arithmetic of classes.
fn class(rest: &[char], text: &mut String) -> usize {
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
                return at + 1;
            }
            ']' => text.push_str("\\]"),
            '\\' => {
                text.push('\\');
                at += 1;
                text.extend(rest.get(at));
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
    at
}
