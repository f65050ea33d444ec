//! References of records: validated on write, redacted for callers who may not see them, and backlinks.

use std::collections::HashSet;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::paging;
use cairn_proto::ids::{AssetId, FileId, RecordId};
use serde_json::Value;

use super::hidden::References;
use super::values::{self, ValueChanges};
use super::{PropertyNames, Records, VisibleRecord};
use crate::Error;
use crate::checks::Checks;
use crate::model::{Cursor, Database, Page, PageRequest, PropertyType, Record, RecordVersion, Values};
use crate::scope::Caller;
use crate::{assets, store};

/// A record that references a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Backlink {
    pub(crate) database_id: String,
    pub(crate) database_name: String,
    pub(crate) record_id: String,
    pub(crate) record_title: String,
    /// Id and name of the property; absent when the file is the record's body.
    pub(crate) property: Option<(String, String)>,
}

/// Which referenced items are live, and which of those are in the caller's scope.
#[derive(Debug, Default)]
struct Targets {
    live: HashSet<String>,
    covered: HashSet<String>,
}

impl Records {
    /// The backlinks of a file, in the order of the records' creation; for a folder-scoped caller those from databases in scope.
    pub(crate) async fn backlinks(
        &self,
        caller: &Caller,
        file_id: &str,
        request: PageRequest,
    ) -> Result<Page<Backlink>, Error> {
        let db = &self.context.db;
        let id: FileId = file_id.parse().map_err(|_| Error::no_file(file_id))?;
        let files = store::files::get_many(db, caller.workspace, &[id]).await?;
        let file = files.first().ok_or_else(|| Error::no_file(file_id))?;
        caller.require("file", file_id, &file.folders)?;
        let of = store::backlinks::Of { workspace: caller.workspace, file: id, scope: caller.listed() };
        let after = request.after.as_ref().map(decode_cursor).transpose()?;
        let (time, record, property) = after.unwrap_or((Timestamp::from_micros(i64::MIN), "", ""));
        let permit = db.read_permit(caller.workspace).await?;
        let rows = store::backlinks::list(db, of, (time, record, property), request.fetch()).await?;
        let total = match request.known_total(rows.len()) {
            Some(total) => total,
            None => store::backlinks::count(db, of).await?,
        };
        drop(permit);
        let page = request.page(rows, total, |row| {
            let property =
                row.property_id.map_or_else(|| store::backlinks::BODY.to_owned(), |id| id.to_string());
            (row.created_at.as_micros().to_string(), format!("{}/{property}", row.record_id))
        });
        let items = self.with_names(caller, page.items).await?;
        Ok(Page { items, next: page.next, total: page.total })
    }

    /// Adds the names of databases and properties to backlinks.
    async fn with_names(
        &self,
        caller: &Caller,
        rows: Vec<store::backlinks::BacklinkRow>,
    ) -> Result<Vec<Backlink>, Error> {
        let ids: Vec<_> =
            rows.iter().map(|row| row.database_id).collect::<HashSet<_>>().into_iter().collect();
        let databases = store::databases::get_many(self.context.db.engine(), caller.workspace, &ids).await?;
        let mut backlinks = Vec::with_capacity(rows.len());
        for row in rows {
            // The database was trashed, or the property deleted, after the rows were read.
            let Some(database) = databases.iter().find(|database| database.id == row.database_id) else {
                continue;
            };
            let property = row.property_id.and_then(|id| database.property(id));
            if row.property_id.is_some() && property.is_none() {
                continue;
            }
            backlinks.push(Backlink {
                database_id: database.id.to_string(),
                database_name: database.name.clone(),
                record_id: row.record_id.to_string(),
                record_title: row.title,
                property: property.map(|property| (property.id.to_string(), property.name.clone())),
            });
        }
        Ok(backlinks)
    }

