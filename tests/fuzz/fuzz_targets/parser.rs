//! No script makes the parser panic or take long, and a parsed script is never refused the second time.

#![no_main]

use cairn_shell::testing::refusal;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &str| {
    let first = refusal(script);
    assert!(first.as_ref().is_none_or(|why| !why.is_empty()));
    assert_eq!(first, refusal(script));
    // What is in single quotes is a word, whatever it is.
    if !script.contains('\'') {
        assert_eq!(refusal(&format!("echo '{script}'")), None);
    }
});
