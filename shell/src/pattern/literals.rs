//! The literals that a match must contain, with which an index selects files.

use regex_syntax::hir::{Class, Hir, HirKind};

/// More literals than this are not selective.
const MAX_LITERALS: usize = 64;
/// Shorter literals occur in nearly every file.
const MIN_LITERAL_BYTES: usize = 3;
/// Longer literals are truncated to this length.
const MAX_LITERAL_BYTES: usize = 256;

type Texts = Vec<Vec<u8>>;

/// Literals of which every match contains at least one, in ASCII lower case; `None` if there are no useful ones.
pub(super) fn required(hir: &Hir) -> Option<Texts> {
    let facts = Facts::of(hir);
    let mut texts = facts.best()?;
    for text in &mut texts {
        text.truncate(MAX_LITERAL_BYTES);
    }
    texts.sort_unstable();
    texts.dedup();
    Some(texts)
}

/// The number of occurrences of the literals in a text.
pub(super) fn count(texts: &[Vec<u8>], within: &[u8]) -> usize {
    let within = within.to_ascii_lowercase();
    texts.iter().map(|text| memchr::memmem::find_iter(&within, text).count()).sum()
}

/// What is known about the matches of a subexpression.
struct Facts {
    /// All texts that it can match, if there are few.
    exact: Option<Texts>,
    /// Every match contains one of these.
    required: Option<Texts>,
}

impl Facts {
    fn unknown() -> Self {
        Self { exact: None, required: None }
    }

    fn exact(texts: Texts) -> Self {
        Self { exact: Some(texts), required: None }
    }

    fn of(hir: &Hir) -> Self {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => Self::exact(vec![Vec::new()]),
            HirKind::Literal(literal) => Self::exact(vec![literal.0.to_ascii_lowercase()]),
            HirKind::Class(class) => few(class).map_or_else(Self::unknown, Self::exact),
            HirKind::Capture(capture) => Self::of(&capture.sub),
            HirKind::Repetition(repetition) => {
                let sub = Self::of(&repetition.sub);
                match (repetition.min, repetition.max, &sub.exact) {
                    (1, Some(1), _) => sub,
                    (0, Some(1), Some(texts)) if texts.len() < MAX_LITERALS => {
                        let mut texts = texts.clone();
                        texts.push(Vec::new());
                        Self::exact(texts)
                    }
                    (0, ..) => Self::unknown(),
                    _ => Self { exact: None, required: sub.best() },
                }
            }
            HirKind::Concat(parts) => Self::of_row(parts),
            HirKind::Alternation(parts) => Self::of_choice(parts),
        }
    }

    /// A concatenation: neighbours with exact texts are combined.
    fn of_row(parts: &[Hir]) -> Self {
        let mut best: Option<Texts> = None;
        let mut run: Texts = vec![Vec::new()];
        let mut whole = true;
        for part in parts {
            let facts = Self::of(part);
            match &facts.exact {
                Some(texts) if run.len() * texts.len() <= MAX_LITERALS => {
                    run = run
                        .iter()
                        .flat_map(|start| {
                            texts.iter().map(move |end| [start.as_slice(), end.as_slice()].concat())
                        })
                        .collect();
                }
                exact => {
                    whole = false;
                    let ended =
                        std::mem::replace(&mut run, exact.clone().unwrap_or_else(|| vec![Vec::new()]));
                    best = better(best, useful(ended));
                    best = better(best, facts.required);
                }
            }
        }
        if whole {
            return Self::exact(run);
        }
        Self { exact: None, required: better(best, useful(run)) }
    }

    fn of_choice(parts: &[Hir]) -> Self {
        let facts: Vec<Self> = parts.iter().map(Self::of).collect();
        let exact: Option<Texts> = facts
            .iter()
            .map(|facts| facts.exact.clone())
            .collect::<Option<Vec<_>>>()
            .map(|texts| texts.concat());
        let required: Option<Texts> =
            facts.iter().map(Self::best).collect::<Option<Vec<_>>>().map(|texts| texts.concat());
        Self {
            exact: exact.filter(|texts| texts.len() <= MAX_LITERALS),
            required: required.filter(|texts| texts.len() <= MAX_LITERALS),
        }
    }

    fn best(&self) -> Option<Texts> {
        better(self.exact.clone().and_then(useful), self.required.clone())
    }
}

fn useful(texts: Texts) -> Option<Texts> {
    let long_enough = !texts.is_empty() && texts.iter().all(|text| text.len() >= MIN_LITERAL_BYTES);
    long_enough.then_some(texts)
}

/// The more selective set: longer literals first, then fewer.
fn better(left: Option<Texts>, right: Option<Texts>) -> Option<Texts> {
    let worth = |texts: &Texts| {
        let shortest = texts.iter().map(Vec::len).min().unwrap_or_default();
        (shortest.min(8), std::cmp::Reverse(texts.len()), shortest)
    };
    match (left, right) {
        (Some(left), Some(right)) => Some(if worth(&left) >= worth(&right) { left } else { right }),
        (left, right) => left.or(right),
    }
}

/// The characters of a class, if there are few. Both cases of an ASCII letter count as one.
fn few(class: &Class) -> Option<Texts> {
    let mut texts: Texts = match class {
        Class::Unicode(class) => {
            let count: u32 = class
                .ranges()
                .iter()
                .map(|range| u32::from(range.end()) - u32::from(range.start()) + 1)
                .sum();
            if count > 8 {
                return None;
            }
            let chars = class.ranges().iter().flat_map(|range| range.start()..=range.end());
            chars.map(|c| c.to_ascii_lowercase().to_string().into_bytes()).collect()
        }
        Class::Bytes(class) => {
            let count: u32 =
                class.ranges().iter().map(|range| u32::from(range.end() - range.start()) + 1).sum();
            if count > 8 {
                return None;
            }
            let bytes = class.ranges().iter().flat_map(|range| range.start()..=range.end());
            bytes.map(|byte| vec![byte.to_ascii_lowercase()]).collect()
        }
    };
    texts.sort_unstable();
    texts.dedup();
    (!texts.is_empty()).then_some(texts)
}