    /// Checks that all references are live and in the caller's scope.
    pub(super) async fn check_references(
        &self,
        checks: &mut Checks,
        caller: &Caller,
        database: &Database,
        changes: &ValueChanges,
        body: Option<FileId>,
    ) -> Result<(), Error> {
        let mut outside = None;
        let body_text = body.map(|id| id.to_string());
        let of = |kind: PropertyType| {
            let named = changes.references.iter().filter(move |reference| {
                database.property(reference.property).is_some_and(|property| property.kind == kind)
            });
            named.collect::<Vec<_>>()
        };
        let files = of(PropertyType::FileReference);
        let mut ids: Vec<&str> = files.iter().map(|reference| reference.id.as_str()).collect();
        ids.extend(body_text.as_deref());
        let targets = self.files(caller, &ids).await?;
        let mut named: Vec<(&str, &str)> =
            files.iter().map(|reference| (reference.path.as_str(), reference.id.as_str())).collect();
        named.extend(body_text.as_deref().map(|id| ("contentFileId", id)));
        check_targets(checks, &mut outside, &targets, &named, "file");

        for reference in of(PropertyType::Relation) {
            let wanted = database.property(reference.property);
            let wanted = wanted.and_then(|property| property.config.relation_database_id);
            let found = self.related(caller, &[reference.id.as_str()], wanted).await?;
            check_targets(
                checks,
                &mut outside,
                &found,
                &[(reference.path.as_str(), reference.id.as_str())],
                "record",
            );
        }
        let assets = of(PropertyType::AssetReference);
        let named: Vec<(&str, &str)> =
            assets.iter().map(|reference| (reference.path.as_str(), reference.id.as_str())).collect();
        let ids: Vec<&str> = named.iter().map(|(_, id)| *id).collect();
        check_targets(checks, &mut outside, &self.assets(caller, &ids).await?, &named, "asset");
        outside.map_or(Ok(()), |message| Err(Error::OutOfScope(message)))
    }

    async fn files(&self, caller: &Caller, ids: &[&str]) -> Result<Targets, Error> {
        let parsed: Vec<FileId> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        let mut targets = Targets::default();
        if parsed.is_empty() {
            return Ok(targets);
        }
        for file in store::files::get_many(&self.context.db, caller.workspace, &parsed).await? {
            targets.add(file.id.to_string(), caller.covers(&file.folders));
        }
        Ok(targets)
    }

    async fn assets(&self, caller: &Caller, ids: &[&str]) -> Result<Targets, Error> {
        let parsed: Vec<AssetId> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        let mut targets = Targets::default();
        if parsed.is_empty() {
            return Ok(targets);
        }
        let live = store::assets::existing(&self.context.db, caller.workspace, &parsed).await?;
        let reachable = assets::reachable(&self.context.db, caller, &live).await?;
        for id in live {
            targets.add(id.to_string(), reachable.contains(&id));
        }
        Ok(targets)
    }

    async fn related(
        &self,
        caller: &Caller,
        ids: &[&str],
        database: Option<cairn_proto::ids::DatabaseId>,
    ) -> Result<Targets, Error> {
        let parsed: Vec<RecordId> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        let mut targets = Targets::default();
        if parsed.is_empty() {
            return Ok(targets);
        }
        let db = &self.context.db;
        let records = store::records::get_many(db, caller.workspace, &parsed).await?;
        let held: Vec<_> = records.iter().map(|record| record.database_id).collect();
        let databases = store::databases::get_many(db.engine(), caller.workspace, &held).await?;
        for record in records {
            let holder = databases.iter().find(|one| one.id == record.database_id);
            if let Some(holder) = holder.filter(|holder| database.is_none_or(|wanted| wanted == holder.id)) {
                targets.add(record.id.to_string(), caller.covers(&holder.folders));
            }
        }
        Ok(targets)
    }

    /// A record as the caller sees it.
    pub(super) async fn show_one(
        &self,
        caller: &Caller,
        database: &Database,
        record: Record,
    ) -> Result<VisibleRecord, Error> {
        let shown = self.show(caller, database, vec![record]).await?;
        let mut shown = shown.into_iter().next().ok_or_else(|| Error::no_record(""))?;
        let is_held = |id: &String| shown.record.values.contains_key(id);
        let names = database.properties.iter().map(|one| (one.id.to_string(), one.name.clone()));
        shown.property_names = names.filter(|(id, _)| is_held(id)).collect();
        Ok(shown)
    }

