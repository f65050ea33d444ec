use std::time::Duration;

use crate::testing::{MemoryTree, NOW, StepClock};
use crate::{Limits, Outcome, Session, run};

fn many() -> MemoryTree {
    let names: Vec<String> = (0..300).map(|n| format!("d{}/f{n}.md", n % 7)).collect();
    MemoryTree::new(names.iter().map(|name| (name.as_str(), &b"one line\nand a needle\n"[..])))
}

fn limited(limits: Limits, script: &str) -> Outcome {
    run(&many(), script, &Session { cwd: "/", now: NOW, limits, watch: &StepClock::default() })
}

#[test]
fn each_limit_says_that_it_is_reached() {
    let all = Limits::default();
    for (limits, script, name, advice) in [
        (Limits { files_opened: 10, ..all }, "grep -rc line .", "10 files opened", "--include"),
        (Limits { bytes_read: 100, ..all }, "cat */*", "100 bytes of content read", "head -n"),
        (Limits { nodes_visited: 50, ..all }, "find . -name nope", "50 folders and files", "-maxdepth"),
        (Limits { nodes_visited: 50, ..all }, "echo */*", "50 folders and files", "-maxdepth"),
        (Limits { nodes_visited: 50, ..all }, "ls -R", "50 folders and files", "-maxdepth"),
        (Limits { nodes_visited: 50, ..all }, "tree", "50 folders and files", "-maxdepth"),
        (Limits { wall_clock: Duration::ZERO, ..all }, "pwd", "0 s of time", "-F"),
    ] {
        let watch = StepClock::stepping(Duration::from_millis(1));
        let outcome = run(&many(), script, &Session { cwd: "/", now: NOW, limits, watch: &watch });
        assert!(outcome.failed, "{script}");
        let last = outcome.output.lines().last().unwrap();
        assert!(
            last.starts_with("shell: stopped: ") && last.contains(name) && last.contains(advice),
            "{last}"
        );
        assert!(last.contains("files opened,") && last.contains("bytes read,"), "{last}");
        assert!(outcome.stats.files_opened <= limits.files_opened);
        assert!(outcome.stats.bytes_read <= limits.bytes_read);
        assert!(outcome.stats.nodes_visited <= limits.nodes_visited);
    }
}

#[test]
fn what_was_printed_before_a_stop_stays() {
    let outcome = limited(
        Limits { files_opened: 2, ..Limits::default() },
        "echo first; grep -rh needle d0; echo never",
    );
    assert!(
        outcome.output.starts_with("first\nand a needle\nand a needle\nshell: stopped: 2 files"),
        "{}",
        outcome.output
    );
    assert!(outcome.output.contains(", last at /d0/"), "{}", outcome.output);
    assert!(!outcome.output.contains("never"));
    assert_eq!(outcome.reads.len(), 2);
}

#[test]
fn output_is_cut_at_a_line() {
    for output_bytes in [1024, 1500, 4096] {
        let outcome = limited(Limits { output_bytes, ..Limits::default() }, "grep -rn needle .; false");
        assert!(outcome.truncated && !outcome.failed);
        assert!(outcome.output.len() <= output_bytes && outcome.output.len() > output_bytes - 300);
        let mut lines: Vec<&str> = outcome.output.lines().collect();
        let notice = lines.pop().unwrap();
        assert!(
            notice.starts_with("shell: output cut here") && notice.contains(&output_bytes.to_string()),
            "{notice}"
        );
        assert!(lines.iter().all(|line| line.ends_with(":2:and a needle")), "{lines:?}");
    }
}

#[test]
fn a_line_longer_than_the_output_is_cut_at_a_character() {
    let body = "é".repeat(100_000);
    let tree = MemoryTree::new([("wide", body.as_bytes())]);
    for output_bytes in 1024..1030 {
        let limits = Limits { output_bytes, ..Limits::default() };
        let outcome =
            run(&tree, "cat wide", &Session { cwd: "/", now: NOW, limits, watch: &StepClock::default() });
        assert!(outcome.truncated && outcome.output.len() <= output_bytes);
        let first = outcome.output.lines().next().unwrap();
        assert!(first.len() > 700 && first.chars().all(|c| c == 'é'));
    }
}

#[test]
fn output_that_just_fits_is_whole() {
    let body = "x".repeat(1023) + "\n";
    let tree = MemoryTree::new([("a", body.as_bytes())]);
    let limits = Limits { output_bytes: 1024, ..Limits::default() };
    let session = Session { cwd: "/", now: NOW, limits, watch: &StepClock::default() };
    let outcome = run(&tree, "cat a", &session);
    assert!(!outcome.truncated && outcome.output == body);
    assert!(run(&tree, "cat a; echo", &session).truncated);
}

#[test]
fn a_caller_who_goes_away_ends_the_script() {
    for script in
        ["grep -r needle .", "find .", "cat */* | sort | uniq -c", "cat */* | cat | cat | wc", "tree"]
    {
        let watch = StepClock::leaving_after(1);
        let session = Session { cwd: "/", now: NOW, limits: Limits::default(), watch: &watch };
        let outcome = run(&many(), script, &session);
        assert!(outcome.failed && outcome.output.contains("went away"), "{script}: {}", outcome.output);
    }
}

#[test]
fn head_stops_what_is_before_it() {
    let outcome = limited(Limits::default(), "grep -rn needle . | head -n 3");
    assert_eq!(outcome.output.lines().count(), 3);
    assert!(outcome.stats.files_opened < 40, "{:?}", outcome.stats);
    let outcome =
        limited(Limits { nodes_visited: 100, ..Limits::default() }, "find . | head -n 2; echo after");
    assert!(!outcome.failed && outcome.output.ends_with("after\n"), "{}", outcome.output);
}

