//! Preprocessing of environment variables for all options alike: an empty variable counts as unset, and a secret may be
//! stored in a file that the variable with the suffix `_FILE` names.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};

use anyhow::{Context as _, bail};
use clap::{Arg, Command, CommandFactory as _, FromArgMatches as _};
use zeroize::Zeroizing;

use super::{Cli, refusals};

/// The suffix of variables that name the file of a secret.
const FILE: &str = "_FILE";
/// The command that runs if none is given.
const DEFAULT: &str = "up";

/// Parses the command line and the environment. Exits the process if only help was requested.
pub(crate) fn read() -> anyhow::Result<super::Command> {
    let mut arguments: Vec<OsString> = env::args_os().collect();
    if arguments.len() <= 1 {
        arguments = ["cairn", DEFAULT].map(OsString::from).to_vec();
    }
    let mut environment = Environment::new(of_process);
    let command = environment.prepare(Cli::command(), arguments.get(1..).unwrap_or_default());
    let matches = match command.clone().try_get_matches_from(&arguments) {
        Ok(matches) => matches,
        Err(error) if error.use_stderr() && is_check(&arguments) => {
            let wrong = refusals::all(&command, &arguments, &error);
            let all: Vec<String> =
                wrong.iter().chain(environment.problems()).map(|line| format!("\nwrong: {line}")).collect();
            bail!("the configuration cannot be read{}", all.concat());
        }
        Err(error) => error.exit(),
    };
    // After parsing, since only the parser knows whether only help was requested.
    environment.check()?;
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    cli.command.context("say what to do; `cairn --help` lists it")
}

fn of_process(variable: &OsStr) -> Option<OsString> {
    env::var_os(variable)
}

/// Whether it is `cairn config check`, which reports every problem itself.
fn is_check(arguments: &[OsString]) -> bool {
    arguments.iter().skip(1).take(2).eq(["config", "check"].iter())
}

/// Environment variables and the problems found in them.
pub(crate) struct Environment<F> {
    variable: F,
    problems: Vec<String>,
}

impl<F: Fn(&OsStr) -> Option<OsString>> Environment<F> {
    /// An environment whose variables are looked up with that function.
    pub(crate) fn new(variable: F) -> Self {
        Self { variable, problems: Vec::new() }
    }

    /// The command with its variables resolved. Only the commands that the words name are considered: `cairn health`
    /// needs no secret of a service.
    pub(crate) fn prepare(&mut self, command: Command, words: &[OsString]) -> Command {
        let declared: BTreeSet<OsString> =
            command.get_arguments().filter_map(Arg::get_env).map(OsStr::to_owned).collect();
        let command = command.mut_args(|argument| self.told(argument, &declared));
        let Some((word, rest)) = words.split_first() else { return command };
        let Some(below) = command.find_subcommand(word).map(|below| below.get_name().to_owned()) else {
            return command;
        };
        command.mut_subcommand(below, |below| self.prepare(below, rest))
    }

    /// Every problem, by the name of the variable.
    pub(crate) fn problems(&self) -> &[String] {
        &self.problems
    }

