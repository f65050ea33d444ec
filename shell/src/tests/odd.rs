use super::{ok, tree};
use crate::testing::{MemoryTree, NOW, StepClock, run_at_root};
use crate::{Limits, Session, run};

#[test]
fn nothing_is_above_the_root() {
    assert_eq!(ok("cd ../../..; pwd; ls .."), "/\nREADME.md\nempty\nfiles\n");
    assert_eq!(ok("cat files/../../../README.md | head -n 1"), "# Welcome\n");
    assert_eq!(ok("ls ../../../../etc 2>/dev/null || echo none"), "none\n");
    assert_eq!(ok("cd files/sub/../..//./files/; pwd"), "/files\n");
}

#[test]
fn a_start_that_is_not_there_is_an_error() {
    let tree = tree();
    for (cwd, why) in [("/nope", "No such file"), ("/README.md", "is a file"), ("", "No such file")] {
        let session = Session { cwd, now: NOW, limits: Limits::default(), watch: &StepClock::default() };
        let outcome = run(&tree, "ls", &session);
        assert!(outcome.failed && outcome.output.contains(why), "{cwd}: {}", outcome.output);
    }
    let session =
        Session { cwd: "/files/sub", now: NOW, limits: Limits::default(), watch: &StepClock::default() };
    assert_eq!(run(&tree, "cat d.md | head -n 1; cd ..", &session).cwd, "/files");
}

#[test]
fn names_may_be_anything_but_a_slash() {
    let names = [
        "sp ace",
        "q'uote",
        "d\"ouble",
        "new\nline",
        "🦀",
        "-rf",
        "*",
        "[a]",
        "$x",
        "back\\slash",
        "#no",
        "~",
    ];
    let paths: Vec<String> = names.iter().map(|name| format!("d/{name}")).collect();
    let tree = MemoryTree::new(paths.iter().map(|path| (path.as_str(), &b"needle\n"[..])));
    for name in names {
        let quoted = format!("'{}'", name.replace('\'', "'\\''"));
        let outcome = run_at_root(&tree, &format!("cd d && cat -- {quoted}"));
        assert_eq!(outcome.output, "needle\n", "{name}");
        let outcome = run_at_root(&tree, &format!("grep -c needle d/{quoted}"));
        assert_eq!(outcome.output, "1\n", "{name}");
    }
    let listed = run_at_root(&tree, "find d -type f | wc -l").output;
    // One name has a line of its own in it.
    assert_eq!(listed, "13\n");
    assert_eq!(run_at_root(&tree, "cat d/* | wc -l").output, "12\n");
}

#[test]
fn a_body_that_looks_binary_is_not_printed_by_grep() {
    let tree = MemoryTree::new([("bin", &b"a\0b needle\nx\n"[..]), ("text", b"needle\n")]);
    assert_eq!(
        run_at_root(&tree, "grep needle bin text").output,
        "grep: bin: binary file matches\ntext:needle\n"
    );
    assert_eq!(run_at_root(&tree, "grep -c needle bin").output, "1\n");
    assert_eq!(run_at_root(&tree, "grep -a needle bin").output, "a\0b needle\n");
    assert_eq!(run_at_root(&tree, "rg needle bin").output, "binary file matches (found \"\\0\" byte)\n");
    assert!(run_at_root(&tree, "grep -I needle bin").failed);
}

#[test]
fn half_a_character_is_replaced() {
    let tree = MemoryTree::new([("e", "éé\n".as_bytes())]);
    assert_eq!(run_at_root(&tree, "head -c 3 e").output, "é?");
    assert_eq!(run_at_root(&tree, "cut -b1 e").output, "?\n");
    assert_eq!(run_at_root(&tree, "cut -c2 e").output, "é\n");
    assert_eq!(run_at_root(&tree, "wc -m e").output, "3 e\n");
}

