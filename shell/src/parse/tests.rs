use proptest::prelude::*;

use super::*;

fn words(script: &str) -> Vec<String> {
    let script = parse(script).unwrap();
    script
        .steps
        .into_iter()
        .flat_map(|step| step.stages)
        .flat_map(|stage| stage.words)
        .map(|word| word.text)
        .collect()
}

fn globs(script: &str) -> Vec<Option<String>> {
    let script = parse(script).unwrap();
    script
        .steps
        .into_iter()
        .flat_map(|step| step.stages)
        .flat_map(|stage| stage.words)
        .map(|word| word.glob)
        .collect()
}

fn refusal(script: &str) -> String {
    parse(script).map(|_| script.to_owned()).unwrap_err().why
}

#[test]
fn quotes_and_escapes_are_those_of_bash() {
    assert_eq!(words("a 'b c' \"d e\" f\\ g"), ["a", "b c", "d e", "f g"]);
    assert_eq!(words("a''b\"\"c"), ["abc"]);
    assert_eq!(words("echo '' x"), ["echo", "", "x"]);
    assert_eq!(words(r#"echo "a\"b\\c\$d\e""#), ["echo", r#"a"b\c$d\e"#]);
    assert_eq!(words("echo 'a\\'"), ["echo", "a\\"]);
    assert_eq!(words("echo a\\\nb c\\\n d"), ["echo", "ab", "c", "d"]);
    assert_eq!(words("echo 'a\nb'"), ["echo", "a\nb"]);
    assert_eq!(words("echo a # b | c\n# whole line\necho d#e"), ["echo", "a", "echo", "d#e"]);
    assert_eq!(
        words("grep foo$ 'a$b' \"c$\" \"x$ y\" z$|cat"),
        ["grep", "foo$", "a$b", "c$", "x$ y", "z$", "cat"]
    );
    assert_eq!(words("cd ~; ls ~/x '~' a~"), ["cd", "/", "ls", "/x", "~", "a~"]);
    assert_eq!(words("echo a=b {} {a} x,y }"), ["echo", "a=b", "{}", "{a}", "x,y", "}"]);
    assert_eq!(words("echo 🦀 'é è'"), ["echo", "🦀", "é è"]);
}

#[test]
fn only_what_is_not_quoted_is_a_glob() {
    assert_eq!(
        globs("a *.md '*' \\* \"[a]\" [a]"),
        [None, Some("*.md".to_owned()), None, None, None, Some("[a]".to_owned())]
    );
    assert_eq!(globs("'*'*"), [Some("\\**".to_owned())]);
}

#[test]
fn steps_and_stages() {
    let script = parse("a | b && c || ! d; e\n\nf |\n g &&\n h").unwrap();
    let joints: Vec<Joint> = script.steps.iter().map(|step| step.joint).collect();
    let stages: Vec<usize> = script.steps.iter().map(|step| step.stages.len()).collect();
    use Joint::{Always, Failure, Success};
    assert_eq!(joints, [Always, Success, Failure, Always, Always, Success]);
    assert_eq!(stages, [2, 1, 1, 1, 2, 1]);
    assert!(script.steps[2].negated);
    assert!(parse("").unwrap().steps.is_empty());
    assert!(parse(" \n# nothing\n").unwrap().steps.is_empty());
}

#[test]
fn two_redirections_write_nothing() {
    let script = parse("a 2>/dev/null | b 2>&1 | c 2> /dev/null;d 2").unwrap();
    let complaints: Vec<Complaints> =
        script.steps.iter().flat_map(|step| &step.stages).map(|stage| stage.complaints).collect();
    assert_eq!(complaints, [Complaints::Dropped, Complaints::Merged, Complaints::Dropped, Complaints::Shown]);
}

#[test]
fn everything_else_is_refused_by_name() {
    for (script, name) in [
        ("echo a > b", "redirection (`>`)"),
        ("echo a >> b", "redirection (`>`)"),
        ("echo a 2> b", "redirection (`>`)"),
        ("echo a 2>/dev/nullx", "redirection (`>`)"),
        ("echo a 1>/dev/null", "redirection (`>`)"),
        ("echo a 2>&12", "redirection (`>`)"),
        ("echo a &> b", "redirection (`>`)"),
        ("cat < b", "redirection (`<`)"),
        ("cat << EOF", "here-documents"),
        ("cat <<< text", "here-strings"),
        ("cat <(ls)", "process substitution"),
        ("a |& b", "|&"),
        ("a & b", "background"),
        ("a &", "background"),
        ("echo `ls`", "backticks"),
        ("echo \"`ls`\"", "backticks"),
        ("echo $(ls)", "substitution"),
        ("echo \"$(ls)\"", "substitution"),
        ("echo $((1+1))", "substitution"),
        ("echo $HOME", "variables"),
        ("echo \"${x}\"", "variables"),
        ("echo $?", "variables"),
        ("echo $'a'", "$'…'"),
        ("X=1", "assignments (`X=`)"),
        ("X=1 ls", "assignments"),
        ("for f in a; do ls; done", "loops"),
        ("while true; do ls; done", "loops"),
        ("if true; then ls; fi", "conditions"),
        ("case a in esac", "conditions"),
        ("[ -f a ]", "tests"),
        ("[[ -f a ]]", "tests"),
        ("f() { ls; }", "functions"),
        ("function f", "functions"),
        ("{ ls; }", "groups"),
        ("(ls)", "subshells"),
        ("cat {a,b}.md", "brace expansion"),
        ("echo {1..3}", "brace expansion"),
        ("time ls", "job control"),
        ("echo 'a", "not closed"),
        ("echo \"a", "not closed"),
        ("ls |", "missing after `|`"),
        ("ls &&", "missing after `&&`"),
        ("| ls", "near `|`"),
        ("ls | | wc", "near `|`"),
        ("; ls", "near `;`"),
        ("ls ;; ls", "near `;;`"),
        ("!", "missing"),
    ] {
        let why = refusal(script);
        assert!(why.contains(name), "{script}: {why}");
    }
}

#[test]
fn a_refusal_tells_the_line() {
    assert_eq!(parse("ls\nls\necho $x").unwrap_err().line, 3);
    assert_eq!(parse("ls\necho 'a\nb").unwrap_err().line, 2);
}

#[test]
fn long_scripts_do_not_nest() {
    assert_eq!(parse(&"a|".repeat(10_000).replace("a|", "a |")).unwrap_err().line, 1);
    let pipe = vec!["cat"; 10_000].join("|");
    assert_eq!(parse(&pipe).unwrap().steps[0].stages.len(), 10_000);
    let list = vec!["cat"; 10_000].join("&&");
    assert_eq!(parse(&list).unwrap().steps.len(), 10_000);
    assert!(parse(&"(".repeat(10_000)).is_err());
    assert!(parse(&"! ".repeat(10_000)).is_err());
}

proptest! {
    #[test]
    fn no_script_panics(script in "\\PC{0,200}") {
        let _ = parse(&script);
    }

    #[test]
    fn no_script_of_operators_panics(script in "[ab '\"\\\\|&;<>(){}$`#!~*?\\[\\]2=,.\n]{0,60}") {
        let _ = parse(&script);
    }

    #[test]
    fn a_single_quoted_text_is_itself(text in "[^']{0,40}") {
        prop_assert_eq!(words(&format!("echo '{text}'")), ["echo", text.as_str()]);
    }
}
