//! Collects every option that cannot be parsed; the parser itself stops at the first one.

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};

/// Bounds the loop; nobody gets more options wrong at once.
const MAX_ERRORS: usize = 100;

/// Every error in the options of a command, one line each, given the first error of parsing its arguments.
pub(super) fn all(command: &Command, arguments: &[OsString], first: &Error) -> Vec<String> {
    let mut found = of_environment(command, arguments);
    found.extend(of_arguments(&without_environment(command, arguments), arguments));
    if found.is_empty() {
        // Each option is valid on its own, so the error is about their combination.
        found.push(line(first));
    }
    found
}

/// The subcommand that the arguments name, with its variables changed by `change`.
fn changed(command: &Command, words: &[OsString], change: &dyn Fn(Arg) -> Arg) -> Command {
    let command = command.clone().mut_args(change);
    let Some((word, rest)) = words.split_first() else { return command };
    let Some(below) = command.find_subcommand(word).cloned() else { return command };
    let name = below.get_name().to_owned();
    command.mut_subcommand(name, |_| changed(&below, rest, change))
}

fn without_environment(command: &Command, arguments: &[OsString]) -> Command {
    changed(command, arguments.get(1..).unwrap_or_default(), &|argument| argument.env(None::<&'static str>))
}

/// Parses each variable alone, with an otherwise empty command line.
fn of_environment(command: &Command, arguments: &[OsString]) -> Vec<String> {
    let words = named(command, arguments);
    let mut leaf = command;
    for word in words.iter().skip(1) {
        leaf = leaf.find_subcommand(word).unwrap_or(leaf);
    }
    let variables: Vec<OsString> =
        leaf.get_arguments().filter_map(Arg::get_env).map(OsStr::to_owned).collect();
    let mut found = Vec::new();
    for variable in variables {
        let keep = |argument: Arg| {
            if argument.get_env() == Some(variable.as_os_str()) {
                argument
            } else {
                argument.env(None::<&'static str>)
            }
        };
        let alone = changed(command, words.get(1..).unwrap_or_default(), &keep);
        if let Err(error) = alone.try_get_matches_from(&words)
            && is_of_a_value(error.kind())
        {
            found.push(format!("{}: {}", variable.to_string_lossy(), line(&error)));
        }
    }
    found
}

/// The words that name the command, without its options.
fn named(command: &Command, arguments: &[OsString]) -> Vec<OsString> {
    let mut words: Vec<OsString> = arguments.first().cloned().into_iter().collect();
    let mut below = command;
    for word in arguments.iter().skip(1) {
        let Some(found) = below.find_subcommand(word) else { break };
        words.push(word.clone());
        below = found;
    }
    words
}

/// Parses the arguments repeatedly, each time without the options that already failed.
fn of_arguments(command: &Command, arguments: &[OsString]) -> Vec<String> {
    let mut left = arguments.to_vec();
    let mut found = Vec::new();
    while found.len() < MAX_ERRORS {
        let Err(error) = command.clone().try_get_matches_from(&left) else { break };
        if !is_of_a_value(error.kind()) && error.kind() != ErrorKind::UnknownArgument {
            break;
        }
        found.push(line(&error));
        if !remove(&mut left, &error) {
            break;
        }
    }
    found
}

fn is_of_a_value(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::InvalidValue | ErrorKind::ValueValidation | ErrorKind::InvalidUtf8)
}

/// Removes the option that an error is about, with its value; returns whether it was there.
fn remove(arguments: &mut Vec<OsString>, error: &Error) -> bool {
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else { return false };
    let Some(option) = shown.split_whitespace().next() else { return false };
    let begins = format!("{option}=");
    let is_it = |argument: &OsString| {
        argument.to_str().is_some_and(|argument| argument == option || argument.starts_with(&begins))
    };
    let Some(place) = arguments.iter().position(is_it) else { return false };
    let removed = arguments.remove(place);
    let value = arguments.get(place).and_then(|next| next.to_str());
    if removed == *option && value.is_some_and(|value| !value.starts_with('-')) {
        arguments.remove(place);
    }
    true
}

/// The message of an error, without the parser's hints.
fn line(error: &Error) -> String {
    let text = error.to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let joined = first.split_whitespace().collect::<Vec<_>>().join(" ");
    joined.strip_prefix("error: ").map_or_else(|| joined.clone(), ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    fn told(words: &[&str]) -> Vec<String> {
        let arguments: Vec<OsString> =
            ["cairn", "config", "check"].iter().chain(words).map(OsString::from).collect();
        let error = Cli::command().try_get_matches_from(&arguments).unwrap_err();
        all(&Cli::command(), &arguments, &error)
    }

    #[test]
    fn every_option_that_cannot_be_read_is_named() {
        let wrong = told(&[
            "up",
            "--listen",
            "nowhere",
            "--embedder-batch=many",
            "--no-such",
            "--quiet",
            "--plan-changes",
            "me",
        ]);
        assert_eq!(wrong.len(), 4, "{wrong:#?}");
        for option in ["--listen", "--embedder-batch", "--no-such", "--plan-changes"] {
            assert!(wrong.iter().any(|line| line.contains(option)), "{option}: {wrong:#?}");
        }
        assert!(!wrong.concat().contains('\n') && !wrong.concat().contains("--help"), "{wrong:#?}");
    }

    #[test]
    fn what_goes_together_is_told_when_each_is_well() {
        let wrong = told(&["serve", "content", "--tls-cert", "x.pem"]);
        assert_eq!(wrong.len(), 1, "{wrong:#?}");
        assert!(wrong[0].contains("--tls-key"), "{wrong:#?}");
        assert!(told(&["serve"])[0].contains("SERVICE"), "{:#?}", told(&["serve"]));
    }
}
