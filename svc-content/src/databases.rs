//! The rules of structured databases (spec 2.5, 4.9): what they are called and where they stand.
//!
//! Properties and views stand in the database's own row: they are read with it, and a writer of records that holds the
//! row knows that they stay as it read them.

pub(crate) mod former;
pub(crate) mod properties;
pub(crate) mod schema;
mod trash;
pub(crate) mod views;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::{self, Entry, Kind, Op};
use cairn_chassis::sql::{Db, Tx};
use cairn_chassis::wording::{self, Unit};
use cairn_proto::ids::{DatabaseId, FolderId, ViewId, WorkspaceId};

use crate::Error;
use crate::checks::Checks;
use crate::context::Context;
use crate::model::{Database, Page, PageRequest, Property, PropertySettings, PropertyType, View, Written};
use crate::scope::Caller;
use crate::store::page::ListScope;
use crate::{folders, store};

const MAX_DESCRIPTION_CHARS: usize = 10_000;
const MAX_ICON_CHARS: usize = 2_000;
const PRIMARY_NAME: &str = "Name";
const DEFAULT_VIEW: &str = "Table";

impl Database {
    /// The property that a text names, by its id or, where allowed and only one has it, by its name.
    pub(crate) fn find(
        &self,
        checks: &mut Checks,
        path: &str,
        text: &str,
        allow_names: bool,
    ) -> Option<&Property> {
        if let Some(found) = text.parse().ok().and_then(|id| self.property(id)) {
            return Some(found);
        }
        let mut named = self.properties.iter().filter(|property| allow_names && property.name == text);
        match (named.next(), named.next()) {
            (Some(only), None) => return Some(only),
            (Some(_), Some(_)) => {
                checks.violation(path, "ambiguous", "several properties have that name: give the id");
            }
            (None, _) => checks.violation(path, "unknown_property", self.known_properties()),
        }
        None
    }

    fn known_properties(&self) -> String {
        let known: Vec<String> =
            self.properties.iter().map(|property| format!("{} ({})", property.id, property.name)).collect();
        format!("the database has no such property; it has: {}", known.join(", "))
    }
}

/// A database to be made.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseDraft {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) icon: Option<String>,
    pub(crate) folder_id: Option<String>,
}

/// Changes to a database: what is absent stays.
#[derive(Debug, Clone, Default)]
pub(crate) struct DatabasePatch {
    pub(crate) name: Option<String>,
    /// `Some(None)` clears it.
    pub(crate) description: Option<Option<String>>,
    /// `Some(None)` clears it.
    pub(crate) icon: Option<Option<String>>,
    /// `Some(None)` is the root.
    pub(crate) folder_id: Option<Option<String>>,
    /// Names in the mask that are no field.
    pub(crate) unknown_fields: Vec<String>,
}

/// The rules, on a storage.
#[derive(Debug, Clone)]
pub(crate) struct Databases {
    context: Context,
}

impl Databases {
    pub(crate) fn new(context: Context) -> Self {
        Self { context }
    }

    /// Makes a database with its primary property and its first view.
    pub(crate) async fn create(
        &self,
        caller: &Caller,
        draft: DatabaseDraft,
    ) -> Result<Written<Database>, Error> {
        let mut checks = Checks::default();
        checks.name(&draft.name);
        check_texts(&mut checks, draft.description.as_deref(), draft.icon.as_deref());
        let folder_id: Option<FolderId> = checks.optional_id("folderId", draft.folder_id.as_deref());
        checks.finish()?;

        let mut tx = self.context.db.begin_write().await?;
        let (folders, above) = place(&mut tx, caller, folder_id).await?;
        let now = self.context.clock.now();
        let database = Database {
            id: self.context.ids.next(),
            workspace_id: caller.workspace,
            folder_id,
            folders,
            path: format!("{above}/{}", draft.name),
            name: draft.name,
            description: draft.description,
            icon: draft.icon,
            properties: vec![self.primary_property()],
            views: vec![self.first_view()],
            record_count: 0,
            created_at: now,
            updated_at: now,
            deleted_at: None,
        };
        store::databases::insert(&mut tx, &database).await?;
        self.announce(tx, database, Records::Untouched, now).await
    }

