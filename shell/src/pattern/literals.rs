//! What text a match must have in it, for an index to choose files by.

use regex_syntax::hir::{Class, Hir, HirKind};

/// More texts than this say too little.
const MOST: usize = 64;
/// A shorter text is in nearly every file.
const SHORTEST: usize = 3;
/// Of a longer text, this much is enough.
const LONGEST: usize = 256;

type Texts = Vec<Vec<u8>>;

/// Texts of which every match has at least one, with small ASCII letters; none if nothing useful can be said.
pub(super) fn required(hir: &Hir) -> Option<Texts> {
    let facts = Facts::of(hir);
    let mut texts = facts.best()?;
    for text in &mut texts {
        text.truncate(LONGEST);
    }
    texts.sort_unstable();
    texts.dedup();
    Some(texts)
}

/// How many of such texts are in another one.
pub(super) fn count(texts: &[Vec<u8>], within: &[u8]) -> usize {
    let within = within.to_ascii_lowercase();
    texts.iter().map(|text| memchr::memmem::find_iter(&within, text).count()).sum()
}

/// What is known of the matches of a part of a pattern.
struct Facts {
    /// All that it can match, if that is little.
    exact: Option<Texts>,
    /// Every match has one of these in it.
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
                    (0, Some(1), Some(texts)) if texts.len() < MOST => {
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

    /// Parts one after the other: neighbours of which all is known are known as one.
    fn of_row(parts: &[Hir]) -> Self {
        let mut best: Option<Texts> = None;
        let mut run: Texts = vec![Vec::new()];
        let mut whole = true;
        for part in parts {
            let facts = Self::of(part);
            match &facts.exact {
                Some(texts) if run.len() * texts.len() <= MOST => {
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
            exact: exact.filter(|texts| texts.len() <= MOST),
            required: required.filter(|texts| texts.len() <= MOST),
        }
    }

    fn best(&self) -> Option<Texts> {
        better(self.exact.clone().and_then(useful), self.required.clone())
    }
}

fn useful(texts: Texts) -> Option<Texts> {
    let long_enough = !texts.is_empty() && texts.iter().all(|text| text.len() >= SHORTEST);
    long_enough.then_some(texts)
}

/// The texts that say more: the longer, then the fewer.
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

/// The characters of a class, if they are few. Both cases of an ASCII letter are one.
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
