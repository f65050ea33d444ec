//! Unsupported syntax, and what to use instead.

use super::Word;

pub(super) const OUTPUT: &str = "redirection (`>`) writes a file, and this tree is read-only: let the output be \
    printed. Only `2>/dev/null` and `2>&1` are understood";
pub(super) const INPUT: &str =
    "redirection (`<`) is not supported: name the file as an argument, as in `grep WORD FILE`";
pub(super) const HERE_DOCUMENT: &str = "here-documents and here-strings (`<<`) are not supported: give the text as an argument, as in `echo 'text' | grep WORD`";
pub(super) const PROCESS_SUBSTITUTION: &str = "process substitution (`<(…)`) is not supported: run the commands one after the other, or join them with `|`";
pub(super) const PIPE_BOTH: &str = "`|&` is not supported: write `2>&1 |`";
pub(super) const BACKGROUND: &str = "background jobs (`&`) are not supported: separate commands with `;`, or quote the `&` to have the character";
pub(super) const BACKTICKS: &str = "command substitution (backticks) is not supported: run that command by itself and \
    write its result out, or use a pipe; in single quotes a backtick is just a character";
pub(super) const SUBSTITUTION: &str = "substitution (`$(…)`) is not supported: run that command by itself and write its \
    result out, or use a pipe; in single quotes `$` is just a character";
pub(super) const VARIABLE: &str = "variables (`$name`) are not supported: write the value out; in single quotes `$` is \
    just a character";
pub(super) const DOLLAR_QUOTES: &str =
    "`$'…'` and `$\"…\"` are not supported: use plain quotes, which may hold new lines";
pub(super) const BRACES: &str = "brace expansion (`{a,b}`) is not supported: write the words out, or quote the braces to \
    have the characters; for file names use `*`, `?` and `[…]`, or `find -name A -o -name B`";

pub(super) fn open_quote(quote: char) -> String {
    format!("the quote {quote} that opens here is not closed")
}

pub(super) fn parenthesis(after_word: bool) -> String {
    if after_word {
        return "functions (`name()`) are not supported; quote or escape parentheses to have the characters"
            .to_owned();
    }
    "subshells (`(…)`) are not supported: separate commands with `;`, `&&` or `||`; quote or escape parentheses to \
     have the characters, as in `find \\( … \\)`"
        .to_owned()
}

/// Why this word cannot be a command name, if so.
pub(super) fn of_command(word: &Word) -> Option<String> {
    if word.assigns {
        return Some(format!(
            "assignments (`{}=`) are not supported, there are no variables: write the value out where it is used",
            word.text.split('=').next().unwrap_or_default()
        ));
    }
    if !word.bare {
        return None;
    }
    let why = match word.text.as_str() {
        "for" | "while" | "until" | "select" | "do" | "done" => {
            "loops are not supported: commands take many files and globs, and `grep -r` and `find` walk folders"
        }
        "if" | "then" | "elif" | "else" | "fi" | "case" | "esac" => {
            "conditions are not supported: use `&&` and `||`, as in `grep -q WORD FILE && cat FILE`"
        }
        "[[" | "[" | "test" => {
            "tests are not supported: use `ls PATH`, `stat PATH` or `grep -q WORD FILE` with `&&` and `||`"
        }
        "function" => "functions are not supported: write the commands out",
        "{" | "}" => "groups (`{ …; }`) are not supported: separate commands with `;`, `&&` or `||`",
        "time" | "coproc" => "job control is not supported: write the command by itself",
        _ => return None,
    };
    Some(format!("`{}`: {why}", word.text))
}
