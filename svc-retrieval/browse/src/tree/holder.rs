//! Fetches the texts of a view: bodies of files by their hash, so that a script reads the version that its view shows even if the
//! file was edited since, and rendered texts by the entity that they are about.

use std::sync::Arc;

use bytes::Bytes;
use cairn_chassis::call::Call;
use cairn_proto::content::v1::text_ref::Text as Named;
use cairn_proto::feed::v1::Kind;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::remote::{Content, Outside, joined};
use super::trees::Workspace;
use super::view::{BEFORE_BODY, Page, View};
use crate::bodies::{BodyFetcher, BodyRef, Key};
use crate::error::Error;

/// Reads the texts of one view.
#[derive(Debug)]
pub(super) struct TextHolder {
    pub(super) content: Content,
    pub(super) outside: Outside,
    pub(super) view: Arc<View>,
    pub(super) workspace: Arc<Workspace>,
}

/// A requested text, and what its answer must have.
struct PendingText {
    held: BodyRef,
    /// The hash that the first text must have.
    first: [u8; 32],
    has_body: bool,
}

impl BodyFetcher for TextHolder {
    fn fetch<'a>(
        &'a self,
        call: &'a Call,
        wanted: &'a [BodyRef],
    ) -> BoxFuture<'a, Result<Vec<(Key, Bytes)>, Error>> {
        async move {
            let (outside, inside): (Vec<BodyRef>, Vec<BodyRef>) =
                wanted.iter().copied().partition(|held| is_outside(held.kind));
            if outside.is_empty() {
                return self.fetch_inside(call, &inside).await;
            }
            let (inside, outside) =
                tokio::try_join!(self.fetch_inside(call, &inside), self.fetch_outside(call, &outside))?;
            Ok([inside, outside].concat())
        }
        .boxed()
    }
}

const fn is_outside(kind: Kind) -> bool {
    matches!(kind, Kind::Ingested | Kind::SourceDocument)
}

impl TextHolder {
    /// Retained texts of documents from outside, by their hashes.
    async fn fetch_outside(&self, call: &Call, wanted: &[BodyRef]) -> Result<Vec<(Key, Bytes)>, Error> {
        let hashes = wanted.iter().map(|held| spelled(held.key.0)).collect();
        let texts = self.outside.texts(call, self.view.workspace, hashes).await?;
        Ok(wanted.iter().zip(texts).filter_map(|(held, text)| Some((held.key, text?))).collect())
    }

    async fn fetch_inside(&self, call: &Call, wanted: &[BodyRef]) -> Result<Vec<(Key, Bytes)>, Error> {
        let mut names = Vec::with_capacity(wanted.len());
        let mut asked = Vec::with_capacity(wanted.len());
        for held in wanted {
            let page = self.page(held);
            let (name, first) = match &page {
                Some(page) if page.is_bare => {
                    (Named::RecordIdWithoutReferences(held.id.to_string()), page.front.hash)
                }
                Some(page) => (Named::RecordId(held.id.to_string()), page.front.hash),
                None if held.kind == Kind::Database => (Named::DatabaseId(held.id.to_string()), held.key.0),
                None => (body_of(held.key.0), held.key.0),
            };
            names.push(name);
            let body = page.and_then(|page| page.body);
            names.extend(body.map(|body| body_of(body.hash)));
            asked.push(PendingText { held: *held, first, has_body: body.is_some() });
        }
        let mut texts = self.content.texts(call, self.view.workspace, names).await?.into_iter();
        let mut fetched = Vec::with_capacity(asked.len());
        for asked in asked {
            let first = texts.next().flatten();
            let body = if asked.has_body { texts.next().flatten() } else { None };
            let Some((front, hash)) = first else { continue };
            if hash != spelled(asked.first) {
                // Content renders another text now than the one that the view shows.
                self.workspace.suspect(asked.held.id, asked.first);
                continue;
            }
            match (asked.has_body, body) {
                (false, _) => fetched.push((asked.held.key, front)),
                (true, Some((body, _))) => fetched.push((asked.held.key, joined(&front, BEFORE_BODY, &body))),
                (true, None) => {}
            }
        }
        Ok(fetched)
    }

    /// The parts of a record's file.
    fn page(&self, held: &BodyRef) -> Option<Page> {
        if held.kind != Kind::Record {
            return None;
        }
        let (_, slot) = self.view.base.entity(held.id)?;
        self.view.page(slot)
    }
}

fn spelled(hash: [u8; 32]) -> String {
    format!("blake3:{}", blake3::Hash::from_bytes(hash).to_hex())
}

fn body_of(hash: [u8; 32]) -> Named {
    Named::BodyHash(spelled(hash))
}
