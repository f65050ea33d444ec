//! Ingested and source documents: the list of a workspace, and a reader. They are read-only here, and edited at
//! their origin.

mod at;
#[cfg(test)]
mod checks;
mod list;
mod outside;
mod send;
mod show;

use cairn_proto::domain::{FileType, IngestStatus};

use super::parts::Tone;
pub(super) use super::places::document as address;
use super::text::Language;
use super::{MEMBER, PERSON};
use crate::class::FILE_BYTES;
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .get(MEMBER, "/w/{id}/documents", list::show)
        .get(MEMBER, "/w/{id}/documents/new", send::ask)
        .post(MEMBER.up_to(FILE_BYTES), "/w/{id}/documents/new", send::send)
        .get(PERSON, "/documents/{id}", show::show)
        .get(PERSON, "/documents/{id}/download", show::download)
        .post(PERSON, "/documents/{id}/read", show::read_now)
        .post(PERSON, "/documents/{id}/retry", show::retry)
        .post(PERSON, "/documents/{id}/delete", show::delete)
}

/// The status of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexingStatus {
    Pending,
    Indexing,
    Indexed,
    Catalog,
    Failed,
}

impl IndexingStatus {
    /// All statuses with their names in the API and for people.
    pub(super) const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::Pending, "pending", "Waiting to be read"),
        (Self::Indexing, "indexing", "Not searchable yet"),
        (Self::Indexed, "indexed", "Searchable"),
        (Self::Catalog, "catalog", "Catalog only"),
        (Self::Failed, "failed", "Failed"),
    ];

    /// The status of an `indexStatus`; an unknown one counts as pending.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known, _)| *known == name).map(|(status, ..)| status)
    }

    const fn of(status: IngestStatus) -> Self {
        match status {
            IngestStatus::Pending => Self::Pending,
            IngestStatus::Indexing => Self::Indexing,
            IngestStatus::Indexed => Self::Indexed,
            IngestStatus::Failed => Self::Failed,
        }
    }

    pub(super) const fn tone(self) -> Tone {
        match self {
            Self::Indexed => Tone::Ok,
            Self::Pending | Self::Indexing => Tone::Warn,
            Self::Catalog => Tone::Plain,
            Self::Failed => Tone::Wrong,
        }
    }

    /// The name for people.
    pub(super) fn word(self) -> &'static str {
        Self::ALL.into_iter().find(|(status, ..)| *status == self).map_or("", |(_, _, word)| word)
    }

    /// Whether the status is transient.
    pub(super) const fn is_under_way(self) -> bool {
        matches!(self, Self::Pending | Self::Indexing)
    }
}

/// The language for syntax highlighting.
const fn language(file_type: FileType) -> Language {
    match file_type {
        FileType::Markdown => Language::Markdown,
        FileType::Json => Language::Json,
        FileType::Yaml => Language::Yaml,
        FileType::Text => Language::Plain,
    }
}

/// An external URL, if a browser can open it.
pub(super) fn web(address: &str) -> Option<&str> {
    let is_web = ["https://", "http://"].iter().any(|scheme| address.starts_with(scheme));
    Some(address).filter(|_| is_web)
}
