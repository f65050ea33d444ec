//! Scripts from end to end on a small tree.

mod budgets;
mod citations;
mod commands;
mod odd;

use crate::testing::{MemoryTree, run_at_root};

fn tree() -> MemoryTree {
    MemoryTree::new([
        ("README.md", &b"# Welcome\nfoo is here\n"[..]),
        ("files/a.md", b"alpha\nbeta\ngamma foo\n"),
        ("files/b.txt", b"no end of line"),
        ("files/sub/c.csv", b"x,y,z\n1,2,3\n10,20,30\n2,5,6\n"),
        ("files/sub/d.md", b"foo bar\nbaz\nFoo\nfoobar\n"),
        ("files/.hidden", b"foo\n"),
        ("empty/", b""),
    ])
}

/// Runs a script that must succeed.
fn ok(script: &str) -> String {
    let outcome = run_at_root(&tree(), script);
    assert!(!outcome.failed, "{script}: {}", outcome.output);
    outcome.output
}

/// Runs a script that must fail.
fn failing(script: &str) -> String {
    let outcome = run_at_root(&tree(), script);
    assert!(outcome.failed, "{script}: {}", outcome.output);
    outcome.output
}
