//! The rules for ingested documents (spec 2.7, 4.6; contract, "Ingest").
//!
//! Documents are immutable: the same content under the same idempotency key is a replay, other content a conflict. To replace a text,
//! callers delete the document, which frees the key, or use a new key.

mod draft;
mod upload;

use bytes::Bytes;
use cairn_chassis::bodies::content_hash;
use cairn_chassis::feed::Kind;
use cairn_proto::ids::DocumentId;

use self::draft::{CheckedDraft, CheckedText};
pub(crate) use self::draft::{Draft, FileDraft, TextDraft};
pub(crate) use self::upload::{UploadEnd, UploadPart};
use crate::checks::titles_with;
use crate::context::Context;
use crate::model::{
    Body, FileType, Growth, IngestStatus, Ingested, Page, PageRequest, Pieces, Place, Retained, Upload,
    name_of, with_id_suffix,
};
use crate::scope::Caller;
use crate::work::Work;
use crate::{Error, store};

/// Names the resource in scope errors.
const DOCUMENTS: &str = "ingested documents";
/// The title's name, then names with a suffix of the id. A third collision takes a deliberately chosen title.
const NAMES_TRIED: usize = 3;

/// The result of ingesting a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) document: Ingested,
    /// Whether the same content was ingested under this key before.
    pub(crate) is_replay: bool,
    /// The feed position from which the document is visible.
    pub(crate) position: u64,
}

/// A retained text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) text: String,
    pub(crate) format: FileType,
    pub(crate) hash: String,
}

/// The rules, on top of a storage.
#[derive(Debug, Clone)]
pub(crate) struct Ingests {
    context: Context,
}

impl Ingests {
    pub(crate) const fn new(context: Context) -> Self {
        Self { context }
    }

    /// Ingests a text.
    pub(crate) async fn text(&self, caller: &Caller, sent: TextDraft) -> Result<Accepted, Error> {
        caller.require_whole_workspace(DOCUMENTS)?;
        let CheckedText { draft, content, format } = sent.check()?;
        let Some(format) = format else { return self.html(caller, &draft, content).await };
        let body = Body::of(content).await?;
        if let Some(replay) = self.replay(caller, &draft, &body.hash).await? {
            return Ok(replay);
        }
        let mut work = Work::begin(&self.context, caller).await?;
        work.keep_text(&body).await?;
        let text = Retained {
            name: name_of(&draft.title, format),
            format,
            hash: body.hash.clone(),
            size_bytes: body.size_bytes,
        };
        let id = self.context.ids.next();
        let document = document(&mut work, id, &draft, &body.hash, Some(text));
        let Some(document) = insert(&mut work, document).await? else {
            work.rollback().await?;
            return self.replayed_meanwhile(caller, &draft, &body.hash).await;
        };
        work.grow(Growth { documents: 1, ..Growth::default() });
        work.publish_upsert(Kind::Ingested, document.id);
        let position = work.commit().await?.last;
        Ok(Accepted { document, is_replay: false, position })
    }

    /// Queues HTML for extraction.
    async fn html(&self, caller: &Caller, draft: &CheckedDraft, content: String) -> Result<Accepted, Error> {
        let upload =
            Upload { file_name: None, mime_type: None, is_html: true, size_bytes: content.len() as u64 };
        let sent = Sent {
            id: self.context.ids.next(),
            hash: content_hash(&content),
            upload,
            rest: Pieces::of(Bytes::from(content)),
            spooled: 0,
        };
        self.queue(caller, draft, sent).await
    }

    /// Stores a document and queues it for extraction.
    async fn queue(&self, caller: &Caller, draft: &CheckedDraft, sent: Sent) -> Result<Accepted, Error> {
        if let Some(replay) = self.replay(caller, draft, &sent.hash).await? {
            return Ok(replay);
        }
        let place = Place { workspace: caller.workspace, document: sent.id };
        let mut work = Work::begin(&self.context, caller).await?;
        let document = document(&mut work, sent.id, draft, &sent.hash, None);
        let Some(document) = insert(&mut work, document).await? else {
            work.rollback().await?;
            return self.replayed_meanwhile(caller, draft, &sent.hash).await;
        };
        let now = work.now();
        store::extractions::insert(work.tx(), place, &sent.upload, now).await?;
        for (number, piece) in (sent.spooled..).zip(&sent.rest.0) {
            store::extractions::put_piece(work.tx(), place, number, piece).await?;
        }
        let bytes = i64::try_from(sent.upload.size_bytes).unwrap_or(i64::MAX);
        work.grow(Growth { documents: 1, bytes });
        let position = work.commit().await?.last;
        self.context.arrivals.notify_one();
        Ok(Accepted { document, is_replay: false, position })
    }

    /// One document.
    pub(crate) async fn get(&self, caller: &Caller, id: &str) -> Result<Ingested, Error> {
        caller.require_whole_workspace(DOCUMENTS)?;
        let found = match id.parse() {
            Ok(parsed) => store::ingest::get(&self.context.db, caller.workspace, parsed).await?,
            Err(_) => None,
        };
        found.ok_or_else(|| Error::NoDocument(id.to_owned()))
    }

