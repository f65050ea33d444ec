//! The expressions of `find`.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::slice::Iter;

use crate::context::{Context, Halt};
use crate::glob::Glob;
use crate::paths;
use crate::tree::{Kind, Node};

/// The maximum nesting of parentheses.
const MAX_NESTING: usize = 50;

/// The cost of a test.
const TEST_STEPS: u64 = 16;

const MICROS_PER_SECOND: i64 = 1_000_000;

/// The node that is tested.
pub(super) struct Visited<'a> {
    pub(super) ctx: &'a Context<'a>,
    pub(super) node: Node,
    pub(super) kind: Kind,
    /// In two parts, since most tests do not need the joined path.
    pub(super) path: [&'a str; 2],
    pub(super) name: &'a str,
}

/// The actions to perform.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// How many times to print it.
    pub(super) prints: u32,
    /// Whether to prune.
    pub(super) prunes: bool,
}

pub(super) struct Parsed {
    pub(super) expression: Expression,
    pub(super) least: usize,
    pub(super) most: usize,
}

#[derive(Debug)]
pub(super) enum Expression {
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Not(Box<Expression>),
    Test(Test),
}

#[derive(Debug)]
pub(super) enum Test {
    Name(Glob),
    Path(Glob),
    Kinds(Vec<Kind>),
    Size {
        ordering: Ordering,
        count: u64,
        unit: u64,
    },
    /// In microseconds.
    Newer(i64),
    Age {
        ordering: Ordering,
        count: i64,
        unit: i64,
    },
    Empty,
    Always(bool),
    Print,
    Prune,
}

impl Expression {
    /// A conjunction; a single part is not wrapped.
    fn of(mut parts: Vec<Self>, together: fn(Vec<Self>) -> Self) -> Self {
        match parts.pop() {
            Some(part) if parts.is_empty() => part,
            last => {
                parts.extend(last);
                together(parts)
            }
        }
    }

    pub(super) fn holds(&self, seen: &Visited<'_>, verdict: &mut Verdict) -> Result<bool, Halt> {
        let (parts, until) = match self {
            Self::All(parts) => (parts, false),
            Self::Any(parts) => (parts, true),
            Self::Not(part) => return Ok(!part.holds(seen, verdict)?),
            Self::Test(test) => return test.holds(seen, verdict),
        };
        for part in parts {
            if part.holds(seen, verdict)? == until {
                return Ok(until);
            }
        }
        Ok(!until)
    }
}

impl Test {
    fn holds(&self, seen: &Visited<'_>, verdict: &mut Verdict) -> Result<bool, Halt> {
        let (tree, meter) = (seen.ctx.tree, &seen.ctx.meter);
        meter.charge(TEST_STEPS)?;
        Ok(match self {
            Self::Name(glob) => glob.matches(seen.name, meter)?,
            Self::Path(glob) => glob.matches(&seen.path.concat(), meter)?,
            Self::Kinds(kinds) => kinds.contains(&seen.kind),
            Self::Size { ordering, count, unit } => {
                tree.size(seen.node).div_ceil(*unit).cmp(count) == *ordering
            }
            Self::Newer(than) => tree.modified(seen.node) > *than,
            Self::Age { ordering, count, unit } => {
                let age = seen.ctx.now.saturating_sub(tree.modified(seen.node)).div_euclid(*unit);
                age.cmp(count) == *ordering
            }
            Self::Empty => match seen.kind {
                Kind::Folder => tree.children(seen.node).is_empty(),
                Kind::File => tree.size(seen.node) == 0,
            },
            Self::Always(holds) => *holds,
            Self::Print => {
                verdict.prints += 1;
                true
            }
            Self::Prune => {
                verdict.prunes = true;
                true
            }
        })
    }
}

/// Parses an expression; without an action, matches are printed.
pub(super) fn parse(ctx: &Context<'_>, words: &[String]) -> Result<Parsed, String> {
    let mut parser =
        Parser { ctx, words: words.iter().peekable(), least: 0, most: usize::MAX, prints: false, depth: 0 };
    let mut expression = if words.is_empty() { Expression::All(Vec::new()) } else { parser.any()? };
    if let Some(word) = parser.words.next() {
        return Err(format!(
            "unexpected `{word}`: a `\\(` before it is missing, or a path after the expression"
        ));
    }
    if !parser.prints {
        expression = Expression::All(vec![expression, Expression::Test(Test::Print)]);
    }
    Ok(Parsed { expression, least: parser.least, most: parser.most })
}

