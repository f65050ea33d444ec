use super::{failing, ok, tree};
use crate::testing::{NOW, run_at_root};
use crate::tree::Unreadable;

#[test]
fn lists() {
    assert_eq!(ok("ls"), "README.md\nempty\nfiles\n");
    assert_eq!(ok("ls files"), "a.md\nb.txt\nsub\n");
    assert_eq!(ok("ls -a files"), ".\n..\n.hidden\na.md\nb.txt\nsub\n");
    assert_eq!(ok("ls -p /"), "README.md\nempty/\nfiles/\n");
    assert_eq!(ok("ls -d files"), "files\n");
    assert_eq!(ok("ls -R files"), "files:\na.md\nb.txt\nsub\n\nfiles/sub:\nc.csv\nd.md\n");
    assert_eq!(ok("ls -S files/sub"), "c.csv\nd.md\n");
    assert_eq!(failing("ls nope"), "ls: cannot access 'nope': No such file or directory\n");
}

#[test]
fn lists_at_length() {
    let mut tree = tree();
    tree.set_modified("/files/a.md", NOW - 60_000_000);
    tree.set_modified("/files/b.txt", NOW - 700 * 86_400_000_000);
    tree.set_modified("/files/sub", NOW);
    let long = run_at_root(&tree, "ls -l files").output;
    assert_eq!(
        long,
        "total 2\n-r--r--r-- 1 cairn cairn 21 Sep 21 14:12 a.md\n-r--r--r-- 1 cairn cairn 14 Oct 21  2024 b.txt\n\
         dr-xr-xr-x 1 cairn cairn  0 Sep 21 14:13 sub\n"
    );
    assert_eq!(run_at_root(&tree, "ls -t files").output, "sub\na.md\nb.txt\n");
    assert_eq!(run_at_root(&tree, "ls -tr files").output, "b.txt\na.md\nsub\n");
}

#[test]
fn draws_a_tree() {
    let drawn =
        "files\n├── a.md\n├── b.txt\n└── sub\n    ├── c.csv\n    └── d.md\n\n2 directories, 4 files\n";
    assert_eq!(ok("tree files"), drawn);
    assert_eq!(ok("tree -L 1 /"), "/\n├── README.md\n├── empty\n└── files\n\n3 directories, 1 file\n");
    assert_eq!(ok("tree -d"), ".\n├── empty\n└── files\n    └── sub\n\n4 directories\n");
    assert_eq!(ok("tree -fi --noreport files/sub"), "files/sub\nfiles/sub/c.csv\nfiles/sub/d.md\n");
    assert_eq!(ok("tree --noreport -P '*.md' -I sub files"), "files\n└── a.md\n");
    assert!(failing("tree -L 0").contains("greater than 0"));
}

#[test]
fn finds() {
    assert_eq!(ok("find files -name '*.md'"), "files/a.md\nfiles/sub/d.md\n");
    assert_eq!(ok("find / -type d"), "/\n/empty\n/files\n/files/sub\n");
    assert_eq!(ok("find . -maxdepth 1"), ".\n./README.md\n./empty\n./files\n");
    assert_eq!(ok("find files -mindepth 2 -type f"), "files/sub/c.csv\nfiles/sub/d.md\n");
    assert_eq!(ok("find files -path '*sub*' -not -name '*.csv' -type f"), "files/sub/d.md\n");
    assert_eq!(
        ok("find . -name sub -prune -o -type f -print"),
        "./README.md\n./files/.hidden\n./files/a.md\n./files/b.txt\n"
    );
    assert_eq!(ok("find files \\( -name '*.csv' -o -name '*.txt' \\) -size -1k"), "");
    assert_eq!(ok("find files -size +20c"), "files/a.md\nfiles/sub/c.csv\nfiles/sub/d.md\n");
    assert_eq!(ok("find . -empty"), "./empty\n");
    assert!(failing("find . -exec rm {} +").contains("-exec"));
    assert!(failing("find . -delete").contains("read-only"));
    assert!(failing("find . -regex '.*'").contains("-name or -path"));
    assert!(failing("find . -name").contains("missing argument"));
    assert!(failing("find . \\( -type f").contains("`\\)` is missing"));
    assert!(failing("find . -name '*.md' files").contains("paths must precede"));
    assert_eq!(failing("find nope"), "find: 'nope': No such file or directory\n");
}

#[test]
fn finds_by_time() {
    let mut tree = tree();
    for path in
        ["/files/a.md", "/files/b.txt", "/files/sub/c.csv", "/files/sub/d.md", "/files/.hidden", "/README.md"]
    {
        tree.set_modified(path, NOW - 10 * 86_400_000_000);
    }
    tree.set_modified("/files/a.md", NOW - 3_600_000_000);
    assert_eq!(run_at_root(&tree, "find . -type f -mtime -1").output, "./files/a.md\n");
    assert_eq!(run_at_root(&tree, "find . -type f -mmin +59 -mmin -61").output, "./files/a.md\n");
    assert_eq!(run_at_root(&tree, "find . -type f -newer files/b.txt").output, "./files/a.md\n");
    assert_eq!(
        run_at_root(&tree, "find files/sub -type f -mtime +7").output,
        "files/sub/c.csv\nfiles/sub/d.md\n"
    );
}

