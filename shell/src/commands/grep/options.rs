//! The options of a search.

use crate::args::{Arg, Args};
use crate::commands::Complaint;
use crate::commands::head::with_digit;
use crate::context::Halt;
use crate::glob::Glob;
use crate::meter::Meter;
use crate::pattern::Syntax;

/// The dialect of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Dialect {
    Grep,
    Rg,
}

impl Dialect {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Grep => "grep",
            Self::Rg => "rg",
        }
    }
}

/// Whether lines are prefixed with the file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Names {
    /// If there are several files.
    Several,
    Always,
    Never,
}

/// What is shown of matches. If several are requested, the last one in this order wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::commands) enum Show {
    Lines,
    Matches,
    Counts,
    Files { matching: bool },
    Nothing,
}

#[derive(Debug, Clone)]
pub(in crate::commands) struct Options {
    pub(in crate::commands) dialect: Dialect,
    pub(in crate::commands) syntax: Syntax,
    pub(in crate::commands) invert: bool,
    pub(in crate::commands) show: Show,
    pub(in crate::commands) names: Names,
    pub(in crate::commands) numbers: bool,
    pub(in crate::commands) most: Option<u64>,
    pub(in crate::commands) before: usize,
    pub(in crate::commands) after: usize,
    pub(in crate::commands) recursive: bool,
    pub(in crate::commands) silent: bool,
    pub(in crate::commands) binary_is_text: bool,
    pub(in crate::commands) skips_binary: bool,
    /// Includes hidden names in walks.
    pub(in crate::commands) hidden: bool,
    pub(in crate::commands) chosen: Chosen,
    /// `-E` and `-P`, which only affect hints.
    pub(in crate::commands) extended: bool,
    pub(in crate::commands) perl: bool,
}

impl Options {
    pub(in crate::commands) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            syntax: Syntax::default(),
            invert: false,
            show: Show::Lines,
            names: Names::Several,
            numbers: false,
            most: None,
            before: 0,
            after: 0,
            recursive: false,
            silent: false,
            binary_is_text: false,
            skips_binary: false,
            hidden: dialect == Dialect::Grep,
            chosen: Chosen::default(),
            extended: false,
            perl: false,
        }
    }

    pub(in crate::commands) fn show(&mut self, show: Show) {
        let both_list = matches!((self.show, show), (Show::Files { .. }, Show::Files { .. }));
        self.show = if both_list { show } else { self.show.max(show) };
    }

    /// Parses an option that both dialects have; returns whether it was one.
    pub(in crate::commands) fn common<'a>(
        &mut self,
        arg: Arg<'a>,
        args: &mut Args<'a>,
        patterns: &mut Vec<String>,
        digits: &mut Option<u64>,
    ) -> Result<bool, Complaint> {
        const LENGTH: &str = "context length argument";
        match arg {
            Arg::Short('i' | 'y') | Arg::Long("ignore-case") => self.syntax.ignore_case = true,
            Arg::Long("no-ignore-case" | "case-sensitive") => self.syntax.ignore_case = false,
            Arg::Short('n') | Arg::Long("line-number") => self.numbers = true,
            Arg::Short('l') | Arg::Long("files-with-matches") => self.show(Show::Files { matching: true }),
            Arg::Short('F') | Arg::Long("fixed-strings") => self.syntax.fixed = true,
            Arg::Short('v') | Arg::Long("invert-match") => self.invert = true,
            Arg::Short('w') | Arg::Long("word-regexp") => self.syntax.words = true,
            Arg::Short('x') | Arg::Long("line-regexp") => self.syntax.lines = true,
            Arg::Short('c') | Arg::Long("count") => self.show(Show::Counts),
            Arg::Short('o') | Arg::Long("only-matching") => self.show(Show::Matches),
            Arg::Short('q') | Arg::Long("quiet" | "silent") => self.show(Show::Nothing),
            Arg::Short('a') | Arg::Long("text") => self.binary_is_text = true,
            Arg::Short('H') | Arg::Long("with-filename") => self.names = Names::Always,
            Arg::Short('m') | Arg::Long("max-count") => self.most = Some(args.number("max count")?),
            Arg::Short('A') | Arg::Long("after-context") => self.after = lines(args.number(LENGTH)?),
            Arg::Short('B') | Arg::Long("before-context") => self.before = lines(args.number(LENGTH)?),
            Arg::Short('C') | Arg::Long("context") => {
                self.before = lines(args.number(LENGTH)?);
                self.after = self.before;
            }
            Arg::Short(digit @ '0'..='9') if self.dialect == Dialect::Grep => {
                let count = with_digit(*digits, digit);
                *digits = Some(count);
                (self.before, self.after) = (lines(count), lines(count));
            }
            Arg::Short('e') | Arg::Long("regexp") => patterns.push(args.value()?.to_owned()),
            Arg::Long("color" | "colour") => {
                args.glued();
            }
            Arg::Short(_) | Arg::Long(_) | Arg::Operand(_) => return Ok(false),
        }
        Ok(true)
    }

    pub(super) fn piped_name(&self) -> &'static str {
        match self.dialect {
            Dialect::Grep => "(standard input)",
            Dialect::Rg => "<stdin>",
        }
    }

    /// Whether lines are prefixed with the file name for that many operands.
    pub(super) fn names_all(&self, operands: usize) -> bool {
        match self.names {
            Names::Always => true,
            Names::Never => false,
            Names::Several => operands > 1,
        }
    }
}

