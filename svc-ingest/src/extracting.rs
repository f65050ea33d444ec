//! The reading of documents, counted and timed for whoever watches.

use std::time::Instant;

use cairn_extract::{Extractor, Failure, FailureKind, Raw, Text};

/// Why a document is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// Somebody sent it.
    Upload,
    /// A run of a source fetched it.
    Run,
    /// Somebody waits for it.
    Question,
}

impl Occasion {
    const fn label(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Run => "run",
            Self::Question => "question",
        }
    }
}

/// The text of a document; the time includes that of waiting for a child.
pub(crate) async fn extract(extractor: &Extractor, raw: Raw, occasion: Occasion) -> Result<Text, Failure> {
    let started = Instant::now();
    let text = extractor.extract(raw).await;
    let (of, outcome) = (occasion.label(), outcome(text.as_ref()));
    metrics::counter!("cairn_extractions_total", "of" => of, "outcome" => outcome).increment(1);
    metrics::histogram!("cairn_extraction_seconds", "of" => of).record(started.elapsed().as_secs_f64());
    text
}

fn outcome(text: Result<&Text, &Failure>) -> &'static str {
    match text.map_err(|failure| failure.kind) {
        Ok(_) => "read",
        Err(FailureKind::Unsupported) => "unsupported",
        Err(FailureKind::Encrypted) => "encrypted",
        Err(FailureKind::NoText) => "no_text",
        Err(FailureKind::TooLarge) => "too_large",
        Err(FailureKind::Broken) => "broken",
        Err(FailureKind::Exhausted) => "exhausted",
        Err(FailureKind::Unavailable) => "unavailable",
    }
}
