//! No script makes the executor panic, spend more than its limits, or print more than its cap; what it cites is there.

#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use cairn_shell::testing::{MemoryTree, NOW, StepClock};
use cairn_shell::tree::{Kind, Tree};
use cairn_shell::{Limits, Session, run};
use libfuzzer_sys::fuzz_target;

static TREE: LazyLock<MemoryTree> = LazyLock::new(|| {
    let long = "one two three\nfour five six\n".repeat(300);
    let wide = "word ".repeat(2000);
    MemoryTree::new([
        ("README.md", &b"# Orientation\n\nRead me first: foo, bar, baz.\n"[..]),
        ("files/a.md", b"alpha\nbeta\ngamma foo\n"),
        ("files/no newline.txt", b"the last line has no end"),
        ("files/binary.dat", b"some\0thing foo\n"),
        ("files/long.md", long.as_bytes()),
        ("files/wide.txt", wide.as_bytes()),
        ("files/empty", b""),
        ("files/deep/er/still/c.csv", b"x,y,z\n1,2,3\n10,20,30\n2,5,6\n"),
        ("files/.hidden", b"foo\n"),
        ("files/sp ace/it's \"q\"\n*.md", "é 🦀\nfoo\n".as_bytes()),
        ("memories/", b""),
    ])
});

fuzz_target!(|script: &str| {
    let tree: &MemoryTree = &TREE;
    let watch = StepClock::stepping(Duration::from_micros(50));
    let limits = Limits {
        files_opened: 200,
        bytes_read: 1 << 20,
        nodes_visited: 2_000,
        wall_clock: Duration::from_secs(1),
        output_bytes: 4096,
        script_bytes: 2048,
    };
    let outcome = run(tree, script, &Session { cwd: "/files", now: NOW, limits, watch: &watch });
    assert!(outcome.output.len() <= limits.output_bytes);
    assert!(outcome.stats.files_opened <= limits.files_opened);
    assert!(outcome.stats.bytes_read <= limits.bytes_read);
    assert!(outcome.stats.nodes_visited <= limits.nodes_visited);
    let cwd = tree.node(&outcome.cwd).expect("the last folder is in the tree");
    assert_eq!(tree.kind(cwd), Kind::Folder);
    for read in outcome.reads {
        let body = tree.read(read.node).expect("what is cited can be read");
        let lines = body.split_inclusive(|byte| *byte == b'\n').count() as u64;
        assert!(read.lines.iter().all(|range| range.start() <= range.end() && *range.end() <= lines));
        assert!(read.lines.windows(2).all(|pair| pair[0].end() + 1 < *pair[1].start()));
    }
});
