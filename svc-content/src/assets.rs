//! The rules of assets: attachments of any type, which records refer to (spec 2.5, 4.10).
//!
//! An object is written under a name that is never reused; then one transaction makes it an asset. An interrupted
//! upload is therefore never visible, and deleting an object never affects another upload.

mod doctor;
mod input;
mod mending;
mod objects;
mod reach;
mod sweep;

use bytes::Bytes;
use cairn_proto::ids::{AssetId, ObjectId, WorkspaceId};
use futures::stream::{BoxStream, Stream, StreamExt as _, TryStreamExt as _};

pub(crate) use self::doctor::{CHECKS, examine};
pub(crate) use self::input::{AssetDraft, UploadEnd, UploadPart};
use self::input::{CheckedAssetDraft, Received};
pub use self::mending::IfUnmounted;
pub(crate) use self::mending::mend;
pub(crate) use self::objects::AssetStore;
pub use self::objects::{AssetLocation, Bucket, UnknownLocation};
pub(crate) use self::reach::reachable;
pub(crate) use self::sweep::run as run_sweeps;
use crate::change::Change;
use crate::context::Context;
use crate::model::{Asset, Author, Growth, Page, PageRequest, StoredObject};
use crate::scope::Caller;
use crate::{Error, store};

/// The bytes of a download.
pub(crate) type Download = BoxStream<'static, Result<Bytes, Error>>;

/// The rules of assets on a store and an object store.
#[derive(Debug, Clone)]
pub(crate) struct Assets {
    context: Context,
    store: AssetStore,
}

impl Assets {
    pub(crate) const fn new(context: Context, store: AssetStore) -> Self {
        Self { context, store }
    }

    /// Receives an asset as a stream; it is complete and durable when this returns.
    pub(crate) async fn upload(
        &self,
        caller: &Caller,
        draft: AssetDraft,
        parts: impl Stream<Item = Result<UploadPart, Error>> + Send + Unpin,
    ) -> Result<Asset, Error> {
        require_whole(caller)?;
        let max_bytes = self.context.limits.of(caller.plan.as_deref()).object_bytes;
        let draft = draft.check(max_bytes)?;
        let object: ObjectId = self.context.ids.next();
        let mut writing = self.store.write(caller.workspace, object);
        let received = match input::receive(&mut writing, parts, max_bytes).await {
            Ok(received) => received,
            Err(error) => {
                writing.abort().await;
                return Err(error);
            }
        };
        writing.finish().await?;
        let asset = self.asset(caller, draft, object, received);
        self.keep(caller, asset).await
    }

    /// The metadata of an asset.
    pub(crate) async fn get(&self, caller: &Caller, id: &str) -> Result<Asset, Error> {
        let asset_id: AssetId = id.parse().map_err(|_| Error::no_asset(id))?;
        let found = store::assets::get(&self.context.db, caller.workspace, asset_id).await?;
        let asset = found.ok_or_else(|| Error::no_asset(id))?;
        if reachable(&self.context.db, caller, &[asset_id]).await?.contains(&asset_id) {
            return Ok(asset);
        }
        let message = format!("no record in the folders of this token names the asset {id}");
        Err(Error::OutOfScope(message))
    }

    /// The assets of the workspace, the oldest first.
    pub(crate) async fn list(&self, caller: &Caller, request: PageRequest) -> Result<Page<Asset>, Error> {
        if caller.listed().is_some() {
            let message = "assets stand in no folder: they are listed with a workspace-wide token only";
            return Err(Error::OutOfScope(message.into()));
        }
        let (db, workspace) = (&self.context.db, caller.workspace);
        let after = request.after.as_ref().map_or("", |cursor| cursor.id.as_str());
        let found = store::assets::list(db, workspace, after, request.fetch()).await?;
        let total = match request.known_total(found.len()) {
            Some(total) => total,
            None => store::assets::count(db, workspace).await?,
        };
        Ok(request.page(found, total, |asset| (String::new(), asset.id.to_string())))
    }