#[test]
fn a_deep_tree_and_a_deep_path_are_walked() {
    let path = "d/".repeat(3000) + "leaf.md";
    let tree = MemoryTree::new([(path.as_str(), &b"needle\n"[..])]);
    assert!(run_at_root(&tree, "grep -rl needle . | wc -c").output.trim() == (path.len() + 3).to_string());
    assert_eq!(run_at_root(&tree, "find . -type f | wc -l; ls -R | tail -n 1").output, "1\nleaf.md\n");
    assert!(run_at_root(&tree, "tree | tail -n 1").output.contains("3001 directories, 1 file"));
    let up = "../".repeat(5000);
    assert_eq!(run_at_root(&tree, &format!("cd {up} && pwd")).output, "/\n");
    let globs = "*/".repeat(3000);
    assert!(run_at_root(&tree, &format!("echo {globs}* | wc -w")).output.starts_with('1'));
}

#[test]
fn long_pipes_and_lists_run() {
    let tree = MemoryTree::new([("a", "x\n".repeat(5000).as_bytes())]);
    let limits = Limits { script_bytes: 1 << 20, ..Limits::default() };
    let session = Session { cwd: "/", now: NOW, limits, watch: &StepClock::default() };
    let pipe = format!("head -n 3 a {}", "| cat".repeat(10_000));
    assert_eq!(run(&tree, &pipe, &session).output, "x\nx\nx\n");
    let numbered = format!("cat a {} | tail -n 1 | wc -w", "| cat -n".repeat(300));
    assert_eq!(run(&tree, &numbered, &session).output, "301\n");
    let heads = format!("cat a {} | wc -l", "| head -n 10".repeat(2000));
    assert_eq!(run(&tree, &heads, &session).output, "10\n");
    let sources = format!("ls {}", "| ls".repeat(5000));
    assert_eq!(run(&tree, &sources, &session).output, "a\n");
    let list = "true && ".repeat(10_000) + "echo end";
    assert_eq!(run(&tree, &list, &session).output, "end\n");
}

#[test]
fn patterns_that_look_catastrophic_are_linear_or_refused() {
    let body = "a".repeat(4_000) + "\n";
    let tree = MemoryTree::new([("a", body.as_bytes())]);
    for pattern in ["(a+)+b", "(a|a)*b", "(a*)*b", "(.*)(.*)(.*)(.*)(.*)b", "a{100}b", "(x+x+)+y"] {
        let outcome = run_at_root(&tree, &format!("grep -c '{pattern}' a"));
        assert_eq!(outcome.output, "0\n", "{pattern}");
    }
    for pattern in ["((a{100}){100}){100}", "(((((a{20}){20}){20}){20}){20})"] {
        let outcome = run_at_root(&tree, &format!("grep -c '{pattern}' a"));
        assert!(outcome.failed && outcome.output.contains("too large"), "{pattern}: {}", outcome.output);
    }
}

#[test]
fn a_search_in_one_very_long_line_can_be_given_up() {
    use std::time::Duration;
    let body = "ab é".repeat(1 << 18);
    let tree = MemoryTree::new([("line", body.as_bytes())]);
    let script = "grep -c '[^x]{900}Q' line";
    assert_eq!(run_at_root(&tree, script).output, "0\n");
    assert_eq!(run_at_root(&tree, "grep -c '[^x]{900}b' line").output, "1\n");
    let watch = StepClock::stepping(Duration::from_millis(100));
    let outcome =
        run(&tree, script, &Session { cwd: "/", now: NOW, limits: Limits::default(), watch: &watch });
    assert!(outcome.failed && outcome.output.contains("10 s of time used"), "{}", outcome.output);
    assert!(run_at_root(&tree, "grep -o '[^x]{900}b' line").output.contains("too long for -o"));
}

#[test]
fn what_would_have_to_be_held_is_bounded() {
    let body = "0123456789abcdef".repeat(1 << 16);
    let names: Vec<String> = (0..40).map(|n| format!("f{n:02}")).collect();
    let tree = MemoryTree::new(names.iter().map(|name| (name.as_str(), body.as_bytes())));
    for script in [
        "sort *",
        "cat * | tail -n 1",
        "head -n -1 *",
        "cat * | head -n -1",
        "cat * | grep nope",
        "cat * | uniq",
    ] {
        let outcome = run_at_root(&tree, script);
        let held = outcome.output.contains("would hold more than 32 MiB");
        // What is held of one file at a time is no more than that file.
        assert!(held || script == "head -n -1 *", "{script}: {}", outcome.output.len());
    }
}