    /// # Errors
    /// When something is wrong.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if self.problems.is_empty() {
            return Ok(());
        }
        bail!("{}", self.problems.join("; "))
    }

    fn told(&mut self, argument: Arg, declared: &BTreeSet<OsString>) -> Arg {
        let Some(name) = argument.get_env().map(OsStr::to_owned) else { return argument };
        let is_set = self.value(&name).is_some();
        // An empty variable, as a compose file passes one that is not set.
        let is_blank = !is_set && (self.variable)(&name).is_some();
        let argument = if is_blank { argument.env(None::<&'static str>) } else { argument };
        if !argument.is_hide_env_values_set() {
            return argument;
        }
        let file_variable = OsString::from(format!("{}{FILE}", name.to_string_lossy()));
        // An option may have this name itself.
        let Some(path) = self.value(&file_variable).filter(|_| !declared.contains(&file_variable)) else {
            return argument;
        };
        let (name, file_variable) = (name.to_string_lossy(), file_variable.to_string_lossy());
        if is_set {
            self.problems.push(format!("{name} and {file_variable} are both set; keep one of them"));
            return argument;
        }
        match fs_err::read_to_string(path).map(Zeroizing::new) {
            // Editors end the last line with a line break.
            Ok(text) => {
                let secret = text.trim_end_matches(['\r', '\n']);
                if secret.trim().is_empty() {
                    self.problems.push(format!("{file_variable} names a file with nothing in it"));
                    return argument;
                }
                argument.default_value(OsString::from(secret)).hide_default_value(true)
            }
            Err(error) => {
                self.problems.push(format!("{file_variable}: {error}"));
                argument
            }
        }
    }

    /// The value of a variable, unless it is empty.
    fn value(&self, name: &OsStr) -> Option<OsString> {
        (self.variable)(name).filter(|value| !value.to_string_lossy().trim().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::cli::{Command as Chosen, ServeOptions};

    /// The options of `cairn serve` with these variables set and nothing else from the environment of the test run.
    fn serve(variables: &[(&str, &str)], words: &[&str]) -> Result<ServeOptions, String> {
        let set: HashMap<&str, &str> = variables.iter().copied().collect();
        let variable = |name: &OsStr| set.get(name.to_str()?).map(OsString::from);
        let arguments: Vec<OsString> =
            ["cairn", "serve", "auth"].iter().chain(words).map(OsString::from).collect();
        let mut environment = Environment::new(variable);
        let command = environment.prepare(Cli::command(), &arguments[1..]);
        let matches = command.try_get_matches_from(arguments).map_err(|error| error.to_string())?;
        environment.check().map_err(|error| error.to_string())?;
        match Cli::from_arg_matches(&matches).unwrap().command {
            Some(Chosen::Serve(options)) => Ok(*options),
            other => panic!("{other:?}"),
        }
    }

    fn file(text: &str) -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        std::fs::write(&path, text).unwrap();
        let path = path.display().to_string();
        (folder, path)
    }

    #[test]
    fn a_secret_is_read_from_its_file() {
        let (_folder, path) = file("from a file, with = and spaces \n");
        let read = serve(&[("CAIRN_MESH_SECRET_FILE", &path)], &[]).unwrap();
        assert_eq!(read.mesh_secret, "from a file, with = and spaces ");
        let said = serve(&[("CAIRN_MESH_SECRET_FILE", &path)], &["--mesh-secret", "said"]).unwrap();
        assert_eq!(said.mesh_secret, "said", "the command line comes first");
        let none = serve(&[("CAIRN_MESH_SECRET_FILE", " ")], &[]).unwrap();
        assert_eq!(none.mesh_secret, "");
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_by_its_variable() {
        let (_folder, path) = file("s3cret");
        let (_other, empty) = file("\n");
        for (variables, told) in [
            (vec![("CAIRN_MESH_SECRET_FILE", path.as_str()), ("CAIRN_MESH_SECRET", "x")], "both set"),
            (vec![("CAIRN_SECRET_KEY_FILE", "/nowhere/key")], "CAIRN_SECRET_KEY_FILE"),
            (vec![("CAIRN_SMTP_URL_FILE", empty.as_str())], "nothing in it"),
        ] {
            let refusal = serve(&variables, &[]).err().unwrap();
            assert!(refusal.contains(told) && !refusal.contains("s3cret"), "{refusal}");
        }
    }

    #[test]
    fn only_the_command_that_runs_needs_its_files() {
        let variable = |name: &OsStr| (name == "CAIRN_MESH_SECRET_FILE").then(|| OsString::from("/nowhere"));
        let mut environment = Environment::new(variable);
        let _health = environment.prepare(Cli::command(), &["health".into()]);
        assert!(environment.problems().is_empty());
        let _serve = environment.prepare(Cli::command(), &["serve".into(), "content".into()]);
        assert_eq!(environment.problems().len(), 1);
    }

    /// The parser repeats values that it cannot parse: an option that holds a secret must be a plain string.
    #[test]
    fn every_secret_is_a_text_and_may_stand_in_a_file() {
        let mut waiting: Vec<Command> = vec![Cli::command()];
        let mut seen = BTreeSet::new();
        while let Some(command) = waiting.pop() {
            for argument in command.get_arguments().filter(|argument| argument.is_hide_env_values_set()) {
                let (name, long) = (argument.get_env().unwrap().to_owned(), argument.get_long().unwrap());
                let alone = Command::new("cairn").arg(
                    Arg::new("x").long(long.to_owned()).value_parser(argument.get_value_parser().clone()),
                );
                assert!(
                    alone.try_get_matches_from(["cairn", &format!("--{long}"), "any text: %"]).is_ok(),
                    "{long}"
                );
                seen.insert(name.to_string_lossy().into_owned());
            }
            waiting.extend(command.get_subcommands().cloned());
        }
        for secret in [
            "CAIRN_BOOTSTRAP_PASSWORD",
            "CAIRN_BOOTSTRAP_TOKEN",
            "CAIRN_DATABASE_URL",
            "CAIRN_EMBEDDER_KEY",
            "CAIRN_MESH_SECRET",
            "CAIRN_OIDC_CLIENT_SECRET",
            "CAIRN_QDRANT_API_KEY",
            "CAIRN_REDIS_URL",
            "CAIRN_RERANKER_KEY",
            "CAIRN_SECRET_KEY",
            "CAIRN_SMTP_URL",
            "CAIRN_TOKEN",
        ] {
            assert!(seen.contains(secret), "{secret} is not hidden");
        }
    }
}
