use std::ops::RangeInclusive;

use super::tree;
use crate::testing::run_at_root;
use crate::tree::Tree;

/// Which lines of which files a script cites.
fn cited(script: &str) -> Vec<(String, Vec<RangeInclusive<u64>>)> {
    let tree = tree();
    let outcome = run_at_root(&tree, script);
    outcome.reads.into_iter().map(|read| (tree.name(read.node).to_owned(), read.lines)).collect()
}

fn one(name: &str, lines: &[RangeInclusive<u64>]) -> Vec<(String, Vec<RangeInclusive<u64>>)> {
    vec![(name.to_owned(), lines.to_vec())]
}

#[test]
fn what_is_printed_is_cited() {
    assert_eq!(cited("cat files/a.md"), one("a.md", &[1..=3]));
    assert_eq!(cited("head -n 2 files/a.md"), one("a.md", &[1..=2]));
    assert_eq!(cited("tail -n 1 files/a.md"), one("a.md", &[3..=3]));
    assert_eq!(cited("tail -n +2 files/a.md | head -n 1"), one("a.md", &[2..=2]));
    assert_eq!(cited("grep -n a files/a.md"), one("a.md", &[1..=3]));
    assert_eq!(cited("grep foo files/sub/d.md"), one("d.md", &[1..=1, 4..=4]));
    assert_eq!(cited("grep -o foo files/sub/d.md"), one("d.md", &[1..=1, 4..=4]));
    assert_eq!(cited("grep -C1 baz files/sub/d.md"), one("d.md", &[1..=3]));
    assert_eq!(cited("grep -v foo files/sub/d.md"), one("d.md", &[2..=3]));
    assert_eq!(cited("head -c 8 files/a.md"), one("a.md", &[1..=2]));
    assert_eq!(cited("cat -n files/a.md"), one("a.md", &[1..=3]));
}

#[test]
fn lines_are_followed_through_pipes() {
    assert_eq!(cited("cat files/sub/c.csv | grep 20"), one("c.csv", &[3..=3]));
    assert_eq!(cited("cat files/sub/c.csv | cut -d, -f2 | sort -n | tail -n 1"), one("c.csv", &[3..=3]));
    assert_eq!(cited("cat files/sub/d.md | sort | uniq -c | grep -w baz"), one("d.md", &[2..=2]));
    assert_eq!(
        cited("cat files/a.md files/sub/d.md | grep -i foo | head -n 2"),
        vec![("a.md".to_owned(), vec![3..=3]), ("d.md".to_owned(), vec![1..=1]),]
    );
    assert_eq!(
        cited("cat files/b.txt README.md | grep Welcome"),
        vec![("b.txt".to_owned(), vec![1..=1]), ("README.md".to_owned(), vec![1..=1]),]
    );
}

#[test]
fn what_is_only_looked_at_is_not_cited() {
    for script in [
        "ls -lR",
        "find .",
        "tree",
        "stat files/a.md",
        "wc files/a.md",
        "grep -c foo files/a.md",
        "grep -rl foo",
        "grep -q foo files/a.md",
        "grep -r nowhere .",
        "cat files/a.md | grep nowhere",
        "cat files/a.md | wc -l",
        "cat files/a.md | ls",
        "head -n 0 files/a.md",
        "cat nope",
    ] {
        assert_eq!(cited(script), Vec::new(), "{script}");
    }
}

#[test]
fn what_the_cut_leaves_out_is_not_cited() {
    let body = "a line of some length\n".repeat(10_000);
    let tree = crate::testing::MemoryTree::new([("long", body.as_bytes()), ("other", b"x\n")]);
    let outcome = run_at_root(&tree, "cat long other");
    assert!(outcome.truncated && !outcome.failed);
    let whole_lines = outcome.output.lines().filter(|line| *line == "a line of some length").count() as u64;
    assert_eq!(outcome.reads.len(), 1);
    assert_eq!(outcome.reads[0].lines, [1..=whole_lines]);
}