    fn primary_property(&self) -> Property {
        Property {
            id: self.context.ids.next(),
            name: PRIMARY_NAME.to_owned(),
            kind: PropertyType::Text,
            is_primary: true,
            config: PropertySettings::default(),
        }
    }

    fn first_view(&self) -> View {
        let id: ViewId = self.context.ids.next();
        View {
            id,
            name: DEFAULT_VIEW.to_owned(),
            filters: Vec::new(),
            sorts: Vec::new(),
            hidden_field_ids: Vec::new(),
            is_default: true,
        }
    }

    /// A live database.
    pub(crate) async fn get(&self, caller: &Caller, id: &str) -> Result<Database, Error> {
        readable(&self.context.db, caller, id).await
    }

    /// Live databases in the order of name, then id; of a folder-scoped caller only what the scope covers.
    pub(crate) async fn list(
        &self,
        caller: &Caller,
        folder_id: Option<&str>,
        ask: PageRequest,
    ) -> Result<Page<Database>, Error> {
        let among = match (folder_id, caller.listed()) {
            (Some(text), _) => {
                ListScope::In(folders::readable(&self.context.db, caller, "folderId", text).await?)
            }
            (None, None) => ListScope::All,
            (None, Some(listed)) => ListScope::Below(listed.to_vec()),
        };
        let db = &self.context.db;
        let workspace = caller.workspace;
        let _turn = db.reading_fairly(workspace).await?;
        let found = store::databases::list(db, workspace, &among, ask.after.as_ref(), ask.fetch()).await?;
        let total = match ask.known_total(found.len()) {
            Some(total) => total,
            None => store::databases::count(db, workspace, &among).await?,
        };
        Ok(ask.page(found, total, |database| (database.name.clone(), database.id.to_string())))
    }

    /// Changes a database. A change that changes nothing leaves the feed alone and answers its head.
    pub(crate) async fn update(
        &self,
        caller: &Caller,
        id: &str,
        patch: DatabasePatch,
    ) -> Result<Written<Database>, Error> {
        let database_id = parse(id)?;
        let folder_id = check(&patch)?;
        let mut tx = self.context.db.begin_write().await?;
        // The folder before the database: see store::folders::hold.
        let target = match folder_id {
            Some(folder_id) => Some((folder_id, place(&mut tx, caller, folder_id).await?)),
            None => None,
        };
        let before = locked(&mut tx, caller, database_id).await?;
        let mut database = before.clone();
        database.name = patch.name.unwrap_or(database.name);
        database.description = patch.description.unwrap_or(database.description);
        database.icon = patch.icon.unwrap_or(database.icon);
        let above = match target {
            Some((folder_id, (folders, above))) => {
                database.folder_id = folder_id;
                database.folders = folders;
                above
            }
            None => before.path.rsplit_once('/').map_or_else(String::new, |(above, _)| above.to_owned()),
        };
        database.path = format!("{above}/{}", database.name);
        if database == before {
            let position = feed::head(&mut tx, caller.workspace).await?;
            tx.rollback().await?;
            return Ok(Written { item: database, position });
        }
        let now = self.context.clock.now();
        database.updated_at = now;
        store::databases::update(&mut tx, &database).await?;
        // The index keeps with each record the folder in which it is looked for.
        let moved = database.folder_id != before.folder_id;
        let records = if moved { Records::Changed } else { Records::Untouched };
        self.announce(tx, database, records, now).await
    }

    async fn announce(
        &self,
        mut tx: Tx,
        database: Database,
        records: Records,
        at: Timestamp,
    ) -> Result<Written<Database>, Error> {
        let position = announce(&mut tx, &database, Op::Upsert, records, at).await?;
        self.context.feed.commit(tx, database.workspace_id, position).await?;
        Ok(Written { item: database, position })
    }
}

