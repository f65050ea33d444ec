//! Parses scripts: the grammar of `docs/SHELL.md`; other features of a shell are rejected by name.
//!
//! A script is parsed completely before it runs. The result is flat, so that no script can cause deep recursion.

mod lexer;
mod refusal;
#[cfg(test)]
mod tests;

use lexer::{Lexer, Token};

/// A script: a sequence of steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) steps: Vec<Step>,
}

/// A pipeline with its condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) joint: Joint,
    /// Preceded by `!`: its status is inverted.
    pub(crate) negated: bool,
    pub(crate) stages: Vec<Stage>,
}

/// The operator between a step and the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joint {
    /// `;` or a new line.
    Always,
    /// `&&`
    Success,
    /// `||`
    Failure,
}

/// A command of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stage {
    pub(crate) words: Vec<Word>,
    pub(crate) complaints: Complaints,
}

/// The destination of a command's error messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Complaints {
    /// The output of the script.
    Shown,
    /// `2>/dev/null`
    Dropped,
    /// `2>&1`: the next command, as output.
    Merged,
}

/// A word after quote removal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    /// The word as a glob, in which quoted characters are escaped, if it has an unquoted wildcard.
    pub(crate) glob: Option<String>,
    /// Whether no part of it was quoted or escaped.
    pub(crate) bare: bool,
    /// Whether it would be an assignment in command position.
    pub(crate) assigns: bool,
}

/// Why a script is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) line: usize,
    pub(crate) why: String,
}

/// Parses a script.
pub(crate) fn parse(script: &str) -> Result<Script, Refused> {
    let mut parser = Parser { lexer: Lexer::new(script), steps: Vec::new() };
    parser.script()?;
    Ok(Script { steps: parser.steps })
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    steps: Vec<Step>,
}

impl Parser<'_> {
    fn script(&mut self) -> Result<(), Refused> {
        let mut joint = Joint::Always;
        let mut token = self.lexer.next_command()?;
        while token != Token::End {
            let (step, after) = self.step(joint, token)?;
            self.steps.push(step);
            (joint, token) = match after {
                Token::End => return Ok(()),
                Token::Both => (Joint::Success, self.expect_command(&after)?),
                Token::Either => (Joint::Failure, self.expect_command(&after)?),
                Token::Word(_) | Token::Pipe | Token::Semicolon | Token::Line | Token::Complaints(_) => {
                    (Joint::Always, self.lexer.next_command()?)
                }
            };
        }
        Ok(())
    }

    /// Parses the pipeline that begins with this token; returns it with the token after it.
    fn step(&mut self, joint: Joint, first: Token) -> Result<(Step, Token), Refused> {
        let mut step = Step { joint, negated: false, stages: Vec::new() };
        let mut token = first;
        while matches!(&token, Token::Word(word) if word.bare && word.text == "!") {
            step.negated = !step.negated;
            token = self.lexer.next()?;
        }
        loop {
            let (stage, after) = self.stage(token)?;
            step.stages.push(stage);
            if after != Token::Pipe {
                return Ok((step, after));
            }
            token = self.expect_command(&after)?;
        }
    }

    /// Parses the command that begins with this token; returns it with the token after it.
    fn stage(&mut self, first: Token) -> Result<(Stage, Token), Refused> {
        let mut stage = Stage { words: Vec::new(), complaints: Complaints::Shown };
        let mut token = first;
        loop {
            token = match token {
                Token::Word(word) => {
                    if stage.words.is_empty() {
                        refusal::of_command(&word).map_or(Ok(()), |why| Err(self.lexer.refuse(why)))?;
                    }
                    stage.words.push(word);
                    self.lexer.next()?
                }
                Token::Complaints(complaints) => {
                    stage.complaints = complaints;
                    self.lexer.next()?
                }
                Token::Pipe | Token::Semicolon | Token::Line | Token::Both | Token::Either | Token::End => {
                    return if stage.words.is_empty() {
                        Err(self.unexpected(&token))
                    } else {
                        Ok((stage, token))
                    };
                }
            };
        }
    }

    fn expect_command(&mut self, after: &Token) -> Result<Token, Refused> {
        let token = self.lexer.next_command()?;
        if token == Token::End {
            return Err(self.lexer.refuse(format!("a command is missing after `{after}`")));
        }
        Ok(token)
    }

    fn unexpected(&self, token: &Token) -> Refused {
        self.lexer.refuse(match token {
            Token::End | Token::Line => "a command is missing".to_owned(),
            Token::Word(_)
            | Token::Pipe
            | Token::Semicolon
            | Token::Both
            | Token::Either
            | Token::Complaints(_) => format!("syntax error near `{token}`: a command is missing before it"),
        })
    }
}
