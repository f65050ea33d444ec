//! Checks that the document exists for the caller, and that the search covers its place.

use std::collections::HashSet;
use std::sync::Arc;

use cairn_chassis::call::Call;
use cairn_chassis::identity::Scope;
use cairn_proto::content::v1::trash_service_client::TrashServiceClient;
use cairn_proto::content::v1::{GetTrashItemRequest, TrashItem};
use cairn_proto::document::v1::{ConfirmedDocument, DocumentRef};
use cairn_proto::feed::v1::Kind;
use cairn_proto::retrieval::v1::MissedDocument;
use futures::future::try_join_all;
use tonic::Code as Grpc;
use uuid::Uuid;

use super::report::{Code, Finding, Report};
use super::{Case, called};
use crate::error::Error;
use crate::generations::Generation;
use crate::kinds;
use crate::search::narrowing::Narrowing;
use crate::search::request::Mode;
use crate::search::{Searcher, answer, narrowed};

/// Every kind that is searched.
const KINDS: [Kind; 5] = [Kind::File, Kind::Record, Kind::Memory, Kind::SourceDocument, Kind::Ingested];
/// Those that have a trash.
const TRASHED: [Kind; 3] = [Kind::File, Kind::Record, Kind::Memory];

/// A document that the caller may see.
#[derive(Debug, Clone)]
pub(crate) struct Missed {
    pub(crate) id: Uuid,
    pub(crate) kind: Kind,
    pub(crate) document: Arc<ConfirmedDocument>,
}

impl Missed {
    /// The document of that id which lives and is in the caller's reach, whatever its kind, and whether an owner did not
    /// answer.
    pub(crate) async fn find(
        generation: &Generation,
        call: &Call,
        kinds: &[Kind],
        id: Uuid,
    ) -> Result<(Option<Self>, bool), Error> {
        let text = id.hyphenated().to_string();
        let asked = generation.indexer.owners().iter().filter_map(|owner| {
            let own = kinds.iter().filter(|kind| kinds::feed_of(**kind) == owner.feed);
            let refs: Vec<_> =
                own.map(|kind| DocumentRef { kind: (*kind).into(), id: text.clone() }).collect();
            (!refs.is_empty()).then(|| owner.confirm(call, refs))
        });
        let answers = try_join_all(asked).await?;
        let is_unanswered = answers.iter().any(Option::is_none);
        let mut found = answers.into_iter().flatten().flatten();
        let missed = found.find_map(|document| {
            let reference = document.r#ref.as_ref()?;
            let is_it = Uuid::try_parse(&reference.id) == Ok(id);
            let kind = reference.kind();
            is_it.then(|| Self { id, kind, document: Arc::new(document) })
        });
        Ok((missed, is_unanswered))
    }

    fn encode(&self) -> MissedDocument {
        MissedDocument {
            kind: self.kind.into(),
            id: self.id.hyphenated().to_string(),
            title: self.document.title.clone(),
            path: self.document.path.clone(),
            database_id: self.document.database_id.clone(),
            content_hash: Some(self.document.content_hash.clone()),
        }
    }
}

impl Searcher {
    /// The document, if the caller may see one of that id. One out of scope is reported like one that does not exist; so is trash for
    /// a scoped caller, since it is in no folder.
    pub(super) async fn existing(
        &self,
        case: Case<'_>,
        id: Uuid,
        report: &mut Report,
    ) -> Result<Option<Missed>, Error> {
        let (missed, is_unanswered) = Missed::find(case.generation, case.call, &KINDS, id).await?;
        let Some(missed) = missed else {
            if is_unanswered {
                report.coverage.push(answer::outside_unanswered());
            }
            self.tell_missing(case, id, report).await?;
            return Ok(None);
        };
        report.document = Some(missed.encode());
        let (kind, title) = (called(missed.kind), &missed.document.title);
        report.tell(Finding::passed(Code::Exists, format!("It is the {kind} “{title}”.")));
        report.tell(Finding::passed(Code::Trash, "It is not in trash."));
        report.tell(Finding::passed(Code::Reach, "It is within the reach of whoever asks."));
        Ok(Some(missed))
    }

    async fn tell_missing(&self, case: Case<'_>, id: Uuid, report: &mut Report) -> Result<(), Error> {
        let item = match case.identity.scope {
            Scope::All => self.trashed(case.call, id).await?,
            Scope::Folders(_) => None,
        };
        let Some((kind, item)) = item else {
            let message = "There is no document with this id, or it is out of the reach of whoever asks.";
            let advice = "Check the id, or ask with a token whose folders hold the document.";
            report.tell(Finding::failed(Code::Exists, message, advice));
            return Ok(());
        };
        report.tell(Finding::passed(Code::Exists, format!("There is a {} with this id.", called(kind))));
        let is_itself = Uuid::try_parse(&item.id) == Ok(id);
        let message = match is_itself {
            true => format!("“{}” is in trash: what is in trash is not found.", item.name),
            false => {
                format!("It went to trash along with “{}”: what is in trash is not found.", item.name)
            }
        };
        report.tell(Finding::failed(Code::Trash, message, "Restore it from the trash."));
        if is_itself {
            report.document = Some(MissedDocument {
                kind: kind.into(),
                id: id.hyphenated().to_string(),
                title: item.name,
                path: item.path,
                database_id: item.parent_id.filter(|_| kind == Kind::Record),
                content_hash: None,
            });
        }
        Ok(())
    }

