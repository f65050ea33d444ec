//! Confines a pattern to a single line.

use regex_syntax::hir::{
    Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look, LookSet,
    Repetition,
};

/// Rewrites a pattern so that no part matches a line terminator, and text anchors become line anchors.
pub(super) fn within_lines(hir: &Hir) -> Result<Hir, String> {
    Ok(match hir.kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => {
            if literal.0.contains(&b'\n') {
                return Err("`\\n` in a pattern never matches: grep works line by line; use -A, -B or -C for what is around".to_owned());
            }
            Hir::literal(literal.0.clone())
        }
        HirKind::Class(Class::Unicode(class)) => {
            let mut class = class.clone();
            class.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
            Hir::class(Class::Unicode(class))
        }
        HirKind::Class(Class::Bytes(class)) => {
            let mut class = class.clone();
            class.difference(&ClassBytes::new([ClassBytesRange::new(b'\n', b'\n')]));
            Hir::class(Class::Bytes(class))
        }
        HirKind::Look(Look::Start) => Hir::look(Look::StartLF),
        HirKind::Look(Look::End) => Hir::look(Look::EndLF),
        HirKind::Look(look) => Hir::look(*look),
        HirKind::Repetition(repetition) => {
            let sub = Box::new(within_lines(&repetition.sub)?);
            Hir::repetition(Repetition { sub, ..repetition.clone() })
        }
        // Capture groups are not needed.
        HirKind::Capture(capture) => within_lines(&capture.sub)?,
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(within_lines).collect::<Result<_, _>>()?),
        HirKind::Alternation(parts) => {
            Hir::alternation(parts.iter().map(within_lines).collect::<Result<_, _>>()?)
        }
    })
}

/// Removes word boundaries. The result matches wherever the original does.
pub(super) fn without_words(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Look(look) if LookSet::singleton(*look).contains_word() => Hir::empty(),
        HirKind::Repetition(repetition) => {
            let sub = Box::new(without_words(&repetition.sub));
            Hir::repetition(Repetition { sub, ..repetition.clone() })
        }
        HirKind::Capture(capture) => without_words(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(without_words).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(without_words).collect()),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => hir.clone(),
    }
}