    /// An asset and its bytes from an offset on.
    pub(crate) async fn download(
        &self,
        caller: &Caller,
        id: &str,
        offset: u64,
        length: Option<u64>,
    ) -> Result<(Asset, Download), Error> {
        let asset = self.get(caller, id).await?;
        let size = asset.kept.size_bytes;
        if offset > size {
            let message = format!("the asset has {size} bytes");
            return Err(Error::invalid("offset", "too_large", message));
        }
        let end = length.map_or(size, |length| size.min(offset.saturating_add(length)));
        let bytes = match self.store.read(caller.workspace, asset.kept.object, offset..end).await {
            Ok(bytes) => bytes.map_err(Error::from).boxed(),
            Err(object_store::Error::NotFound { .. }) => {
                // Deleted since, or lost.
                self.get(caller, id).await?;
                return Err(Error::LostAsset(id.to_owned()));
            }
            Err(error) => return Err(error.into()),
        };
        Ok((asset, bytes))
    }

    /// Deletes an asset permanently, and its object when no other asset of the workspace has the same bytes.
    pub(crate) async fn delete(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        require_whole(caller)?;
        let asset_id: AssetId = id.parse().map_err(|_| Error::no_asset(id))?;
        let mut change = Change::begin(&self.context, caller).await?;
        store::assets::lock(change.tx(), caller.workspace).await?;
        let deleted = store::assets::delete(change.tx(), caller.workspace, asset_id).await?;
        let hash = deleted.ok_or_else(|| Error::no_asset(id))?;
        let unused = store::assets::delete_unused_object(change.tx(), caller.workspace, &hash).await?;
        if let Some((_, size_bytes)) = unused {
            change.grow(Growth::less_bytes(size_bytes));
        }
        change.commit().await?;
        if let Some((object, _)) = unused {
            self.discard(caller.workspace, object).await;
        }
        Ok(())
    }

    fn asset(
        &self,
        caller: &Caller,
        draft: CheckedAssetDraft,
        object: ObjectId,
        received: Received,
    ) -> Asset {
        Asset {
            id: draft.new_id.unwrap_or_else(|| self.context.ids.next()),
            workspace_id: caller.workspace,
            name: draft.name,
            media_type: draft.media_type,
            kept: StoredObject { object, hash: received.hash, size_bytes: received.size_bytes },
            created_at: self.context.clock.now(),
            author: Author::of_content(&caller.principal),
        }
    }

    /// Makes the written object an asset, or uses an existing object with the same bytes.
    async fn keep(&self, caller: &Caller, mut asset: Asset) -> Result<Asset, Error> {
        let workspace = asset.workspace_id;
        let written = asset.kept.object;
        let mut change = Change::begin(&self.context, caller).await?;
        store::assets::lock(change.tx(), workspace).await?;
        let same = store::assets::object_by_hash(change.tx(), workspace, &asset.kept.hash).await?;
        let is_new = same.is_none();
        if let Some(kept) = same {
            asset.kept = kept;
        } else {
            change.grow(Growth::more_bytes(asset.kept.size_bytes));
            store::assets::insert_object(change.tx(), workspace, &asset.kept).await?;
        }
        store::assets::insert(change.tx(), &asset).await?;
        let committed = change.commit().await;
        // After any other error it is unknown whether the commit took effect: the object stays, and the sweep
        // decides.
        if !is_new || matches!(committed, Err(Error::LimitExceeded(_))) {
            self.discard(workspace, written).await;
        }
        committed.map(|_| asset)
    }

    /// Deletes an object without a row. If that fails, the sweep retries.
    async fn discard(&self, workspace: WorkspaceId, object: ObjectId) {
        if let Err(error) = self.store.delete(workspace, object).await {
            tracing::warn!(%error, %workspace, %object, "an object without an asset stays until the next sweep");
        }
    }
}

/// An asset is in no folder, so no folder scope covers a write to it.
fn require_whole(caller: &Caller) -> Result<(), Error> {
    match caller.listed() {
        None => Ok(()),
        Some(_) => {
            Err(Error::OutOfScope("assets are uploaded and deleted with a workspace-wide token only".into()))
        }
    }
}
