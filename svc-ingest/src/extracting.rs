//! Extraction with metrics.

use std::time::Instant;

use cairn_extract::{Extractor, Failure, FailureKind, Raw, Text};

/// Why a document is extracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// It was ingested.
    Upload,
    /// A run of a source fetched it.
    Run,
    /// A live question waits for it.
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

/// Extracts the text of a document. The measured time includes the wait for a child.
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