#[test]
fn a_script_that_is_too_long_does_not_run() {
    let script = format!("echo {}", "x".repeat(20_000));
    let outcome = limited(Limits::default(), &script);
    assert!(outcome.failed && outcome.output.contains("16384 are the most"), "{}", outcome.output);
}

#[test]
fn a_search_that_can_be_filtered_opens_only_what_has_the_text() {
    let tree = MemoryTree::new([("a", &b"the Needle\n"[..]), ("b", b"hay\n"), ("c", b"needl\n")]);
    let session = Session { cwd: "/", now: NOW, limits: Limits::default(), watch: &StepClock::default() };
    for (script, output, opened) in [
        ("grep -r needle .", "", 1),
        ("grep -ri needle .", "./a:the Needle\n", 1),
        ("grep -rc Needle .", "./a:1\n./b:0\n./c:0\n", 1),
        ("grep -rL Needle .", "./b\n./c\n", 1),
        ("grep -rhv Needle .", "hay\nneedl\n", 3),
        ("grep -rhE 'Needle|hay' .", "the Needle\nhay\n", 2),
        ("grep -rh 'n.edl' .", "needl\n", 2),
    ] {
        let outcome = run(&tree, script, &session);
        assert_eq!((outcome.output.as_str(), outcome.stats.files_opened), (output, opened), "{script}");
    }
}

/// What would take minutes ends when the caller leaves, and looks at the clock often enough for that.
#[test]
fn work_is_charged_where_it_is_done() {
    let lines: String =
        (0..1_000).map(|n| format!("{:05} {}\n", n * 7_919 % 1_000, "a b ".repeat(25))).collect();
    let fields = format!("{}\n{}", "a ".repeat(50_000), "\n".repeat(50_000));
    let wide = "a".repeat(60_000);
    let deep = format!("d/{}", "a".repeat(250)).repeat(8);
    let tree = MemoryTree::new([
        ("lines", lines.as_bytes()),
        ("fields", fields.as_bytes()),
        ("wide", wide.as_bytes()),
        ("commas", ",".repeat(100_000).as_bytes()),
        (deep.as_str(), b"x"),
    ]);
    let keys = "-k 40,40 ".repeat(8);
    let paths = format!("find / {}", format!("-path '*{}z' -o ", "?".repeat(200)).repeat(8)) + "-false";
    for (script, least) in [
        (format!("sort {keys} lines | wc -l"), 20),
        ("sort -s -d -f lines lines lines | wc -l".to_owned(), 10),
        (paths, 5),
        ("uniq -f 900000 fields | wc -l".to_owned(), 2),
        ("cut -d , -f 1- --output-delimiter=aaaaaaaaaaaa commas | wc -c".to_owned(), 10),
    ] {
        let watch = StepClock::default();
        let session = Session { cwd: "/", now: NOW, limits: Limits::default(), watch: &watch };
        run(&tree, &script, &session);
        let looks = watch.looks();
        assert!((least..least * 100).contains(&looks), "{looks} looks: {script}");
        leaves(&tree, &script, least / 2);
    }
    // To its end this would take the square of the line.
    leaves(&tree, "grep -o 'a.*b|a' wide | wc -l", 20);
}

/// A script ends when its caller leaves after so many looks.
fn leaves(tree: &MemoryTree, script: &str, looks: u64) {
    let watch = StepClock::leaving_after(looks);
    let session = Session { cwd: "/", now: NOW, limits: Limits::default(), watch: &watch };
    let outcome = run(tree, script, &session);
    assert!(outcome.failed && outcome.output.contains("went away"), "{script}: {}", outcome.output);
    // What was printed until then may be handed on.
    assert!(watch.looks() <= looks + 4, "{} looks: {script}", watch.looks());
}

#[test]
fn what_needs_too_much_is_refused() {
    let keys = |count: usize| format!("sort {} d0/f0.md | wc -l", "-k1,1 ".repeat(count));
    assert_eq!(limited(Limits::default(), &keys(16)).output, "2\n");
    let searches = |count: usize| format!("cat d0/f0.md{}", " | grep a".repeat(count));
    assert_eq!(limited(Limits::default(), &searches(32)).output, "and a needle\n");
    let glob = "?".repeat(257);
    for (script, why) in [
        (keys(17), "sort: more than 16 keys (-k)"),
        (searches(33), "grep: more than 32 searches in one pipe"),
        (
            format!("find . -name '{glob}'"),
            "find: `-name`: a glob of 257 parts is too long, 256 are the most",
        ),
        (format!("echo {glob}"), "shell: the glob"),
        (format!("tree -I '{glob}'"), "tree: a glob of 257 parts"),
        (format!("grep -r --include='{glob}' a ."), "grep: a glob of 257 parts"),
        (format!("rg -g '{glob}' a"), "rg: a glob of 257 parts"),
    ] {
        let output = limited(Limits::default(), &script).output;
        assert!(output.contains(why), "{script}: {output}");
    }
}

#[test]
fn what_grows_in_a_pipe_is_held_to_a_limit() {
    let commas = ",".repeat(40_000) + "\n";
    let tree = MemoryTree::new([("commas", commas.as_bytes())]);
    let script =
        format!("cat commas | cut -d , -f 1- --output-delimiter={} | wc -c; echo never", "x".repeat(15_000));
    let session = Session { cwd: "/", now: NOW, limits: Limits::default(), watch: &StepClock::default() };
    let outcome = run(&tree, &script, &session);
    assert!(outcome.failed && outcome.output.contains("hold more than 32 MiB"), "{}", outcome.output);
}
