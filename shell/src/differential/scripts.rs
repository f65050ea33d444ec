//! Scripts of which this shell and the GNU tools must make the same.

use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

type Words = Vec<&'static str>;

/// Files and folders that are there, and one that is not.
fn file() -> impl Strategy<Value = &'static str> {
    select(vec![
        "one",
        "two.md",
        "dir/three.md",
        "dir/sub/four",
        "./one",
        "dir/../one",
        "'one'",
        "o*",
        "*.md",
        "dir/*",
    ])
}

fn input() -> impl Strategy<Value = &'static str> {
    prop_oneof![12 => file(), 1 => select(vec!["missing", "dir", "one/x"])]
}

/// One or more inputs, or a pipe.
fn over(command: String, inputs: Words, piped: bool) -> String {
    let inputs = inputs.join(" ");
    match piped {
        true => format!("cat {inputs} 2>/dev/null | {command} 2>/dev/null"),
        false => format!("{command} {inputs} 2>/dev/null"),
    }
}

fn with_inputs(command: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (command, prop::collection::vec(input(), 1..4), any::<bool>())
        .prop_map(|(command, inputs, piped)| over(command, inputs, piped))
}

fn some_of(options: &[&'static str], most: usize) -> impl Strategy<Value = String> + use<> {
    subsequence(options.to_vec(), 0..=most.min(options.len())).prop_map(|options| options.join(" "))
}

/// Patterns that RE2 and POSIX read the same, and of which the longest match is the first one.
fn pattern() -> impl Strategy<Value = &'static str> {
    select(vec![
        "foo",
        "bar",
        "FOO",
        "fo*",
        "fo+",
        "^foo",
        "foo$",
        "^$",
        "^",
        "$",
        ".",
        "x.*y",
        "[a-c]",
        "[^a-z ]",
        "(foo|bar)x?",
        "o{2}",
        "[[:digit:]]+",
        "a,b",
        "\\.",
        "\\(foo\\)",
        "\\[a\\]",
        "nothing",
        "b.r",
        "fo{1,2}",
        "\\|",
        "\\\\",
        "\\$",
        "-3",
        "foo bar",
        "",
        "[[:space:]]",
        "[]a]",
        "\\bfoo\\b",
    ])
}

fn grep_options() -> impl Strategy<Value = String> {
    let show = select(vec!["", "", "-n", "-c", "-l", "-L", "-o", "-on", "-q", "-H", "-h", "-nH"]);
    let how = some_of(&["-i", "-v", "-w", "-x"], 2);
    let around = select(vec!["", "", "", "-A1", "-B 1", "-C2", "-m1", "-m 2", "-1", "-m1 -A2"]);
    (show, how, around).prop_map(|(show, how, around)| format!("{show} {how} {around}"))
}

pub(super) fn grep() -> impl Strategy<Value = String> {
    let regex = (grep_options(), pattern())
        .prop_map(|(options, pattern)| format!("grep -E {options} -e '{pattern}'"));
    let fixed = (grep_options(), select(vec!["foo", "a|b", "(foo)", ".", "[a]", "", "FOO", "$", "foo\nbar"]))
        .prop_map(|(options, text)| format!("grep -F {options} -- '{text}'"));
    let several = (grep_options(), pattern(), pattern())
        .prop_map(|(options, one, two)| format!("grep -E {options} -e '{one}' -e '{two}'"));
    with_inputs(prop_oneof![4 => regex, 1 => fixed, 1 => several].prop_filter(
        "matches of lines that are shown for another reason",
        |command| {
            let around = ["-A", "-B", "-C", "-1"].iter().any(|option| command.contains(option));
            // GNU's does not even count then.
            let nothing =
                command.contains("-v") && (command.ends_with("-e ''") || command.ends_with("-- ''"));
            !nothing && !(command.contains("-o") && (command.contains("-v") || around))
        },
    ))
}

pub(super) fn grep_in_folders() -> impl Strategy<Value = String> {
    let options = some_of(&["-i", "-n", "-v", "-w", "-l", "-c", "-h", "-L", "-o", "-q"], 2);
    let choice = select(vec![
        "",
        "",
        "--include='*.md'",
        "--include=*.md",
        "--exclude='a*'",
        "--exclude-dir=deep",
        "--exclude-dir='s*' --include '*.md'",
    ]);
    let place = select(vec!["", ".", "dir", "deep dir", "./deep", "dir/", "one dir", "dir missing", "one"]);
    (options, choice, pattern(), place)
        .prop_filter("matches of other lines, counts of none", |(options, _, pattern, _)| {
            !(options.contains("-v") && (options.contains("-o") || pattern.is_empty()))
        })
        .prop_map(|(options, choice, pattern, place)| {
            format!("grep -r -E {options} {choice} -e '{pattern}' {place} 2>/dev/null | sort")
        })
}