    /// The deletion that has a document.
    async fn trashed(&self, call: &Call, id: Uuid) -> Result<Option<(Kind, TrashItem)>, Error> {
        let mut trash = TrashServiceClient::new(self.content.clone());
        for kind in TRASHED {
            let asked = GetTrashItemRequest { kind: kind.into(), item_id: id.hyphenated().to_string() };
            match trash.get_trash_item(call.request(asked)).await {
                Ok(found) => {
                    let item = found.into_inner().item.ok_or(Error::Answer("what is in trash is nothing"))?;
                    return Ok(Some((kind, item)));
                }
                Err(status) if status.code() == Grpc::NotFound => {}
                Err(status) => return Err(status.into()),
            }
        }
        Ok(None)
    }
}

/// Whether the search covers the source of the document.
pub(super) fn check_source(case: Case<'_>, missed: &Missed, report: &mut Report) -> bool {
    let named = &case.search.source_ids;
    let Some(source) = missed.document.source_id.as_deref() else {
        if named.is_empty() {
            report.tell(Finding::passed(Code::Source, "It comes from no connected source."));
            return true;
        }
        let message = "The search is for documents of connected sources only, and this one is of none.";
        report.tell(Finding::failed(Code::Source, message, "Leave out the sources (sourceIds)."));
        return false;
    };
    let id = Uuid::try_parse(source);
    let name = missed.document.source_name.as_deref().unwrap_or("a source");
    if !named.is_empty() && !named.iter().any(|named| Uuid::try_parse(named) == id) {
        let message = format!("It is of the source “{name}”, which is not among those that are searched.");
        report.tell(Finding::failed(Code::Source, message, "Name that source too, or none (sourceIds)."));
        return false;
    }
    if !missed.document.catalog_only {
        let message = format!("The source “{name}” is connected, and its documents are kept here.");
        report.tell(Finding::passed(Code::Source, message));
        return true;
    }
    let message =
        format!("Of the source “{name}” only titles are kept here, and this mode does not look at them.");
    if case.search.mode == Mode::Fast {
        report.tell(Finding::failed(Code::Source, message, "Search in the mode balanced or fresh."));
        return false;
    }
    let message = format!(
        "Of the source “{name}” only titles are kept here: its documents are read from the provider when a title is plainly meant."
    );
    report.tell(Finding::weak(
        Code::Source,
        message,
        "Ask with the exact title, or keep the texts of that source.",
    ));
    true
}

/// Whether the document matches the filters of the search.
pub(super) async fn check_filters(
    case: Case<'_>,
    missed: &Missed,
    report: &mut Report,
) -> Result<bool, Error> {
    let narrowing = &case.search.narrowing;
    if narrowing.is_none() {
        report.tell(Finding::passed(
            Code::Filters,
            "The search is narrowed to no folder, tags, kinds or times.",
        ));
        return Ok(true);
    }
    if meets(case, missed.id, narrowing, report).await? {
        report.tell(Finding::passed(Code::Filters, "It meets all that the search is narrowed to."));
        return Ok(true);
    }
    let mut unmet = Vec::new();
    for (name, part) in parts(narrowing) {
        if !meets(case, missed.id, &part, report).await? {
            unmet.push(name);
        }
    }
    let message = match unmet.is_empty() {
        true => "It does not meet what the search is narrowed to.".to_owned(),
        false => format!("It does not meet what the search is narrowed to: {}.", unmet.join(", ")),
    };
    report.tell(Finding::failed(Code::Filters, message, "Widen the search, or leave that out."));
    Ok(false)
}

async fn meets(case: Case<'_>, id: Uuid, narrowing: &Narrowing, report: &mut Report) -> Result<bool, Error> {
    let workspace = case.identity.workspace_id()?;
    let (documents, note) = narrowed(case.generation, workspace, case.call, narrowing).await?;
    if let Some(note) = note
        && !report.coverage.contains(&note)
    {
        report.coverage.push(note);
    }
    Ok(documents.is_none_or(|documents: HashSet<Uuid>| documents.contains(&id)))
}

/// Each thing that a search is narrowed to by itself, with what people call it.
fn parts(narrowing: &Narrowing) -> Vec<(&'static str, Narrowing)> {
    let Narrowing { folder_id, tags, kinds, updated_after, updated_before } = narrowing.clone();
    let none = Narrowing::default;
    let parts = [
        ("the folder", Narrowing { folder_id, ..none() }),
        ("the tags", Narrowing { tags, ..none() }),
        ("the kinds", Narrowing { kinds, ..none() }),
        ("the time after which it changed", Narrowing { updated_after, ..none() }),
        ("the time before which it changed", Narrowing { updated_before, ..none() }),
    ];
    parts.into_iter().filter(|(_, part)| !part.is_none()).collect()
}
