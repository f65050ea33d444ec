use super::*;

fn pattern(text: &str) -> Pattern {
    Pattern::new(&[text.to_owned()], Syntax::default()).unwrap()
}

fn refusal(text: &str) -> String {
    Pattern::new(&[text.to_owned()], Syntax::default()).err().unwrap()
}

fn required(text: &str, syntax: Syntax) -> Option<Vec<String>> {
    let pattern = Pattern::new(&[text.to_owned()], syntax).unwrap();
    pattern
        .required()
        .map(|texts| texts.iter().map(|text| String::from_utf8(text.clone()).unwrap()).collect())
}

fn matches(text: &str, line: &str) -> bool {
    pattern(text).find(line.as_bytes(), 0..line.len()).is_some()
}

#[test]
fn names_what_re2_lacks() {
    for (text, name) in [
        ("a(?=b)", "lookahead"),
        ("a(?!b)", "negative lookahead"),
        ("(?<=a)b", "lookbehind"),
        ("(?<!a)b", "negative lookbehind"),
        (r"(a)\1", "backreference"),
        (r"(?P<x>a)(?P=x)", "backreference"),
        (r"(a)\1", r"`\1`"),
        (r"(a)\9", r"`\9`"),
        (r"(a)\1x", "backreference"),
        (r"[\1]", "backreference"),
        ("(?>a)", "atomic group"),
        ("a++", "possessive repetition (`++`)"),
        ("a*+b", "possessive repetition (`*+`)"),
        ("a?+", "possessive"),
        ("a{2}+", "possessive repetition (`{2}+`)"),
        ("a**", "repetition of a repetition (`**`)"),
        ("a{2}{3}", "repetition of a repetition"),
        ("a+?*", "repetition of a repetition (`+?*`)"),
        ("(?R)", "recursion (`(?R)`)"),
        ("(a(?1)?b)", "recursion (`(?1)`)"),
        ("(?&name)", "recursion (`(?&name)`)"),
        ("(?P>name)", "recursion (`(?P>name)`)"),
        ("(?x)a b", "`(?x`"),
        ("(?u:a)", "`(?u`"),
        ("(?|a)", "`(?|`"),
        (r"\<word", r"start of a word (`\<`)"),
        (r"word\>", r"end of a word (`\>`)"),
        (r"\u00e9", r"`\x{e9}`"),
        (r"[\u00e9]", r"`\x{e9}`"),
        (r"\U0001F980", r"`\x{e9}`"),
        ("(a", "RE2"),
        ("[a", "RE2"),
        ("*a", "RE2"),
        ("a\\", "backslash"),
        ("a\\nb", "line by line"),
    ] {
        let text = Pattern::new(&[text.to_owned()], Syntax::default()).err();
        if name == "RE2" && text.is_none() {
            continue;
        }
        assert!(text.as_deref().is_some_and(|why| why.contains(name)), "{name}: {text:?}");
    }
    assert!(refusal("(a").contains("unclosed group"));
}

#[test]
fn reads_what_re2_reads() {
    assert!(matches("fn main() {", "fn main {"));
    assert!(matches(r"fn main\(\) {", "fn main() {"));
    assert!(matches("a{2}", "aa"));
    assert!(matches("a{,2}", "a{,2}"));
    assert!(matches("[[]x", "[x"));
    assert!(matches("[]]x", "]x"));
    assert!(matches("[a&&b]", "&"));
    assert!(matches("[[:digit:]]+", "x7"));
    assert!(matches(r"\Qa.b\E+", "a.bb"));
    assert!(!matches(r"\Qa.b\E+", "axbb"));
    assert!(matches(r"\bword\b", "a word here"));
    assert!(matches(r"\p{Greek}", "λ"));
    assert!(matches("(?i)ABC", "xabc"));
    assert!(matches(r"\x{e9}", "é"));
    assert!(matches(r"^\101\1012$", "AA2"));
    assert!(matches(r"^[\101-\103]+$", "ABC"));
    assert!(matches(r"\0411", "!1"));
    assert!(matches("a+?b*?c??d{2,}?", "abcdd"));
    assert!(matches("(?P<x>a)(?<y>b)(?i-s:C)(?U)d+", "abcdd"));
    assert!(matches(r"[\<]a>", "<a>"));
    assert!(matches("^x{,2}+$", "x{,2}}"));
    assert!(matches("a(?:b*)*", "abb"));
}

#[test]
fn refuses_what_grows_too_large() {
    assert!(refusal("(((a{100}){100}){100})").contains("too large"));
    assert!(refusal(&format!("{}a{}", "(".repeat(5000), ")".repeat(5000))).contains("RE2"));
}