    /// Records as the caller sees them: without references to items outside the scope.
    pub(super) async fn show(
        &self,
        caller: &Caller,
        database: &Database,
        records: Vec<Record>,
    ) -> Result<Vec<VisibleRecord>, Error> {
        let visible = self.visible(caller, database, records.iter().map(contents)).await?;
        let show = |mut record: Record| {
            let title = database.title_of(&record.values);
            redact(database, visible.as_ref(), &mut record.values, &mut record.content_file_id);
            VisibleRecord { record, title, property_names: PropertyNames::new() }
        };
        Ok(records.into_iter().map(show).collect())
    }

    pub(super) async fn redact_versions(
        &self,
        caller: &Caller,
        database: &Database,
        versions: &mut [RecordVersion],
    ) -> Result<(), Error> {
        let all = versions.iter().map(|version| (&version.values, version.content_file_id));
        let visible = self.visible(caller, database, all).await?;
        for version in versions {
            redact(database, visible.as_ref(), &mut version.values, &mut version.content_file_id);
        }
        Ok(())
    }

    /// The referenced ids that a folder-scoped caller may see; `None` for a caller who may see everything.
    async fn visible<'a>(
        &self,
        caller: &Caller,
        database: &Database,
        contents: impl Iterator<Item = (&'a Values, Option<FileId>)>,
    ) -> Result<Option<HashSet<String>>, Error> {
        if caller.listed().is_none() {
            return Ok(None);
        }
        let mut named = References::default();
        for (values, body) in contents {
            named.files.extend(body.map(|id| id.to_string()));
            for property in database.properties.iter().filter(|property| property.kind.is_reference()) {
                let ids = values.get(&property.id.to_string()).map(ids_in).unwrap_or_default();
                named.extend(property.kind, ids);
            }
        }
        self.covered(caller, &named).await.map(Some)
    }

    /// The referenced ids that are live and in the caller's scope.
    pub(super) async fn covered(
        &self,
        caller: &Caller,
        named: &References,
    ) -> Result<HashSet<String>, Error> {
        let mut covered = self.files(caller, &texts(&named.files)).await?.covered;
        covered.extend(self.related(caller, &texts(&named.records), None).await?.covered);
        covered.extend(self.assets(caller, &texts(&named.assets)).await?.covered);
        Ok(covered)
    }
}

/// Decodes the cursor of a page of backlinks: the time, record and property of the last one before it.
fn decode_cursor(after: &Cursor) -> Result<(Timestamp, &str, &str), Error> {
    let parts = after.name.parse().ok().zip(after.id.split_once('/'));
    let (micros, (record, property)) = parts.ok_or_else(|| Error::Invalid(vec![paging::foreign_token()]))?;
    Ok((Timestamp::from_micros(micros), record, property))
}

impl Targets {
    fn add(&mut self, id: String, is_covered: bool) {
        if is_covered {
            self.covered.insert(id.clone());
        }
        self.live.insert(id);
    }
}

fn check_targets(
    checks: &mut Checks,
    outside: &mut Option<String>,
    targets: &Targets,
    named: &[(&str, &str)],
    kind: &str,
) {
    for (path, id) in named {
        if !targets.live.contains(*id) {
            checks.violation(path, "not_found", format!("there is no such {kind} in this workspace"));
        } else if !targets.covered.contains(*id) {
            *outside = Some(format!("{path}: the {kind} {id} is outside the folders of this token"));
        }
    }
}

fn texts(ids: &[String]) -> Vec<&str> {
    ids.iter().map(String::as_str).collect()
}

fn contents(record: &Record) -> (&Values, Option<FileId>) {
    (&record.values, record.content_file_id)
}

fn ids_in(value: &Value) -> Vec<String> {
    let elements = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
    elements.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn redact(
    database: &Database,
    visible: Option<&HashSet<String>>,
    values: &mut Values,
    body: &mut Option<FileId>,
) {
    let is_visible = |id: &str| visible.is_none_or(|visible| visible.contains(id));
    *values = values::shown(database, values, |_, id| is_visible(id));
    *body = body.filter(|id| is_visible(&id.to_string()));
}
