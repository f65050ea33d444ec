use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::context::Stop;
use crate::testing::StepClock;

fn glob(pattern: &str, folds: bool) -> Glob {
    Glob::new(pattern, folds).unwrap()
}

fn matches(glob: &Glob, text: &str) -> bool {
    glob.matches(text, &Meter::new(&StepClock::default(), Duration::MAX)).unwrap()
}

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
        assert_eq!(matches(&glob(pattern, false), text), expected, "{pattern} on {text}");
    }
    assert!(matches(&glob("READ*", true), "readme.MD"));
    assert!(matches(&glob("É*", true), "école"));
    assert!(matches(&glob(&format!("*{}", "A".repeat(300)), true), &"a".repeat(400)));
}

#[test]
fn a_glob_has_so_many_parts_but_plain_text_any() {
    for pattern in ["?".repeat(256), "[ab]".repeat(128), format!("{}?", "x".repeat(255))] {
        assert!(Glob::new(&pattern, false).is_ok());
        let why = Glob::new(&format!("?{pattern}"), false).err().unwrap();
        assert!(why.contains("257 parts") && why.contains("256 are the most"), "{why}");
    }
    assert!(Glob::new(&format!("[{}]", "a".repeat(257)), false).is_err());
    assert!(matches(&glob(&"/folder*".repeat(1_000), false), &"/folder 1".repeat(1_000)));
}

/// At worst a glob looks at each of its parts for each character: that is charged, so that it can be ended.
#[test]
fn the_work_of_a_glob_is_charged_and_bounded() {
    let text = format!("{}b", "a".repeat(20_000));
    for (pattern, steps) in [
        (format!("*{}", "?".repeat(100)), 0),
        (format!("*{}c", "?".repeat(250)), 250 * 19_000),
        (format!("*{}", "[a-z]".repeat(250)), 0),
        (format!("*{}[c]", "a".repeat(250)), 250 * 19_000),
        ("*a?".repeat(80), 0),
        ("*[ab]".repeat(80), 0),
    ] {
        let glob = glob(&pattern, false);
        let clock = StepClock::default();
        let found = glob.matches(&text, &Meter::new(&clock, Duration::MAX)).unwrap();
        assert_eq!(found, steps == 0, "{pattern}");
        let looks = clock.looks();
        assert!(looks >= steps >> 18 && looks <= (256 * text.len() as u64) >> 17, "{looks}: {pattern}");
        if looks > 1 {
            let leaving = StepClock::leaving_after(1);
            let ended = glob.matches(&text, &Meter::new(&leaving, Duration::MAX));
            assert_eq!(ended, Err(Halt::Stop(Stop::Cancelled)), "{pattern}");
        }
    }
}

/// What a glob of these parts says, by its definition: a star takes any beginning of what is left.
fn by_definition(parts: &[Part], text: &[char]) -> bool {
    match (parts.split_first(), text.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((Part::Many, rest)), _) => (0..=text.len()).any(|taken| by_definition(rest, &text[taken..])),
        (Some(_), None) => false,
        (Some((part, parts)), Some((c, text))) => part.fits(*c) && by_definition(parts, text),
    }
}

proptest! {
    #[test]
    fn plain_globs_match_what_others_do(
        pattern in "[abé]{0,2}([*][aAbé\\\\]{0,2}){0,4}",
        text in "[aAbBé*]{0,12}",
        folds in any::<bool>(),
    ) {
        let glob = glob(&pattern, folds);
        prop_assert!(glob.plain.is_some());
        let slow = Glob { plain: None, ..glob.clone() };
        prop_assert_eq!(matches(&glob, &text), matches(&slow, &text), "{} on {}", pattern, text);
    }

    #[test]
    fn globs_match_what_they_say(pattern in "([ab?*é]|\\[[!a]?[b-c]\\]){0,9}", text in "[abcé]{0,9}") {
        let glob = glob(&pattern, false);
        let chars: Vec<char> = text.chars().collect();
        prop_assert_eq!(matches(&glob, &text), by_definition(&glob.parts, &chars), "{} on {}", pattern, text);
    }
}