/// A live database that the caller may see.
pub(crate) async fn readable(db: &Db, caller: &Caller, id: &str) -> Result<Database, Error> {
    let found = store::databases::get(db.engine(), caller.workspace, parse(id)?).await?;
    let database = found.ok_or_else(|| Error::no_database(id))?;
    caller.require("database", id, &database.folders)?;
    Ok(database)
}

/// What a change of a database does to what is indexed of its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Records {
    Untouched,
    Changed,
    Gone,
}

async fn announce(
    tx: &mut Tx,
    database: &Database,
    op: Op,
    records: Records,
    at: Timestamp,
) -> Result<u64, Error> {
    let entry = Entry { kind: Kind::Database, item_id: database.id.to_string(), op };
    let position = feed::append(tx, database.workspace_id, &[entry], at).await?;
    let op = match records {
        Records::Untouched => return Ok(position),
        Records::Changed => Op::Upsert,
        Records::Gone => Op::Delete,
    };
    let told = announce_records(tx, database.workspace_id, database.id, op, at).await?;
    Ok(told.unwrap_or(position))
}

/// Tells the feed what becomes of all live records of a database; answers the last position, if there are any.
pub(crate) async fn announce_records(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: DatabaseId,
    op: Op,
    at: Timestamp,
) -> Result<Option<u64>, Error> {
    let count = store::databases::live_records(tx, workspace, id).await?;
    if count == 0 {
        return Ok(None);
    }
    let reserved = feed::reserve(tx, workspace, count, at).await?;
    store::databases::announce_records(tx, workspace, id, op, reserved, at).await?;
    Ok(Some(reserved.last))
}

/// A live database that no other transaction can change, or change a record of, until this one ends.
async fn locked(tx: &mut Tx, caller: &Caller, id: DatabaseId) -> Result<Database, Error> {
    store::databases::lock(tx, caller.workspace, id).await?;
    let found = store::databases::get(tx.engine(), caller.workspace, id).await?;
    let database = found.ok_or_else(|| Error::no_database(id))?;
    caller.require("database", id, &database.folders)?;
    Ok(database)
}

/// The folders that lead to a place that the caller may put a database into, and its path ("" for the root).
async fn place(
    tx: &mut Tx,
    caller: &Caller,
    folder_id: Option<FolderId>,
) -> Result<(Vec<FolderId>, String), Error> {
    let Some(id) = folder_id else {
        caller.require_root()?;
        return Ok((Vec::new(), String::new()));
    };
    let folder = store::folders::hold(tx, caller.workspace, id).await?.ok_or_else(|| Error::no_folder(id))?;
    let folders = folder.way();
    caller.require("folder", id, &folders)?;
    Ok((folders, folder.path))
}

fn check_texts(checks: &mut Checks, description: Option<&str>, icon: Option<&str>) {
    for (path, text, most) in
        [("description", description, MAX_DESCRIPTION_CHARS), ("icon", icon, MAX_ICON_CHARS)]
    {
        let Some(text) = text else { continue };
        if text.chars().count() > most {
            checks.violation(path, "too_long", wording::at_most(most, Unit::Characters));
        }
        if text.contains('\0') {
            checks.violation(path, "invalid", "text has no NUL character");
        }
    }
}

/// The new folder, if there is to be one.
fn check(patch: &DatabasePatch) -> Result<Option<Option<FolderId>>, Error> {
    let mut checks = Checks::default();
    for field in &patch.unknown_fields {
        let message = format!("'{field}' cannot be updated; name, description, icon and folder_id can");
        checks.violation("updateMask", "invalid", message);
    }
    if let Some(name) = &patch.name {
        checks.name(name);
    }
    let text = |field: &Option<Option<String>>| field.clone().flatten();
    check_texts(&mut checks, text(&patch.description).as_deref(), text(&patch.icon).as_deref());
    let folder_id = patch.folder_id.as_ref().map(|folder| checks.optional_id("folderId", folder.as_deref()));
    checks.finish()?;
    Ok(folder_id)
}

/// A text that is no id names no database.
fn parse(id: &str) -> Result<DatabaseId, Error> {
    id.parse().map_err(|_| Error::no_database(id))
}