#[test]
fn greps() {
    assert_eq!(ok("grep foo files/a.md"), "gamma foo\n");
    assert_eq!(
        ok("grep -n foo files/a.md files/sub/d.md"),
        "files/a.md:3:gamma foo\nfiles/sub/d.md:1:foo bar\nfiles/sub/d.md:4:foobar\n"
    );
    assert_eq!(ok("grep -rlw foo"), "README.md\nfiles/.hidden\nfiles/a.md\nfiles/sub/d.md\n");
    assert_eq!(ok("grep -rc foo files --include='*.md'"), "files/a.md:1\nfiles/sub/d.md:2\n");
    assert_eq!(ok("grep -rhoi 'FOO[a-z]*' files/sub"), "foo\nFoo\nfoobar\n");
    assert_eq!(ok("grep -B1 -A1 baz files/sub/d.md"), "foo bar\nbaz\nFoo\n");
    assert_eq!(ok("grep -e alpha -e beta files/a.md"), "alpha\nbeta\n");
    assert_eq!(ok("grep -q foo README.md && echo yes"), "yes\n");
    assert_eq!(failing("grep zzz files/a.md"), "");
    assert_eq!(failing("grep foo nope"), "grep: nope: No such file or directory\n");
    assert!(failing("grep foo files").contains("Is a directory"));
    assert!(failing("grep foo").contains("grep -rn PATTERN PATH"));
    assert!(failing("grep 'a(?=b)' README.md").contains("lookahead"));
    assert!(failing(r"grep '(a)\1' README.md").contains("backreference"));
    assert!(failing(r"grep 'foo\|bar' files/b.txt").contains("alternatives"));
    assert!(failing("grep -z foo README.md").contains("invalid option -- 'z'"));
    assert!(failing("grep -A x foo README.md").contains("context length"));
}

#[test]
fn ripgreps() {
    assert_eq!(
        ok("rg foo"),
        "README.md:foo is here\nfiles/a.md:gamma foo\nfiles/sub/d.md:foo bar\nfiles/sub/d.md:foobar\n"
    );
    assert_eq!(ok("rg -n foo files/a.md"), "3:gamma foo\n");
    assert_eq!(ok("rg -lr foo ./files"), "./files/a.md\n./files/sub/d.md\n");
    assert_eq!(ok("rg -c foo"), "README.md:1\nfiles/a.md:1\nfiles/sub/d.md:2\n");
    assert_eq!(ok("rg -S Foo -g '*.md'"), "files/sub/d.md:Foo\n");
    assert_eq!(ok("rg --files -t md"), "README.md\nfiles/a.md\nfiles/sub/d.md\n");
    assert_eq!(ok("rg -g '!sub/**' -l foo"), "README.md\nfiles/a.md\n");
    assert_eq!(ok("cat files/a.md | rg -n beta"), "2:beta\n");
    assert_eq!(ok("cd files && rg -uu -l '^foo$'"), ".hidden\n");
    assert!(failing("rg -t nope foo").contains("unrecognized file type"));
}

#[test]
fn reads() {
    assert_eq!(ok("cat -n files/a.md"), "     1\talpha\n     2\tbeta\n     3\tgamma foo\n");
    assert_eq!(ok("cat files/b.txt README.md"), "no end of line# Welcome\nfoo is here\n");
    assert_eq!(
        ok("head -n 1 files/a.md files/b.txt"),
        "==> files/a.md <==\nalpha\n\n==> files/b.txt <==\nno end of line"
    );
    assert_eq!(ok("head -2 files/a.md"), "alpha\nbeta\n");
    assert_eq!(ok("tail -n +2 files/a.md"), "beta\ngamma foo\n");
    assert_eq!(ok("tail -1 files/a.md"), "gamma foo\n");
    assert_eq!(ok("tail -c 4 files/a.md"), "foo\n");
    assert_eq!(ok("wc -l files/a.md"), "3 files/a.md\n");
    assert_eq!(
        ok("wc files/a.md files/b.txt"),
        " 3  4 21 files/a.md\n 0  4 14 files/b.txt\n 3  8 35 total\n"
    );
    assert_eq!(ok("sort -t, -k2,2n files/sub/c.csv | head -n 2"), "x,y,z\n1,2,3\n");
    assert_eq!(ok("cut -d, -f1,3 files/sub/c.csv | tail -n 1"), "2,6\n");
    assert_eq!(
        ok("cat files/*.md files/sub/*.md | cut -c1-3 | sort | uniq -c | sort -rn | head -n 1"),
        "      2 foo\n"
    );
    assert!(failing("cat").contains("no file is named"));
    assert!(failing("tail -f files/a.md").contains("-f"));
    assert!(failing("sort -o x files/a.md").contains("read-only"));
    assert!(failing("uniq files/a.md out").contains("read-only"));
    assert_eq!(failing("cat files"), "cat: files: Is a directory\n");
    assert_eq!(failing("cat files/a.md/x"), "cat: files/a.md/x: Not a directory\n");
    assert_eq!(
        failing("cat files/a.md nope"),
        "alpha\nbeta\ngamma foo\ncat: nope: No such file or directory\n"
    );
}

