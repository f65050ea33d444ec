//! `GET /file/{id}/index`: the badge with the index status of a file, loaded by the file's page.

use cairn_proto::domain::{DocumentKind, DocumentState};
use maud::{Markup, html};

use super::at::{Found, LocatedFile};
use super::{address, page};
use crate::answers::DocumentStatus;
use crate::operations::document_status;
use crate::operations::search::Freshness;
use crate::pages::parts as part;
use crate::pages::{Answer, folders, words};

/// The badge's own URL.
fn own(id: impl std::fmt::Display) -> String {
    format!("{}/index", address(id))
}

pub(super) async fn show(at: LocatedFile) -> Answer {
    let file = match at.file().await? {
        Found::Live(file) => file,
        Found::Elsewhere(response) => return Ok(response),
    };
    let context = at.visitor.context()?;
    let tree = folders::Tree::of(&context).await?;
    let id = cairn_proto::ids::DocumentId(at.id.0);
    let status = document_status::get(&context, DocumentKind::File, id, Freshness::default()).await;
    let search = format!("/w/{}/search", at.visitor.here()?.id);
    let body = html! {
        @match &status {
            Err(problem) => {
                p { span #searchable { (part::badge(part::Tone::Plain, "The index does not answer")) } }
                p { (words::describe(problem)) }
            }
            Ok(status) => {
                p { (badge(&file.id, status)) }
                p { (sentence(status)) }
                dl.facts {
                    dt { "Passages in the index" } dd { (words::grouped(u64::from(status.chunks))) }
                    dt { "With a vector, so found by meaning" } dd { (words::grouped(u64::from(status.embedded))) }
                    dt { "Text that the file has" } dd { code { (status.content_hash) } }
                    dt { "Text that the index holds" } dd { @match &status.indexed_hash { Some(hash) => { code { (hash) } } None => { "None" } } }
                }
            }
        }
        div.buttons {
            a.button href=(address(at.id)) { "Back to the file" }
            a.button href=(search) { "Ask again" }
        }
    };
    Ok(page(&at, &file, &tree)?.show(&at.visitor, &body))
}

/// The placeholder of the badge on the file's page; without scripts it is a link.
pub(super) fn place(id: &str) -> Markup {
    html! { span #searchable data-load=(own(id)) { a href=(own(id)) { "Is it searchable?" } } }
}

/// Polls until the status is final.
fn badge(id: &str, status: &DocumentStatus) -> Markup {
    let (tone, word) = in_index(state(status));
    let waits = matches!(state(status), DocumentState::Behind | DocumentState::WordsOnly);
    html! { span #searchable data-poll=[waits.then(|| own(id))] { a href=(own(id)) { (part::badge(tone, word)) } } }
}

/// The label of an index status.
pub(in crate::pages) const fn in_index(state: DocumentState) -> (part::Tone, &'static str) {
    match state {
        DocumentState::Searchable => (part::Tone::Ok, "Searchable"),
        DocumentState::WordsOnly => (part::Tone::Warn, "Searchable by words"),
        DocumentState::Behind => (part::Tone::Warn, "Not searchable yet"),
        DocumentState::Empty => (part::Tone::Plain, "Nothing to search"),
        DocumentState::Failed => (part::Tone::Wrong, "Not searchable"),
    }
}

fn state(status: &DocumentStatus) -> DocumentState {
    DocumentState::from_number(status.state).unwrap_or_default()
}

fn sentence(status: &DocumentStatus) -> &'static str {
    match state(status) {
        DocumentState::Searchable => "Searches find this file as it is now, by its words and by its meaning.",
        DocumentState::WordsOnly => {
            "Searches find this file as it is now by its words. Its meaning follows when the embedder has read it."
        }
        DocumentState::Behind => {
            "The index has not taken in the text that this file has now. That is a matter of a moment."
        }
        DocumentState::Empty => "There is no text in this file, so there is nothing to find.",
        DocumentState::Failed => {
            "The text could not be cut into passages, so searches do not find it. Change it, or tell whoever runs the server."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_badge_is_asked_for_again_while_it_waits() {
        let of = |state: DocumentState| {
            let status = DocumentStatus { state: state.into(), ..DocumentStatus::default() };
            badge("1", &status).into_string()
        };
        assert!(of(DocumentState::Behind).contains("data-poll=\"/file/1/index\""));
        assert!(of(DocumentState::Behind).contains("Not searchable yet"));
        let done = of(DocumentState::Searchable);
        assert!(done.contains("Searchable") && !done.contains("data-poll"), "{done}");
        assert!(place("1").into_string().contains("data-load=\"/file/1/index\""));
    }
}
