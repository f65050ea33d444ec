//! `help`

use super::{COMMANDS, Call, Command, Program, Started, elsewhere, writer};
use crate::context::DONE;

pub(super) const COMMAND: Command = Command {
    name: "help",
    usage: "help [COMMAND]",
    about: "what there is, or what a command takes",
    details: "",
    start,
};

const INTRODUCTION: &str = "A read-only shell over this workspace. /README.md tells what is in it.\n\n";

const GRAMMAR: &str = "\nPipes (|), lists (; && ||), quotes, globs (* ? [...]) and # comments work as in bash.\n\
    2>/dev/null and 2>&1 are understood. There are no variables, substitutions, loops, other redirections or jobs,\n\
    and nothing can be written. grep and rg take RE2 patterns; -F takes the text as it is.\n\
    `help COMMAND` or `COMMAND --help` tells what a command takes.\n";

fn start(call: &Call<'_>) -> Started {
    let Some(name) = call.args.first() else {
        return writer(|_, out| {
            out.text(INTRODUCTION);
            for command in COMMANDS {
                out.text(format!("  {:<9} {}\n", command.name, command.about));
                out.flow()?;
            }
            out.text(GRAMMAR);
            Ok(DONE)
        });
    };
    match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => about(command),
        None => Err(elsewhere::complain(name, &[])),
    }
}

/// The usage of a command.
pub(super) fn about(command: &'static Command) -> Started {
    let started: Box<dyn Program> = writer(move |_, out| {
        out.text(format!(
            "usage: {}\n{}: {}\n{}",
            command.usage, command.name, command.about, command.details
        ));
        Ok(DONE)
    })?;
    Ok(started)
}
