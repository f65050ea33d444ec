//! Common commands that this shell lacks, and what to use instead.

use super::{COMMANDS, Complaint};
use crate::context::Status;

/// The statuses of other shells: not found, and not executable.
const NOT_FOUND: Status = 127;
const NOT_ALLOWED: Status = 126;

/// The message about a command that does not exist here.
pub(super) fn complain(name: &str, args: &[String]) -> Complaint {
    if let Some(instead) = writing(name) {
        return Complaint::new(
            NOT_ALLOWED,
            format!("{name}: nothing can be written here, the tree is read-only: {instead}"),
        );
    }
    if let Some(instead) = reading(name, args) {
        return Complaint::new(NOT_FOUND, format!("{name}: command not found here: {instead}"));
    }
    let nearest = COMMANDS
        .iter()
        .map(|command| (strsim::damerau_levenshtein(command.name, name), command.name))
        .min()
        .filter(|(distance, known)| *distance <= 1 + known.len() / 4 && name.len() < 32);
    let advice = match nearest {
        Some((_, known)) => format!("did you mean `{known}`? `help` lists what there is"),
        None => "`help` lists what there is".to_owned(),
    };
    Complaint::new(NOT_FOUND, format!("{name}: command not found: {advice}"))
}

fn writing(name: &str) -> Option<&'static str> {
    Some(match name {
        "rm" | "rmdir" | "mv" | "cp" | "mkdir" | "touch" | "ln" | "unlink" | "truncate" | "install"
        | "rsync" | "dd" => "use the API or the tools that create, move and delete files and folders",
        "tee" => "let the output be printed",
        "chmod" | "chown" | "chgrp" | "umask" => "who may see what is decided by tokens and their folders",
        "ed" | "vi" | "vim" | "nano" | "emacs" | "patch" => {
            "read with cat, and use the API or the tools that edit files"
        }
        "tar" | "zip" | "unzip" | "gzip" | "gunzip" => "read files as they are with cat",
        _ => return None,
    })
}

fn reading(name: &str, args: &[String]) -> Option<String> {
    Some(match name {
        "sed" => return Some(sed(args)),
        "awk" | "gawk" | "mawk" => {
            "for columns use `cut -d CHAR -f LIST`, for lines `grep`, `head` and `tail`".to_owned()
        }
        "xargs" => {
            "use `grep -r --include GLOB PATTERN`, or give the command a glob such as `cat /files/*.md`"
                .to_owned()
        }
        "less" | "more" | "bat" | "view" => {
            "use `cat FILE`, `head -n N FILE`, or `tail -n +N FILE | head -n M`".to_owned()
        }
        "nl" => "use `cat -n FILE`".to_owned(),
        "tac" | "rev" | "tr" | "fold" | "fmt" | "paste" | "column" | "join" | "expand" => {
            "text is not rewritten here: print it with cat, choose from it with grep, cut, sort and uniq"
                .to_owned()
        }
        "diff" | "cmp" | "comm" => "print both files with `cat -n` and compare".to_owned(),
        "printf" => "use `echo`, or `echo -n`".to_owned(),
        "dir" | "vdir" | "ll" | "la" | "l" => "use `ls -l` or `ls -la`".to_owned(),
        "fd" | "fdfind" | "locate" => "use `find PATH -name GLOB`".to_owned(),
        "ag" | "ack" | "zgrep" | "pgrep" => "use `grep -rn PATTERN PATH` or `rg PATTERN`".to_owned(),
        "file" | "du" | "md5sum" | "sha1sum" | "sha256sum" | "realpath" | "readlink" | "df" => {
            "use `stat PATH`, `ls -l PATH` or `wc -c FILE`".to_owned()
        }
        "man" | "info" | "apropos" | "whatis" => "use `help COMMAND`".to_owned(),
        "which" | "type" | "command" | "whereis" => "`help` lists what there is".to_owned(),
        "test" | "[" => "use `ls PATH`, `stat PATH` or `grep -q WORD FILE` with `&&` and `||`".to_owned(),
        "export" | "unset" | "local" | "declare" | "readonly" | "set" | "read" | "env" | "printenv"
        | "alias" => "there are no variables and no aliases".to_owned(),
        "eval" | "exec" | "source" | "." | "bash" | "sh" | "zsh" | "sudo" | "su" | "nohup" | "timeout"
        | "watch" => "there is only this one shell: write the command by itself".to_owned(),
        "python" | "python3" | "node" | "perl" | "ruby" | "php" | "git" | "curl" | "wget" | "jq" | "yq"
        | "make" | "npm" | "cargo" | "ssh" | "psql" | "sqlite3" => {
            "no other programs are run here; `help` lists what there is".to_owned()
        }
        "exit" | "return" | "logout" | "wait" | "jobs" | "fg" | "bg" | "kill" | "sleep" | "ps" | "top"
        | "trap" => "there are no jobs and nothing to leave: a script ends with its last command".to_owned(),
        "pushd" | "popd" | "dirs" => "use `cd FOLDER` and `cd -`".to_owned(),
        "date" | "whoami" | "id" | "uname" | "hostname" | "history" | "clear" => {
            "this shell only reads the workspace's tree".to_owned()
        }
        _ => return None,
    })
}

/// `sed -n 'A,Bp' FILE` has an exact equivalent.
fn sed(args: &[String]) -> String {
    if args.iter().any(|arg| arg.starts_with("-i") || arg == "--in-place") {
        return "`sed -i` writes, and the tree is read-only: use the API or the tools that edit files"
            .to_owned();
    }
    let file =
        args.iter().rfind(|arg| arg.starts_with('/') || arg.contains('.')).map_or("FILE", String::as_str);
    for arg in args {
        let Some(range) = arg.strip_suffix('p') else { continue };
        let (first, last) = range.split_once(',').unwrap_or((range, range));
        if let (Ok(first), Ok(last)) = (first.parse::<u64>(), last.parse::<u64>()) {
            let count = last.saturating_sub(first).saturating_add(1);
            return format!("use `tail -n +{first} {file} | head -n {count}`");
        }
    }
    "to print lines use `tail -n +N FILE | head -n M`, to choose them `grep`; text is not rewritten here"
        .to_owned()
}
