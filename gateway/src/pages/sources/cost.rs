//! The costs of a source, shown before its mode is chosen: storage, requests, and the remaining room of the plan.

use cairn_proto::domain::SourceMode;
use maud::{Markup, html};

use super::providers::Provider;
use crate::answers::Usage;
use crate::pages::parts as part;
use crate::pages::text::{self, Relative, Style};
use crate::pages::words;

/// The relevant rows of a provider's guide.
const ROWS: [&str; 5] = ["Is read", "Cost", "Limits", "Runs", "Deletions"];

/// The costs of the provider, and the remaining room.
pub(super) fn show(provider: &Provider, usage: &Usage) -> Markup {
    html! {
        section aria-labelledby="cost" {
            h2 #cost { "What it costs" }
            dl.facts {
                @for heading in ROWS {
                    @if let Some(row) = provider.row(heading) { dt { (heading) } dd { (markdown(row)) } }
                }
                @if let Some(documents) = usage.documents {
                    dt { "Documents of the plan" }
                    dd { (part::meter("Documents of the plan", documents.used, documents.limit, words::grouped)) }
                }
                @if let Some(bytes) = usage.storage_bytes {
                    dt { "Storage of the plan" }
                    dd { (part::meter("Storage of the plan", bytes.used, bytes.limit, words::bytes)) }
                }
            }
            p.hint { "How many documents there are is known when the first run has listed them. What the plan has no room for is left out, and the run says so. " a href=(provider.guide()) { "All about this provider" } }
        }
    }
}

/// What a mode stores and requests.
pub(super) const fn of_mode(mode: SourceMode) -> &'static str {
    match mode {
        SourceMode::Indexed => {
            "Every text is read once and again when it changes, kept here, and searched by its words and its meaning. Each \
             document counts for the plan, and so do its bytes. Questions make no requests."
        }
        SourceMode::Catalog => {
            "Titles and places are listed and kept, texts are not. Each document counts for the plan, its bytes do not. A text \
             is read from the provider when somebody asks for it, within the requests of the day."
        }
        SourceMode::Live => {
            "Nothing is read ahead and nothing is kept; nothing counts for the plan. A question that wants fresh results asks \
             the provider, within the requests of the day. Scripts and memories have nothing of it."
        }
    }
}

/// Renders a line of a guide.
pub(super) fn markdown(line: &str) -> Markup {
    let style =
        Style { top_level: 3, first_line: 1, cited: None, relative: Relative::Nothing, ids: "guide-" };
    text::render(line, style).markup
}