    /// A page of documents, newest first.
    pub(crate) async fn list(
        &self,
        caller: &Caller,
        status: Option<IngestStatus>,
        title: &str,
        page: PageRequest,
    ) -> Result<Page<Ingested>, Error> {
        caller.require_whole_workspace(DOCUMENTS)?;
        let titles = titles_with(title)?;
        let filter = store::ingest::Filter { status, titles: &titles };
        let db = &self.context.db;
        let found = store::ingest::list(db, caller.workspace, filter, &page).await?;
        let total = match page.known_total(found.len()) {
            Some(total) => total,
            None => store::ingest::count(db, caller.workspace, filter).await?,
        };
        Ok(page.page(found, total, |document| (String::new(), document.id.to_string())))
    }

    /// The retained text of a document.
    pub(crate) async fn content(&self, caller: &Caller, id: &str) -> Result<Content, Error> {
        let document = self.get(caller, id).await?;
        let Some(text) = document.text else {
            let why =
                document.error.unwrap_or_else(|| "it is still being read: ask again in a moment".into());
            return Err(Error::NoText { id: id.to_owned(), why });
        };
        let bodies = store::bodies::get_many(&self.context.db, caller.workspace, &[&text.hash]).await?;
        // Deleted between the two reads.
        let body = bodies.into_iter().next().ok_or_else(|| Error::NoDocument(id.to_owned()))?;
        Ok(Content { text: body.into_text()?, format: text.format, hash: text.hash })
    }

    /// Deletes a document permanently; returns the feed position of the deletion.
    pub(crate) async fn delete(&self, caller: &Caller, id: &str) -> Result<u64, Error> {
        caller.require_whole_workspace(DOCUMENTS)?;
        let absent = || Error::NoDocument(id.to_owned());
        let document = self.get(caller, id).await?;
        let parsed = document.id;
        let mut work = Work::without_limits(&self.context, caller.workspace).await?;
        // Lock order: text before name and key, as in inserts; otherwise they could deadlock.
        let known: Vec<String> = document.text.into_iter().map(|text| text.hash).collect();
        store::bodies::lock(work.tx(), caller.workspace, &known).await?;
        let place = Place { workspace: caller.workspace, document: parsed };
        let unread = store::extractions::remove(work.tx(), place).await?;
        let removed = store::ingest::remove(work.tx(), caller.workspace, parsed).await?;
        let text = removed.ok_or_else(absent)?;
        work.grow(Growth { documents: -1, bytes: -unread });
        if let Some(hash) = text {
            work.sweep_texts(&[hash]).await?;
            work.publish_delete(Kind::Ingested, parsed);
        }
        Ok(work.commit().await?.last)
    }

    /// The replay, if the key already has a document.
    async fn replay(
        &self,
        caller: &Caller,
        draft: &CheckedDraft,
        sent_hash: &str,
    ) -> Result<Option<Accepted>, Error> {
        let key = &draft.idempotency_key;
        let Some(document) = store::ingest::by_key(&self.context.db, caller.workspace, key).await? else {
            return Ok(None);
        };
        if document.sent_hash != sent_hash {
            return Err(Error::KeyTaken { key: key.clone(), id: document.id.to_string() });
        }
        let position = self.context.feed.head(caller.workspace).await?;
        Ok(Some(Accepted { document, is_replay: true, position }))
    }

    /// The replay after another request took the key concurrently.
    async fn replayed_meanwhile(
        &self,
        caller: &Caller,
        draft: &CheckedDraft,
        sent_hash: &str,
    ) -> Result<Accepted, Error> {
        let replay = self.replay(caller, draft, sent_hash).await?;
        // The insert conflicted with it, so it was deleted since.
        replay.ok_or_else(|| Error::NoDocument(format!("with the key '{}'", draft.idempotency_key)))
    }
}

/// An upload that awaits extraction.
#[derive(Debug)]
struct Sent {
    id: DocumentId,
    hash: String,
    upload: Upload,
    /// The pieces that are not stored yet, after the `spooled` ones that are.
    rest: Pieces,
    spooled: u64,
}

fn document(
    work: &mut Work,
    id: DocumentId,
    draft: &CheckedDraft,
    sent_hash: &str,
    text: Option<Retained>,
) -> Ingested {
    let now = work.now();
    Ingested {
        id,
        idempotency_key: draft.idempotency_key.clone(),
        sent_hash: sent_hash.to_owned(),
        title: draft.title.clone(),
        url: draft.url.clone(),
        external_id: draft.external_id.clone(),
        metadata: draft.metadata.clone(),
        occurred_at: draft.occurred_at,
        status: IngestStatus::Pending,
        text,
        indexed: None,
        error: None,
        created_at: now,
        updated_at: now,
    }
}

/// Inserts a new document under a free name; `None` when its key is taken.
async fn insert(work: &mut Work, mut document: Ingested) -> Result<Option<Ingested>, Error> {
    let workspace = work.workspace();
    for _ in 0..NAMES_TRIED {
        if store::ingest::insert(work.tx(), workspace, &document).await? {
            return Ok(Some(document));
        }
        if store::ingest::has_key(work.tx(), workspace, &document.idempotency_key).await? {
            return Ok(None);
        }
        if let Some(text) = &mut document.text {
            text.name = with_id_suffix(&text.name, document.id);
        }
    }
    Err(Error::Storage(cairn_chassis::sql::Error::corrupt("no name is free for an ingested document")))
}