#[test]
fn knows_which_text_a_match_must_have() {
    let plain = Syntax::default();
    let folded = Syntax { ignore_case: true, ..plain };
    let texts = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
    assert_eq!(required("Needle", plain), texts(&["needle"]));
    assert_eq!(required("foo|barbar", plain), texts(&["barbar", "foo"]));
    assert_eq!(required("foo|x", plain), None);
    assert_eq!(required("[a-z]+ing .*config", plain), texts(&["config"]));
    assert_eq!(required("colou?r", plain), texts(&["color", "colour"]));
    assert_eq!(required("(abc)+x", plain), texts(&["abc"]));
    assert_eq!(required("(abc)*", plain), None);
    assert_eq!(required("^abc$", plain), texts(&["abc"]));
    assert_eq!(required("TODO", folded), texts(&["todo"]));
    // Folding brings in the long s and the Kelvin sign.
    assert_eq!(required("ask", folded), texts(&["ask", "as\u{212a}", "a\u{17f}k", "a\u{17f}\u{212a}"]));
    assert_eq!(required(".*", plain), None);
}

#[test]
fn a_match_never_leaves_its_line() {
    let body = "one\n\ntwo";
    for text in [r"one\s*two", r"one[^x]*two", r"(?s)one.*two", r"e\W+t"] {
        assert_eq!(pattern(text).find(body.as_bytes(), 0..body.len()), None, "{text}");
    }
    assert!(pattern(r"\Atwo\z").find(body.as_bytes(), 0..body.len()).is_some());
}

#[test]
fn literals_that_are_everywhere_are_not_looked_for() {
    let (rare, frequent) =
        ("of the words that stand here\n".repeat(4_000), "worked his words\n".repeat(8_000));
    for (body, scans) in [(rare, false), (frequent, true)] {
        let pattern = pattern("[a-z]+ed [0-9]+");
        assert!(pattern.scan(body.as_bytes()).is_none(), "it is not known yet");
        while pattern.searched.get() < SCAN_THRESHOLD {
            pattern.hit(body.as_bytes(), 0..body.len());
        }
        assert_eq!(pattern.scan(body.as_bytes()).is_some(), scans);
    }
}

/// The first matching line, found by a plain comparison of each line.
fn first_plainly(pattern: &Pattern, body: &str) -> Option<usize> {
    let mut start = 0;
    for line in body.split_inclusive('\n') {
        let text = line.strip_suffix('\n').unwrap_or(line);
        if pattern.find(body.as_bytes(), start..start + text.len()).is_some() {
            return Some(start);
        }
        start += line.len();
    }
    None
}

#[test]
fn a_scan_passes_over_no_match() {
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};
    let patterns = [
        "[ab]{2}c",
        "b+$",
        "^[bc]a",
        "[a-z]x?[a-z]$",
        "\\bab\\b",
        "(?i)[A]b.*C",
        "[^a]é",
        "c{3}",
        "^$",
        "[0-9]",
        "é\\b",
        "(a|bb)[^ ]c",
        ".*é.*c",
        "x*",
        "\\b",
        "\\B",
        "a\\B",
        "[a-c]{7,}",
        "[b ]c.{60}c",
        "[a-c]+ ab [bc]+",
    ];
    let line = prop_oneof![
        8 => "[abc ]{0,40}",
        1 => "[abcé]{0,9}",
        1 => "[a ]{200,900}[abc]{0,9}",
        1 => Just(String::new())
    ];
    let body = (prop::collection::vec(line, 0..200), any::<bool>());
    let mut runner = TestRunner::new(Config { cases: 80, failure_persistence: None, ..Config::default() });
    runner
        .run(&(0..patterns.len(), body), |(which, (lines, ended))| {
            let body = lines.join("\n") + if ended { "\n" } else { "" };
            let pattern = pattern(patterns[which]);
            pattern.searched.set(SCAN_THRESHOLD);
            pattern.literals.iter().for_each(|count| count.set(SAMPLE_BYTES));
            let expected = first_plainly(&pattern, &body);
            for reach in [MAX_SCAN, MIN_SCAN, MIN_SCAN * 3] {
                pattern.reach.set(reach);
                let hit = pattern
                    .hit(body.as_bytes(), 0..body.len())
                    .map(|hit| line_around(body.as_bytes(), hit).start);
                // There is no line after the last terminator, whatever matches there.
                prop_assert_eq!(hit.filter(|start| *start < body.len()), expected, "{}", patterns[which]);
            }
            if pattern.exact.is_none() {
                let mut start = 0;
                for line in body.split_inclusive('\n') {
                    let text = line.strip_suffix('\n').unwrap_or(line);
                    let there = pattern.find(body.as_bytes(), start..start + text.len()).is_some();
                    let range = start..start + line.len();
                    let hit = pattern.hit_patiently(body.as_bytes(), range, || Ok::<(), ()>(()));
                    prop_assert_eq!(hit.unwrap().is_some(), there, "{} on {:?}", patterns[which], line);
                    start += line.len();
                }
            }
            Ok(())
        })
        .unwrap();
}