pub(super) fn find() -> impl Strategy<Value = String> {
    let place = select(vec!["", ".", "dir", "deep", "./dir/", "dir one", "missing .", "deep//"]);
    let depth = select(vec!["", "", "-maxdepth 1", "-mindepth 1", "-mindepth 2 -maxdepth 3", "-maxdepth 0"]);
    let test = || {
        select(vec![
            "-name '*.md'",
            "-name a",
            "-iname 'B.MD'",
            "-name '.*'",
            "-name '[ab]*'",
            "-name '*s*'",
            "-path '*dir*'",
            "-path './dir/*'",
            "-type f",
            "-type d",
            "-type f,d",
            "\\( -type f -size -1k \\)",
            "\\( -type f -size +1 \\)",
            "\\( -type f -size 0 \\)",
            "\\( -type f -size +20c \\)",
            "\\( -size -5c -type f \\)",
            "-empty -type f",
            "-name 'a?md'",
            "-true",
            "-false",
            "-ipath '*DIR*'",
            "-name 'star\\*'",
            "-name '\\[x\\]'",
            "-name '[!a-z]*'",
            "-print",
            "-name deep -prune",
        ])
    };
    let expression = prop_oneof![
        1 => Just(String::new()),
        4 => test().prop_map(str::to_owned),
        2 => (test(), test()).prop_map(|(left, right)| format!("{left} {right}")),
        2 => (test(), test()).prop_map(|(left, right)| format!("{left} -o {right}")),
        1 => (test(), test()).prop_map(|(left, right)| format!("-not {left} -a {right}")),
        1 => (test(), test(), test()).prop_map(|(a, b, c)| format!("\\( {a} -o {b} \\) ! {c}")),
    ];
    (place, depth, expression).prop_map(|(place, depth, expression)| {
        format!("find {place} {depth} {expression} 2>/dev/null | sort")
    })
}

pub(super) fn sort() -> impl Strategy<Value = String> {
    let options = some_of(&["-r", "-n", "-u", "-f", "-b", "-s", "-d"], 3);
    let key = select(vec![
        "",
        "",
        "",
        "-k2",
        "-k2,2",
        "-k 2n",
        "-k1,1 -k2,2nr",
        "-k2.2",
        "-k1.2,1.3",
        "-t, -k2",
        "-t , -k2,2",
        "-t: -k2n",
        "-k3,1",
        "-k2b,2",
        "-h",
        "-k2h",
    ]);
    with_inputs((options, key).prop_map(|(options, key)| format!("sort {options} {key}"))).prop_filter(
        "orders that cannot be had together",
        |script| {
            let orders = ["-n", "-h", "-d"].iter().filter(|order| script.contains(*order)).count();
            let ordered_keys =
                ["n", "h"].iter().filter(|letter| script.contains(&format!("-k2{letter}"))).count();
            orders + ordered_keys <= 1
        },
    )
}

pub(super) fn uniq() -> impl Strategy<Value = String> {
    let options = some_of(&["-c", "-d", "-u", "-i"], 3);
    let skip = select(vec!["", "", "-f1", "-s 1", "-w2", "-f1 -w 1"]);
    (options, skip, file(), select(vec!["cat", "sort", "sort -f", "cut -c1 "])).prop_map(
        |(options, skip, file, first)| format!("{first} {file} 2>/dev/null | uniq {options} {skip}"),
    )
}

fn count() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0_u32..6, 1 => 0_u32..100]
}

pub(super) fn head() -> impl Strategy<Value = String> {
    let how = (count(), select(vec!["-n ", "-n", "-c", "-n -", "-c -", "-", "--lines=", "--bytes=-"]))
        .prop_map(|(count, option)| format!("head {option}{count}"));
    let how = prop_oneof![4 => how, 1 => Just("head".to_owned())];
    let quiet = select(vec!["", "", "-q", "-v"]);
    // The old form must come first.
    with_inputs((how, quiet).prop_map(|(how, quiet)| format!("{how} {quiet}")))
}

pub(super) fn tail() -> impl Strategy<Value = String> {
    let how = (count(), select(vec!["-n ", "-n", "-c", "-n +", "-c +", "-n -", "--lines=", "--bytes=+"]))
        .prop_map(|(count, option)| format!("tail {option}{count}"));
    let how = prop_oneof![4 => how, 1 => Just("tail".to_owned())];
    let quiet = select(vec!["", "", "-q", "-v"]);
    with_inputs((how, quiet).prop_map(|(how, quiet)| format!("{how} {quiet}")))
        // GNU's gives up at a folder there.
        .prop_filter("bytes of a folder", |script| !(["-c", "--bytes", "+"].iter().any(|option| script.contains(option)) && script.contains("dir")))
}