fn lines(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Which files of a folder are searched.
#[derive(Debug, Clone, Default)]
pub(in crate::commands) struct Chosen {
    /// If there are any, a file must match one.
    includes: Vec<Rule>,
    excludes: Vec<Rule>,
    folder_excludes: Vec<Rule>,
}

/// A glob for a name, or for a whole path if it contains a slash.
#[derive(Debug, Clone)]
struct Rule {
    glob: Glob,
    whole: bool,
}

impl Rule {
    fn new(text: &str) -> Result<Self, String> {
        let anchored = text.trim_start_matches("./").trim_start_matches('/');
        // A double star matches any number of folders, including none.
        let plain = anchored.strip_prefix("**/").unwrap_or(anchored);
        let whole = plain.contains('/');
        let glob = if whole && anchored != plain { format!("*{plain}") } else { plain.to_owned() };
        Ok(Self { glob: Glob::new(&glob.replace("/**/", "/*"), false)?, whole })
    }

    fn matches(&self, folder: &str, name: &str, meter: &Meter<'_>) -> Result<bool, Halt> {
        if self.whole {
            let path = [folder, name].concat();
            return self.glob.matches(path.trim_start_matches("./").trim_start_matches('/'), meter);
        }
        self.glob.matches(name, meter)
    }

    fn any(rules: &[Self], folder: &str, name: &str, meter: &Meter<'_>) -> Result<bool, Halt> {
        for rule in rules {
            if rule.matches(folder, name, meter)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Chosen {
    pub(in crate::commands) fn include(&mut self, glob: &str) -> Result<(), String> {
        self.includes.push(Rule::new(glob)?);
        Ok(())
    }

    pub(in crate::commands) fn exclude(&mut self, glob: &str) -> Result<(), String> {
        self.excludes.push(Rule::new(glob)?);
        Ok(())
    }

    pub(in crate::commands) fn exclude_folder(&mut self, glob: &str) -> Result<(), String> {
        self.folder_excludes.push(Rule::new(glob.trim_end_matches('/'))?);
        Ok(())
    }

    /// Whether a file is searched; its path is given in two parts, of which the second is the name.
    pub(in crate::commands) fn takes_file(
        &self,
        folder: &str,
        name: &str,
        meter: &Meter<'_>,
    ) -> Result<bool, Halt> {
        let included = self.includes.is_empty() || Rule::any(&self.includes, folder, name, meter)?;
        Ok(included && !Rule::any(&self.excludes, folder, name, meter)?)
    }

    /// The same for a folder.
    pub(in crate::commands) fn takes_folder(
        &self,
        folder: &str,
        name: &str,
        meter: &Meter<'_>,
    ) -> Result<bool, Halt> {
        Ok(!Rule::any(&self.folder_excludes, folder, name, meter)?)
    }
}