#[test]
fn tells_what_is_known_of_a_path() {
    let told = ok("stat files/a.md");
    for part in ["File: /files/a.md", "Type: regular file", "Size: 21", "Id: node-", "Citation: [a.md]"] {
        assert!(told.contains(part), "{part} in {told}");
    }
    assert_eq!(ok("stat -c '%n %s %F' files/a.md empty"), "files/a.md 21 regular file\nempty 0 directory\n");
    assert_eq!(failing("stat nope"), "stat: cannot statx 'nope': No such file or directory\n");
}

#[test]
fn small_things() {
    assert_eq!(ok("pwd"), "/\n");
    assert_eq!(ok("cd files/sub; pwd; cd - ; cd; pwd"), "/files/sub\n/\n/\n");
    assert_eq!(ok("cd files/sub | cat; pwd"), "/\n");
    assert_eq!(failing("cd files/a.md"), "cd: files/a.md: Not a directory\n");
    assert_eq!(failing("cd nope"), "cd: nope: No such file or directory\n");
    assert_eq!(ok("echo -n a; echo b  c; echo -e 'x\\ty'; echo 'x\\ty'"), "ab c\nx\ty\nx\\ty\n");
    assert_eq!(
        ok("echo files/*; echo 'files/*'; echo nope*"),
        "files/a.md files/b.txt files/sub\nfiles/*\nnope*\n"
    );
    assert_eq!(ok("echo */sub/; echo /*/.h*"), "files/sub/\n/files/.hidden\n");
    assert_eq!(ok("basename /a/b.md .md; dirname /a/b.md"), "b\n/a\n");
    assert_eq!(ok("true && echo yes || echo no; false || echo other; ! false"), "yes\nother\n");
}

#[test]
fn help_names_every_command() {
    let help = ok("help");
    for command in crate::commands::COMMANDS {
        assert!(help.contains(command.name), "{}", command.name);
        let one = ok(&format!("help {}", command.name));
        assert!(one.starts_with(&format!("usage: {}", command.name)), "{one}");
        if command.name != "echo" {
            assert_eq!(one, ok(&format!("{} --help", command.name)));
        }
    }
    assert!(failing("help sed").contains("tail -n"));
}

#[test]
fn a_command_that_is_not_here_says_what_to_use() {
    for (script, advice) in [
        ("gerp foo", "did you mean `grep`"),
        ("catt README.md", "did you mean `cat`"),
        ("rm -rf files", "read-only"),
        ("mkdir x", "read-only"),
        ("echo x | tee y", "read-only"),
        ("sed -i s/a/b/ README.md", "read-only"),
        ("sed -n '10,20p' files/a.md", "tail -n +10 files/a.md | head -n 11"),
        ("awk '{print $1}' README.md", "cut -d CHAR"),
        ("find . -name '*.md' | xargs grep foo", "grep -r --include"),
        ("less README.md", "cat FILE"),
        ("python x.py", "no other programs"),
        ("export X", "no variables"),
        ("qqqqqqqqqq", "`help` lists"),
    ] {
        let output = failing(script);
        assert!(output.contains(advice), "{script}: {output}");
    }
}

#[test]
fn complaints_go_where_they_are_sent() {
    assert_eq!(ok("cat nope 2>/dev/null | wc -l"), "0\n");
    assert_eq!(ok("cat nope 2>&1 | grep -c 'No such'"), "1\n");
    assert_eq!(ok("cat nope | wc -l"), "cat: nope: No such file or directory\n0\n");
    assert_eq!(ok("ls nope 2>/dev/null || echo gone"), "gone\n");
}

#[test]
fn a_body_that_cannot_be_read_is_complained_about() {
    let mut tree = tree();
    tree.set_broken("/files/a.md", Unreadable::Unavailable);
    tree.set_broken("/files/b.txt", Unreadable::Gone);
    let outcome = run_at_root(&tree, "cat files/a.md files/b.txt README.md");
    assert!(outcome.failed);
    assert!(outcome.output.starts_with("cat: files/a.md: Input/output error"), "{}", outcome.output);
    assert!(
        outcome.output.contains("cat: files/b.txt: No such file or directory\n# Welcome"),
        "{}",
        outcome.output
    );
    let outcome = run_at_root(&tree, "grep -r foo files");
    assert!(outcome.failed);
    assert!(outcome.output.contains("files/sub/d.md:foo bar"), "{}", outcome.output);
}
