//! Pages of listings and of changes.

use std::collections::HashMap;
use std::sync::PoisonError;

use serde::Deserialize;

use super::objects::{FIELDS, File};
use super::{Drive, MAX_DEPTH, MAX_FOLDERS, Place, SHAPE, is_id};
use crate::rest::{Collected, Items, MAX_LIST_BYTES, read};
use crate::{Call, ExternalId, Fault, Item, Page, Partial, Position, Then};

impl Drive {
    pub(super) async fn page_of_listing(&self, call: &Call, place: Place) -> Result<Page, Fault> {
        #[derive(Deserialize)]
        struct Listed<'a> {
            #[serde(borrow)]
            files: Items<'a>,
            #[serde(rename = "nextPageToken", default)]
            next: Option<String>,
            #[serde(rename = "incompleteSearch", default)]
            is_incomplete: bool,
        }
        let Place::Listing { start, page, mut folders, mut partial } = place else {
            return Err(Fault::PositionLost);
        };
        let query = match folders.first() {
            Some(folder) => format!("'{folder}' in parents and trashed=false"),
            None => "trashed=false".to_owned(),
        };
        let answer = self.get(call, &self.listing(&query, "1000", page.as_deref()), MAX_LIST_BYTES).await;
        let answer = match answer {
            Err(Fault::Refused | Fault::Gone) if page.is_some() => return Err(Fault::PositionLost),
            answer => answer?,
        };
        let listed: Listed<'_> = read(answer.body())?;
        if listed.is_incomplete && partial.is_empty() {
            partial.push(Partial::everywhere("Drive says that it did not search all of it"));
        }
        let mut collected = Collected::default();
        let mut kept = HashMap::new();
        for file in listed.files.each::<File>() {
            let file = match file {
                Ok(file) => file,
                Err(fault) => {
                    collected.take(Err(fault));
                    continue;
                }
            };
            if file.is_folder() && self.folder.is_some() && is_id(&file.id) && !folders.contains(&file.id) {
                if folders.len() < MAX_FOLDERS {
                    folders.push(file.id);
                } else if partial.len() < 2 {
                    partial.push(Partial::everywhere(
                        "there are more folders in a folder than are remembered at once",
                    ));
                }
            } else if file.is_document() && !file.trashed {
                collected.take(file.entry().map(Item::from));
                kept.insert(file.id.clone(), file);
            }
        }
        self.cache_files(kept);
        let page = listed.next.filter(|next| !next.is_empty());
        if page.is_none() && !folders.is_empty() {
            folders.remove(0);
        }
        let is_over = page.is_none() && folders.is_empty();
        let then = if is_over {
            Then::End { next: Position::new(SHAPE, &Place::Changes { token: start })?, partial }
        } else {
            Then::More(Position::new(SHAPE, &Place::Listing { start, page, folders, partial })?)
        };
        collected.into_page(then)
    }

    pub(super) async fn page_of_changes(&self, call: &Call, token: &str) -> Result<Page, Fault> {
        #[derive(Deserialize)]
        struct Listed<'a> {
            #[serde(borrow)]
            changes: Items<'a>,
            #[serde(rename = "nextPageToken", default)]
            next: Option<String>,
            #[serde(rename = "newStartPageToken", default)]
            start: Option<String>,
        }
        #[derive(Deserialize)]
        struct Change {
            #[serde(rename = "changeType", default)]
            kind: Option<String>,
            #[serde(default)]
            removed: bool,
            #[serde(rename = "fileId", default)]
            file_id: Option<String>,
            #[serde(default)]
            file: Option<File>,
        }
        let fields =
            format!("nextPageToken,newStartPageToken,changes(changeType,removed,fileId,file({FIELDS}))");
        let query = [
            ("includeItemsFromAllDrives", "true"),
            ("includeRemoved", "true"),
            ("pageSize", "1000"),
            ("pageToken", token),
            ("fields", &fields),
        ];
        let mut url = self.at(&["changes"], &query);
        url.query_pairs_mut().extend_pairs(self.drive.as_ref().map(|drive| ("driveId", drive)));
        let answer = match self.get(call, &url, MAX_LIST_BYTES).await {
            Err(Fault::Refused | Fault::Gone) => return Err(Fault::PositionLost),
            answer => answer?,
        };
        let listed: Listed<'_> = read(answer.body())?;
        let mut collected = Collected::default();
        let mut kept = HashMap::new();
        for change in listed.changes.each::<Change>() {
            let change = match change {
                Ok(change) => change,
                // A change without a file id: only a full listing can tell what it was.
                Err(_) => return Err(Fault::PositionLost),
            };
            if change.kind.as_deref().is_some_and(|kind| kind != "file") {
                continue;
            }
            let id = change.file_id.as_ref().or(change.file.as_ref().map(|file| &file.id));
            let Some(id) = id.and_then(|id| ExternalId::new(id.clone()).ok()) else { continue };
            let file = change.file.filter(|_| !change.removed);
            // Moving, sharing or trashing a folder reports no changes for its descendants.
            if file.as_ref().is_some_and(|file| file.is_folder() && (file.trashed || self.folder.is_some())) {
                return Err(Fault::PositionLost);
            }
            match file.filter(|file| !file.trashed) {
                None => collected.take(Ok(Item::Gone(id))),
                Some(file) if !file.is_document() => {}
                Some(file) if !self.is_in_scope(call, &file).await? => collected.take(Ok(Item::Gone(id))),
                Some(file) => {
                    collected.take(file.entry().map(Item::from));
                    kept.insert(file.id.clone(), file);
                }
            }
        }
        self.cache_files(kept);
        let next = |token| Position::new(SHAPE, &Place::Changes { token });
        let then = match (listed.next, listed.start) {
            (Some(more), _) if more == token => return Err(Fault::broken("Drive's changes do not go on")),
            (Some(more), _) => Then::More(next(more)?),
            (None, Some(start)) => Then::End { next: next(start)?, partial: Vec::new() },
            (None, None) => return Err(Fault::broken("Drive does not say where its changes go on")),
        };
        collected.into_page(then)
    }

    fn cache_files(&self, files: HashMap<String, File>) {
        *self.last_page.lock().unwrap_or_else(PoisonError::into_inner) = files;
    }

    /// Whether a file is in the selected shared drive and below the selected folder, if any.
    pub(super) async fn is_in_scope(&self, call: &Call, file: &File) -> Result<bool, Fault> {
        if self.drive.is_some() && file.drive != self.drive {
            return Ok(false);
        }
        let Some(folder) = &self.folder else { return Ok(true) };
        let mut level = file.parents.clone();
        for _ in 0..MAX_DEPTH {
            if level.contains(folder) {
                return Ok(true);
            }
            let Some(parent) = level.first().filter(|parent| is_id(parent)) else { return Ok(false) };
            level = self.parents_of(call, parent).await?;
        }
        Ok(false)
    }

    async fn parents_of(&self, call: &Call, folder: &str) -> Result<Vec<String>, Fault> {
        let known = self.parents.lock().unwrap_or_else(PoisonError::into_inner).get(folder).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let parents =
            match self.get(call, &self.at(&["files", folder], &[("fields", FIELDS)]), MAX_LIST_BYTES).await {
                Err(Fault::Gone | Fault::Forbidden) => Vec::new(),
                answer => read::<File>(answer?.body())?.parents,
            };
        self.parents
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(folder.to_owned(), parents.clone());
        Ok(parents)
    }
}
