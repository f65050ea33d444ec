//! Files, read as a child of `cairn` reads them ([ADR 44](../../../docs/adr/0044-files-are-read-in-child-processes.md)).

use std::panic::{self, PanicHookInfo};
use std::thread;

use cairn_extract::{Failure, Format, Kind, MAX_TEXT_BYTES, Raw, Text, read, visible};

/// As in a child: parsers descend into what is nested.
const STACK_BYTES: usize = 64 << 20;
/// What the title of a document may have.
const MAX_TITLE_CHARS: usize = 500;

/// Has panics pass of which this says that they are none of ours: such a one ends a child, and is a document that cannot be read. All
/// others end the run.
pub fn pass(is_foreign: fn(&PanicHookInfo<'_>) -> bool) {
    let ends = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !is_foreign(info) {
            ends(info);
        }
    }));
}

/// Whether a panic is one of a package that is not ours.
pub fn is_of_package(info: &PanicHookInfo<'_>) -> bool {
    info.location().is_some_and(|location| location.file().contains("/registry/src/"))
}

/// Reads a document on a thread with the stack of a child's, and looks at what came of it.
pub fn read_whole(raw: Raw) {
    let reading = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || (read(&raw), raw));
    // A panic of ours has ended the process by the hook.
    if let Ok((outcome, raw)) = reading.expect("a thread").join() {
        check(outcome, &raw);
    }
}

/// A text is one that is kept: bounded, without what nobody sees; a failure is a sentence that holds nothing of the document.
fn check(outcome: Result<Text, Failure>, raw: &Raw) {
    let text = match outcome {
        Ok(text) => text,
        Err(failure) => {
            assert!(failure.message.ends_with('.') && failure.message.len() < 400, "{failure:?}");
            return;
        }
    };
    assert!(text.content.len() <= MAX_TEXT_BYTES && !text.content.contains('\0'));
    assert!(!text.content.trim().is_empty());
    if let Some(title) = &text.title {
        assert!(!title.is_empty() && !title.contains('\n') && title.chars().count() <= MAX_TITLE_CHARS);
        assert_eq!(without_joiners(&visible(title)), without_joiners(title));
    }
    // Text of a caller is kept as it is; what is made from a file, and what a provider sent, holds nothing that is not seen.
    let is_as_sent = match text.format {
        Format::Json | Format::Yaml => true,
        Format::Text | Format::Markdown => {
            !raw.of_provider && matches!(Kind::of(raw), Ok(Kind::Text | Kind::Markdown))
        }
    };
    if !is_as_sent {
        assert_eq!(without_joiners(&visible(&text.content)), without_joiners(&text.content));
    }
}

/// A text without what shapes its neighbours: whether that is seen depends on what stands beside it, which may have gone.
fn without_joiners(text: &str) -> String {
    let is_joiner = |letter: &char| matches!(letter, '\u{200C}' | '\u{200D}' | '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}');
    text.chars().filter(|letter| !is_joiner(letter)).collect()
}