struct Parser<'a> {
    ctx: &'a Context<'a>,
    words: Peekable<Iter<'a, String>>,
    least: usize,
    most: usize,
    prints: bool,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn any(&mut self) -> Result<Expression, String> {
        let mut parts = vec![self.all()?];
        while self.words.next_if(|word| matches!(word.as_str(), "-o" | "-or")).is_some() {
            parts.push(self.all()?);
        }
        Ok(Expression::of(parts, Expression::Any))
    }

    fn all(&mut self) -> Result<Expression, String> {
        let mut parts = vec![self.part()?];
        while let Some(word) = self.words.peek() {
            match word.as_str() {
                "-o" | "-or" | ")" => break,
                "-a" | "-and" => {
                    self.words.next();
                    parts.push(self.part()?);
                }
                _ => parts.push(self.part()?),
            }
        }
        Ok(Expression::of(parts, Expression::All))
    }

    fn part(&mut self) -> Result<Expression, String> {
        let mut negated = false;
        while self.words.next_if(|word| matches!(word.as_str(), "!" | "-not")).is_some() {
            negated = !negated;
        }
        let Some(word) = self.words.next() else { return Err("the expression ends too early".to_owned()) };
        let part = if word == "(" {
            self.depth += 1;
            if self.depth > MAX_NESTING {
                return Err(format!(
                    "parentheses nest more than {MAX_NESTING} deep: write a plainer expression"
                ));
            }
            let inner = self.any()?;
            if self.words.next().is_none_or(|word| word != ")") {
                return Err("a `\\)` is missing".to_owned());
            }
            self.depth -= 1;
            inner
        } else {
            Expression::Test(self.test(word)?)
        };
        Ok(if negated { Expression::Not(Box::new(part)) } else { part })
    }

    fn test(&mut self, name: &str) -> Result<Test, String> {
        Ok(match name {
            "-name" => Test::Name(self.glob(name, false)?),
            "-iname" => Test::Name(self.glob(name, true)?),
            "-path" | "-wholename" => Test::Path(self.glob(name, false)?),
            "-ipath" | "-iwholename" => Test::Path(self.glob(name, true)?),
            "-type" => Test::Kinds(kinds(self.value(name)?)?),
            "-maxdepth" => {
                self.most = self.depth_value(name)?;
                Test::Always(true)
            }
            "-mindepth" => {
                self.least = self.depth_value(name)?;
                Test::Always(true)
            }
            "-size" => size(self.value(name)?)?,
            "-newer" => {
                let path = self.value(name)?;
                let node = paths::resolve(self.ctx.tree, self.ctx.cwd(), path)
                    .map_err(|missing| format!("'{path}': {}", missing.text()))?;
                Test::Newer(self.ctx.tree.modified(node))
            }
            "-mtime" | "-ctime" => age(name, self.value(name)?, 86_400 * MICROS_PER_SECOND)?,
            "-mmin" | "-cmin" => age(name, self.value(name)?, 60 * MICROS_PER_SECOND)?,
            "-empty" => Test::Empty,
            "-true" | "-follow" | "-xdev" | "-mount" | "-noleaf" | "-readable" => Test::Always(true),
            "-false" | "-writable" | "-executable" => Test::Always(false),
            "-prune" => Test::Prune,
            "-print" => {
                self.prints = true;
                Test::Print
            }
            other => return Err(refused(other)),
        })
    }

    fn value(&mut self, name: &str) -> Result<&'a str, String> {
        self.words.next().map(String::as_str).ok_or_else(|| format!("missing argument to `{name}'"))
    }

    fn glob(&mut self, name: &str, folds: bool) -> Result<Glob, String> {
        Glob::new(self.value(name)?, folds).map_err(|why| format!("`{name}`: {why}"))
    }

    fn depth_value(&mut self, name: &str) -> Result<usize, String> {
        let text = self.value(name)?;
        text.parse().map_err(|_| format!("`{name}` takes a number, not `{text}`"))
    }
}

fn refused(name: &str) -> String {
    match name {
        "-exec" | "-execdir" | "-ok" | "-okdir" => {
            format!(
                "`{name}` runs other programs, which is not supported: use `grep -r --include GLOB`, or give a command a glob"
            )
        }
        "-delete" | "-fprint" | "-fprintf" | "-fls" => format!("`{name}` writes, and this tree is read-only"),
        "-regex" | "-iregex" => {
            format!("`{name}` is not supported: use -name or -path with a glob, or `find … | grep PATTERN`")
        }
        "-printf" | "-ls" | "-print0" => {
            format!("`{name}` is not supported: paths are printed one a line; `ls -l` and `stat` tell more")
        }
        _ if name.starts_with('-') => format!("unknown predicate `{name}`: see `help find`"),
        _ => format!("paths must precede expression: `{name}`; quote a glob, as in `-name '*.md'`"),
    }
}

fn kinds(text: &str) -> Result<Vec<Kind>, String> {
    let mut kinds = Vec::new();
    for letter in text.split(',') {
        match letter {
            "f" => kinds.push(Kind::File),
            "d" => kinds.push(Kind::Folder),
            // Types that do not exist here.
            "l" | "p" | "s" | "b" | "c" => {}
            _ => return Err(format!("unknown kind `{text}`: -type takes f (files) or d (folders)")),
        }
    }
    Ok(kinds)
}

/// The sign before a number: more than, less than, or exactly.
fn compared(text: &str) -> (Ordering, &str) {
    match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(more), _) => (Ordering::Greater, more),
        (_, Some(less)) => (Ordering::Less, less),
        _ => (Ordering::Equal, text),
    }
}

fn size(text: &str) -> Result<Test, String> {
    let (ordering, rest) = compared(text);
    let (digits, unit) = match rest.strip_suffix(|c: char| c.is_ascii_alphabetic()) {
        None => (rest, 512),
        Some(digits) => match rest.chars().last() {
            Some('c') => (digits, 1),
            Some('w') => (digits, 2),
            Some('b') => (digits, 512),
            Some('k') => (digits, 1 << 10),
            Some('M') => (digits, 1 << 20),
            Some('G') => (digits, 1 << 30),
            _ => return Err(format!("invalid -size type in `{text}`: use c, k, M or G")),
        },
    };
    let count = digits.parse().map_err(|_| format!("invalid argument `{text}` to `-size'"))?;
    Ok(Test::Size { ordering, count, unit })
}

fn age(name: &str, text: &str, unit: i64) -> Result<Test, String> {
    let (ordering, digits) = compared(text);
    let count = digits.parse().map_err(|_| format!("invalid argument `{text}` to `{name}'"))?;
    Ok(Test::Age { ordering, count, unit })
}
