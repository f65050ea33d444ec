//! The input of an undo plan: the histories of the items and their current states.

use std::collections::HashMap;

use cairn_chassis::feed::Kind;
use cairn_proto::ids::{DatabaseId, FileId, FolderId, RecordId};
use uuid::Uuid;

use super::Undos;
use crate::Error;
use crate::activity::plan::ItemState;
use crate::model::ActivityEntry;
use crate::scope::Caller;
use crate::store;

/// The batch size of reading histories, and the maximum of their entries.
const ITEM_BATCH: usize = 200;
const MAX_OF_HISTORY: i64 = 20_000;

impl Undos {
    /// For each selected item all entries from the oldest selected one on, the newest first.
    pub(super) async fn histories(
        &self,
        caller: &Caller,
        selected: &[ActivityEntry],
    ) -> Result<HashMap<String, Vec<ActivityEntry>>, Error> {
        let mut oldest: HashMap<&str, u64> = HashMap::new();
        for entry in selected {
            let known = oldest.entry(&entry.what.item_id).or_insert(entry.id.position);
            *known = (*known).min(entry.id.position);
        }
        let mut items: Vec<(&str, u64)> = oldest.into_iter().collect();
        items.sort_unstable();
        let mut histories: HashMap<String, Vec<ActivityEntry>> = HashMap::new();
        let db = &self.context.db;
        for some in items.chunks(ITEM_BATCH) {
            let ids: Vec<&str> = some.iter().map(|(id, _)| *id).collect();
            let from: HashMap<&str, u64> = some.iter().copied().collect();
            let least = some.iter().map(|(_, position)| *position).min().unwrap_or_default();
            let found = store::activity::histories(db, caller.workspace, &ids, least, MAX_OF_HISTORY).await?;
            for entry in found {
                if from.get(entry.what.item_id.as_str()).is_some_and(|from| entry.id.position >= *from) {
                    histories.entry(entry.what.item_id.clone()).or_default().push(entry);
                }
            }
        }
        Ok(histories)
    }

    pub(super) async fn states(
        &self,
        caller: &Caller,
        histories: &HashMap<String, Vec<ActivityEntry>>,
    ) -> Result<HashMap<String, ItemState>, Error> {
        fn ids<T: From<Uuid>>(histories: &HashMap<String, Vec<ActivityEntry>>, kind: Kind) -> Vec<T> {
            let of_kind = histories.values().filter_map(|history| history.first());
            let of_kind = of_kind.filter(|newest| newest.what.kind == kind);
            of_kind.filter_map(|newest| Uuid::try_parse(&newest.what.item_id).ok()).map(T::from).collect()
        }
        let (db, workspace) = (&self.context.db, caller.workspace);
        let mut all = HashMap::new();
        for one in store::states::files(db, workspace, &ids::<FileId>(histories, Kind::File)).await? {
            let parent = one.folder_id.map(|id| id.0);
            let version = Some(one.version);
            all.insert(
                one.id.to_string(),
                ItemState { in_trash: one.in_trash, version, parent, ..ItemState::default() },
            );
        }
        for one in store::states::folders(db, workspace, &ids::<FolderId>(histories, Kind::Folder)).await? {
            let (parent, children) = (one.parent_id.map(|id| id.0), one.children);
            all.insert(
                one.id.to_string(),
                ItemState { in_trash: one.in_trash, parent, children, ..ItemState::default() },
            );
        }
        for one in
            store::states::databases(db, workspace, &ids::<DatabaseId>(histories, Kind::Database)).await?
        {
            let (parent, children) = (one.folder_id.map(|id| id.0), one.records);
            let version = Some(one.version);
            all.insert(
                one.id.to_string(),
                ItemState { in_trash: one.in_trash, version, parent, children, along: None },
            );
        }
        for one in store::states::records(db, workspace, &ids::<RecordId>(histories, Kind::Record)).await? {
            let (parent, version) = (Some(one.database_id.0), Some(one.version));
            all.insert(
                one.id.to_string(),
                ItemState { in_trash: one.in_trash, version, parent, ..ItemState::default() },
            );
        }
        let memories: Vec<Uuid> = ids(histories, Kind::Memory);
        for (id, version, in_trash) in store::states::memories(db, workspace, &memories).await? {
            all.insert(id, ItemState { in_trash, version: Some(version), ..ItemState::default() });
        }
        self.find_holders(caller, histories, &mut all).await?;
        Ok(all)
    }

    /// Finds the containers that items went to trash with.
    async fn find_holders(
        &self,
        caller: &Caller,
        histories: &HashMap<String, Vec<ActivityEntry>>,
        all: &mut HashMap<String, ItemState>,
    ) -> Result<(), Error> {
        let engine = || self.context.db.engine();
        for (id, state) in all.iter_mut().filter(|(_, state)| state.in_trash) {
            let Some(kind) = histories.get(id).and_then(|history| Some(history.first()?.what.kind)) else {
                continue;
            };
            if store::trash::get(engine(), caller.workspace, kind, id).await?.is_none() {
                let with = store::trash::along(engine(), caller.workspace, kind, id).await?;
                state.along = with.map(|deletion| deletion.item_id);
            }
        }
        Ok(())
    }
}
