//! Decides which scripts may run on the caller's thread.

use crate::parse::{self, Word};

/// Commands whose cost is proportional to what they read and print: none of them compiles a pattern, sorts, or is made
/// to walk far.
const BRIEF: &[&str] = &[
    "basename", "cat", "cd", "cut", "dirname", "echo", "false", "head", "help", "ls", "pwd", "stat", "tail",
    "true", "uniq", "wc",
];
const MAX_BYTES: usize = 512;
const MAX_COMMANDS: usize = 4;

/// Whether a script is likely to finish within microseconds, and checks its [`Watch`](crate::Watch) before every body
/// and after every few hundred nodes: a caller on an async thread can try it there, with a watch that soon cancels it,
/// and then run it elsewhere. Scripts have no side effects, so running twice is harmless.
pub fn is_brief(script: &str) -> bool {
    if script.len() > MAX_BYTES {
        return false;
    }
    let Ok(parsed) = parse::parse(script) else { return true };
    let commands: Vec<_> = parsed.steps.iter().flat_map(|step| &step.stages).collect();
    // A glob may be matched against many names before the next check.
    let has_no_glob = |word: &Word| word.glob.is_none();
    commands.len() <= MAX_COMMANDS
        && commands.iter().all(|command| {
            let name = command.words.first();
            command.words.iter().all(has_no_glob)
                && name.is_none_or(|name| BRIEF.contains(&name.text.as_str()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::COMMANDS;

    #[test]
    fn brief_commands_are_commands() {
        for name in BRIEF {
            assert!(COMMANDS.iter().any(|command| command.name == *name), "{name}");
        }
    }

    #[test]
    fn looking_is_brief_and_searching_is_not() {
        for script in ["cat /README.md", "cd /files && ls -l | head -5", "help grep", "", "c'a't x", "a ) b"]
        {
            assert!(is_brief(script), "{script}");
        }
        let long = format!("echo {}", "x".repeat(MAX_BYTES));
        for script in [
            "grep x /files/a",
            "cat a | sort",
            "find /",
            "ls *.md",
            "g* x",
            "nosuch",
            "pwd;pwd;pwd;pwd;pwd",
            &long,
        ] {
            assert!(!is_brief(script), "{script}");
        }
    }
}