pub(super) fn wc() -> impl Strategy<Value = String> {
    with_inputs(some_of(&["-l", "-w", "-c", "-m"], 3).prop_map(|options| format!("wc {options}")))
        .prop_filter("the length of a folder", |script| !script.contains("dir "))
}

pub(super) fn cut() -> impl Strategy<Value = String> {
    let list = || select(vec!["1", "2", "1,3", "2-", "-2", "2-3", "3,1", "1-2,2-4", "7", "1,3-"]);
    let fields = (
        list(),
        select(vec!["", "-d,", "-d ' '", "-d:", "-d '\t'"]),
        select(vec!["", "-s", "--complement", "--output-delimiter=_"]),
    )
        .prop_map(|(list, delimiter, more)| format!("cut -f{list} {delimiter} {more}"));
    let places = (list(), select(vec!["-c", "-b", "-c "]), select(vec!["", "--complement"]))
        .prop_map(|(list, unit, more)| format!("cut {unit}{list} {more}"));
    with_inputs(prop_oneof![fields, places])
}

pub(super) fn cat() -> impl Strategy<Value = String> {
    with_inputs(
        some_of(&["-n", "-b", "-s", "-E", "-T", "-A"], 3).prop_map(|options| format!("cat {options}")),
    )
}

pub(super) fn ls() -> impl Strategy<Value = String> {
    let options = some_of(&["-a", "-A", "-R", "-r", "-1", "-d", "-p"], 3);
    let place = select(vec![
        "",
        ".",
        "dir",
        "deep",
        "dir deep",
        "one dir",
        "*",
        "one two.md",
        "missing dir",
        "/nowhere",
        "*.md",
        "dir/",
    ]);
    (options, place).prop_map(|(options, place)| format!("ls {options} {place} 2>/dev/null"))
}

pub(super) fn names() -> impl Strategy<Value = String> {
    let path = || {
        select(vec![
            "a/b.md",
            "/a/b/",
            "/",
            "//",
            "a",
            "''",
            "a//b",
            "./a",
            "../x.md",
            "/a",
            "a/",
            "'a b/c d'",
        ])
    };
    prop_oneof![
        (path(), select(vec!["", ".md", "b.md", "d"]))
            .prop_map(|(path, suffix)| format!("basename {path} {suffix}")),
        prop::collection::vec(path(), 1..4).prop_map(|paths| format!("basename -a {}", paths.join(" "))),
        prop::collection::vec(path(), 1..4).prop_map(|paths| format!("dirname {}", paths.join(" "))),
    ]
}

pub(super) fn pipes() -> impl Strategy<Value = String> {
    let stages = select(vec![
        "grep foo",
        "grep -v foo",
        "grep -c .",
        "grep -n a",
        "sort",
        "sort -r",
        "sort -n",
        "uniq",
        "uniq -c",
        "head -n 2",
        "head -n 1",
        "tail -n 2",
        "tail -n +2",
        "wc -l",
        "wc",
        "cut -c1-3",
        "cut -d ' ' -f1",
        "cat -n",
        "cat",
        "grep -m1 a",
        "head -c 5",
        "tail -c 4",
        "cat - one",
        "grep -A1 foo",
    ]);
    let first = select(vec![
        "cat one two.md",
        "cat o*",
        "grep -h foo one two.md",
        "echo a b",
        "sort one",
        "cat dir/*.md dir/sub/four",
        "head -n 3 one",
        "tail -n 3 two.md",
    ]);
    let pipe = (first, prop::collection::vec(stages, 0..4)).prop_map(|(first, stages)| {
        stages.iter().fold(first.to_owned(), |pipe, stage| format!("{pipe} 2>/dev/null | {stage}"))
    });
    let joints = prop::collection::vec(select(vec![" && ", " || ", "; ", "\n"]), 4);
    let negated = any::<Index>();
    (prop::collection::vec(pipe, 1..4), joints, negated).prop_map(|(pipes, joints, negated)| {
        let mut script = String::new();
        for (at, pipe) in pipes.iter().enumerate() {
            if at > 0 {
                script.push_str(joints[at - 1]);
            }
            if negated.index(7) == at {
                script.push_str("! ");
            }
            script.push_str(pipe);
        }
        script
    })
}
