//! Options and operands with the semantics of `getopt_long`: combined letters, attached or separate values,
//! `--name=value`, `--`, and options after operands.

use crate::commands::Complaint;
use crate::context::Status;

/// The next argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arg<'a> {
    /// `-x`
    Short(char),
    /// `--name`
    Long(&'a str),
    Operand(&'a str),
}

/// Parses the arguments of one command.
pub(crate) struct Args<'a> {
    command: &'static str,
    /// The exit status on a usage error.
    status: Status,
    rest: std::slice::Iter<'a, String>,
    /// The remaining letters of a combined option.
    letters: &'a str,
    /// The attached value of the last long option.
    glued: Option<&'a str>,
    only_operands: bool,
    last: Arg<'a>,
}

impl<'a> Args<'a> {
    pub(crate) fn new(command: &'static str, status: Status, args: &'a [String]) -> Self {
        Self {
            command,
            status,
            rest: args.iter(),
            letters: "",
            glued: None,
            only_operands: false,
            last: Arg::Operand(""),
        }
    }

    /// The next argument.
    pub(crate) fn next(&mut self) -> Result<Option<Arg<'a>>, Complaint> {
        if let Some(glued) = self.glued.take() {
            return Err(self.complain(&format!("this option takes no value, but got `{glued}`")));
        }
        let arg = self.read();
        if let Some(arg) = arg {
            self.last = arg;
        }
        Ok(arg)
    }

    fn read(&mut self) -> Option<Arg<'a>> {
        let mut letters = self.letters.chars();
        if let Some(letter) = letters.next() {
            self.letters = letters.as_str();
            return Some(Arg::Short(letter));
        }
        let text = self.rest.next()?.as_str();
        if self.only_operands || text == "-" {
            return Some(Arg::Operand(text));
        }
        if text == "--" {
            self.only_operands = true;
            return self.rest.next().map(|text| Arg::Operand(text));
        }
        if let Some(long) = text.strip_prefix("--") {
            let (name, glued) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            self.glued = glued;
            return Some(Arg::Long(name));
        }
        match text.strip_prefix('-') {
            Some(cluster) => {
                self.letters = cluster;
                self.read()
            }
            None => Some(Arg::Operand(text)),
        }
    }

    /// The value of the last option.
    pub(crate) fn value(&mut self) -> Result<&'a str, Complaint> {
        if let Some(glued) = self.glued.take() {
            return Ok(glued);
        }
        if !self.letters.is_empty() {
            return Ok(std::mem::take(&mut self.letters));
        }
        match self.rest.next() {
            Some(value) => Ok(value),
            None => Err(Complaint::new(
                self.status,
                match self.last {
                    Arg::Short(letter) => {
                        format!("{}: option requires an argument -- '{letter}'", self.command)
                    }
                    Arg::Long(name) => format!("{}: option '--{name}' requires an argument", self.command),
                    Arg::Operand(_) => format!("{}: a value is missing", self.command),
                },
            )),
        }
    }

    /// The attached value of a long option, if any.
    pub(crate) fn glued(&mut self) -> Option<&'a str> {
        self.glued.take()
    }

    /// The value of the last option as a number.
    pub(crate) fn number(&mut self, what: &str) -> Result<u64, Complaint> {
        let text = self.value()?;
        text.parse().map_err(|_| self.invalid(what, text))
    }

    /// An error about a value.
    pub(crate) fn invalid(&self, what: &str, text: &str) -> Complaint {
        self.complain(&format!("invalid {what}: '{text}'"))
    }

    /// An error about the last option.
    pub(crate) fn unknown(&self) -> Complaint {
        match self.last {
            Arg::Short(letter) => self.complain(&format!("invalid option -- '{letter}'")),
            Arg::Long(name) => self.complain(&format!("unrecognized option '--{name}'")),
            Arg::Operand(text) => self.complain(&format!("extra operand '{text}'")),
        }
    }

    /// A usage error.
    pub(crate) fn complain(&self, text: &str) -> Complaint {
        let name = self.command;
        Complaint::new(self.status, format!("{name}: {text}\nTry 'help {name}' for what it takes."))
    }
}
