//! YAML syntax errors, in words and with their line. They never block saving; but the author should learn of them
//! before programs that read the text do.

use serde::Deserialize as _;
use serde::de::IgnoredAny;
use serde_norway::Deserializer;

use super::front_matter::{self, FENCE, ends, named};

/// Longer texts are not checked.
const MAX_BYTES: usize = 64 * 1024;

/// Why a text is not valid YAML.
pub(in crate::pages) fn of_yaml(text: &str) -> Option<String> {
    let told = broken(text)?;
    Some(format!("This is no valid YAML: {told}."))
}

/// What is wrong with the front matter of a text.
pub(in crate::pages) fn of_front_matter(text: &str) -> Option<String> {
    let Some(front) = front_matter::of(text) else {
        return is_endless(text).then(|| {
            "The front matter that begins at line 1 does not end: a line of --- is missing.".to_owned()
        });
    };
    // An empty line replaces the first one, so that line numbers match the text.
    let whole = text.get(..front.bytes).unwrap_or_default();
    let inner = whole.split_inclusive('\n').skip(1).take(front.lines.saturating_sub(2));
    let yaml: String = std::iter::once("\n").chain(inner).collect();
    if let Some(told) = broken(&yaml) {
        return Some(format!("The front matter is no valid YAML: {told}."));
    }
    let (line, name) = doubled(&yaml)?;
    Some(format!("The front matter names {name} again at line {line}: programs take one of them, or none."))
}

/// Where and how a text is broken, as the first words of a sentence.
fn broken(text: &str) -> Option<String> {
    if text.len() > MAX_BYTES {
        return None;
    }
    // Aliases are not expanded, so the time is linear in the length.
    let error = Deserializer::from_str(text).find_map(|document| IgnoredAny::deserialize(document).err())?;
    let told = error.to_string();
    // The position is shown once, in front.
    let told = told.split(" at line ").next().unwrap_or_default();
    Some(match error.location() {
        Some(place) => format!("line {}, column {}: {told}", place.line(), place.column()),
        None => told.to_owned(),
    })
}

/// Whether a text begins with front matter that never ends.
fn is_endless(text: &str) -> bool {
    let mut lines = text.lines();
    let is_begun = lines.next().is_some_and(|line| line.trim_end() == FENCE);
    is_begun && lines.next().is_some_and(|line| named(line.trim_end()).is_some()) && !lines.any(ends)
}

/// The first duplicate key, and its line.
fn doubled(yaml: &str) -> Option<(usize, &str)> {
    let mut names = Vec::new();
    for (line, text) in (1..).zip(yaml.lines()) {
        let Some((name, _)) = named(text) else { continue };
        if names.contains(&name) {
            return Some((line, name));
        }
        names.push(name);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_is_told_by_the_lines_of_the_text() {
        let told = |text: &str| of_front_matter(text).unwrap_or_default();
        for fine in [
            "",
            "words",
            "---\ntitle: A\ntags: [a, b]\n---\n# x: [\n",
            "---\n\n# A rule before\n",
            "# a\n---\nx: [\n",
        ] {
            assert_eq!(told(fine), "", "{fine:?}");
        }
        let broken = told("---\ntitle: \"A\ntags: [a\n---\n# Text\n");
        assert!(broken.starts_with("The front matter is no valid YAML: line "), "{broken}");
        let nested = told("---\ntitle: A\nowner: Ada: Bob\n---\n");
        assert!(nested.contains("line 3, column "), "{nested}");
        let crlf = told("---\r\ntitle: A\r\nowner: Ada: Bob\r\n---\r\n");
        assert!(crlf.contains("line 3, column "), "{crlf}");
        let twice = told("---\ntitle: A\nowner: x\ntitle: B\n---\n");
        assert!(twice.contains("names title again at line 4"), "{twice}");
        assert!(told("---\ntitle: A\n\n# Text\n").contains("does not end"));
    }

    #[test]
    fn a_file_of_yaml_may_hold_several_documents() {
        assert_eq!(of_yaml("a: 1\n---\nb: [1, 2]\n"), None);
        assert_eq!(of_yaml(""), None);
        let second = of_yaml("a: 1\n---\nb: [1\nc: 2\n").unwrap();
        assert!(second.contains("line "), "{second}");
        assert_eq!(of_yaml(&"x".repeat(MAX_BYTES + 1)), None);
        // Recursive aliases are not expanded.
        let laughs: String = (1..40).map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}]\n", n - 1)).collect();
        assert_eq!(of_yaml(&format!("a0: &a0 x\n{laughs}")), None);
        assert!(of_yaml(&"[".repeat(10_000)).is_some());
    }
}
