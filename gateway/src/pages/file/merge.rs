//! Merges two texts for manual conflict resolution: common lines once, differing ones between conflict markers.

use crate::pages::text::compare;

const THEIRS: &str = "<<<<<<< theirs\n";
const MIDDLE: &str = "=======\n";
const MINE: &str = ">>>>>>> mine\n";

/// The merged text with conflict markers.
pub(super) fn merged(theirs: &str, mine: &str) -> String {
    let mut text = String::with_capacity(theirs.len() + mine.len());
    for (is_same, theirs, mine) in compare(theirs, mine).parts() {
        if is_same {
            text.extend(mine.iter().copied());
            continue;
        }
        text.push_str(THEIRS);
        add(&mut text, theirs);
        text.push_str(MIDDLE);
        add(&mut text, mine);
        text.push_str(MINE);
    }
    text
}

/// Adds whole lines: a marker needs a line of its own.
fn add(text: &mut String, lines: &[&str]) {
    text.extend(lines.iter().copied());
    if lines.last().is_some_and(|line| !line.ends_with('\n')) {
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_different_stands_twice() {
        let text = merged("a\nb\nc\n", "a\nx\nc\nd");
        assert_eq!(
            text,
            "a\n<<<<<<< theirs\nb\n=======\nx\n>>>>>>> mine\nc\n<<<<<<< theirs\n=======\nd\n>>>>>>> mine\n"
        );
        assert_eq!(merged("a\n", "a\n"), "a\n");
    }
}
