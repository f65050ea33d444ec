//! The rules of structured databases (spec 2.5, 4.9): their names and folders.
//!
//! Properties and views are stored in the database's own row: they are read with it, and a writer of records that locks the
//! row knows that the schema cannot change.

pub(crate) mod former;
pub(crate) mod properties;
pub(crate) mod schema;
mod trash;
pub(crate) mod views;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::{Kind, Op};
use cairn_chassis::sql::Db;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::ids::{DatabaseId, FolderId, ViewId};

use crate::Error;
use crate::change::Change;
use crate::checks::Checks;
use crate::context::Context;
use crate::folders::{self, Destination};
use crate::model::{
    Activity, Database, Former, Operation, Page, PageRequest, Property, PropertySettings, PropertyType, View,
    Written,
};
use crate::scope::Caller;
use crate::store;
use crate::store::page::ListScope;

const MAX_DESCRIPTION_CHARS: usize = 10_000;
const MAX_ICON_CHARS: usize = 2_000;
const PRIMARY_NAME: &str = "Name";
const DEFAULT_VIEW: &str = "Table";

impl Database {
    /// Resolves a property by id or, if allowed and unambiguous, by name.
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
        let names: Vec<String> =
            self.properties.iter().map(|property| format!("{} ({})", property.id, property.name)).collect();
        format!("the database has no such property; it has: {}", names.join(", "))
    }
}

/// A database to be created.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseDraft {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) icon: Option<String>,
    pub(crate) folder_id: Option<String>,
    /// Generated if absent.
    pub(crate) new_id: Option<String>,
}

/// Changes to a database; absent fields stay unchanged.
#[derive(Debug, Clone, Default)]
pub(crate) struct DatabasePatch {
    pub(crate) name: Option<String>,
    /// `Some(None)` clears it.
    pub(crate) description: Option<Option<String>>,
    /// `Some(None)` clears it.
    pub(crate) icon: Option<Option<String>>,
    /// `Some(None)` moves it to the root.
    pub(crate) folder_id: Option<Option<String>>,
    /// Names in the field mask that are not fields.
    pub(crate) unknown_fields: Vec<String>,
}

/// The rules of databases on a store.
#[derive(Debug, Clone)]
pub(crate) struct Databases {
    context: Context,
}

impl Databases {
    pub(crate) fn new(context: Context) -> Self {
        Self { context }
    }

    /// Creates a database with its primary property and its first view.
    pub(crate) async fn create(
        &self,
        caller: &Caller,
        draft: DatabaseDraft,
    ) -> Result<Written<Database>, Error> {
        let mut checks = Checks::default();
        let properties = vec![primary_property(&self.context, PRIMARY_NAME.to_owned())];
        let database = planned(&mut checks, &self.context, caller, draft, properties);
        checks.finish()?;
        let mut change = Change::begin(&self.context, caller).await?;
        let database = insert(&mut change, caller, database).await?;
        change.commit_with(database).await
    }

    /// A live database.
    pub(crate) async fn get(&self, caller: &Caller, id: &str) -> Result<Database, Error> {
        readable(&self.context.db, caller, id).await
    }

    /// Live databases by name, then id; for a folder-scoped caller only those in scope.
    pub(crate) async fn list(
        &self,
        caller: &Caller,
        folder_id: Option<&str>,
        request: PageRequest,
    ) -> Result<Page<Database>, Error> {
        let scope = match (folder_id, caller.listed()) {
            (Some(text), _) => {
                ListScope::In(folders::readable(&self.context.db, caller, "folderId", text).await?)
            }
            (None, None) => ListScope::All,
            (None, Some(listed)) => ListScope::Below(listed.to_vec()),
        };
        let db = &self.context.db;
        let workspace = caller.workspace;
        let _permit = db.read_permit(workspace).await?;
        let found =
            store::databases::list(db, workspace, &scope, request.after.as_ref(), request.fetch()).await?;
        let total = match request.known_total(found.len()) {
            Some(total) => total,
            None => store::databases::count(db, workspace, &scope).await?,
        };
        Ok(request.page(found, total, |database| (database.name.clone(), database.id.to_string())))
    }

    /// Updates a database. A no-op publishes nothing and returns the head of the feed.
    pub(crate) async fn update(
        &self,
        caller: &Caller,
        id: &str,
        patch: DatabasePatch,
    ) -> Result<Written<Database>, Error> {
        let database_id = parse(id)?;
        let folder_id = check(&patch)?;
        let mut change = Change::begin(&self.context, caller).await?;
        // Lock order: the folder before the database (see store::folders::lock_shared).
        let target = match folder_id {
            Some(folder_id) => Some((folder_id, folders::destination(&mut change, caller, folder_id).await?)),
            None => None,
        };
        let before = locked(&mut change, caller, database_id).await?;
        let mut database = before.clone();
        database.name = patch.name.unwrap_or(database.name);
        database.description = patch.description.unwrap_or(database.description);
        database.icon = patch.icon.unwrap_or(database.icon);
        let destination = match target {
            None => Destination::holding(&before.path, &before.folders),
            Some((folder_id, destination)) => {
                database.folder_id = folder_id;
                destination
            }
        };
        database.path = destination.path_of(&database.name);
        database.folders = destination.folders;
        if database == before {
            return change.commit_with(database).await;
        }
        // The search index stores with each record the folder that it is found in.
        let must_reindex = database.folder_id != before.folder_id;
        let changed = former(&before, &database);
        save(change, database, must_reindex, changed).await
    }
}

/// The primary property, whose value is the title of a record.
pub(crate) fn primary_property(context: &Context, name: String) -> Property {
    let (kind, config) = (PropertyType::Text, PropertySettings::default());
    Property { id: context.ids.next(), name, kind, is_primary: true, config }
}

/// A new database with its first view. Its path and timestamps are filled in by [`insert`].
pub(crate) fn planned(
    checks: &mut Checks,
    context: &Context,
    caller: &Caller,
    draft: DatabaseDraft,
    properties: Vec<Property>,
) -> Database {
    checks.name(&draft.name);
    check_texts(checks, draft.description.as_deref(), draft.icon.as_deref());
    let folder_id: Option<FolderId> = checks.optional_id("folderId", draft.folder_id.as_deref());
    let new_id: Option<DatabaseId> = checks.optional_id("newId", draft.new_id.as_deref());
    let unset = Timestamp::from_micros(0);
    Database {
        id: new_id.unwrap_or_else(|| context.ids.next()),
        workspace_id: caller.workspace,
        folder_id,
        folders: Vec::new(),
        path: String::new(),
        name: draft.name,
        description: draft.description,
        icon: draft.icon,
        properties,
        views: vec![first_view(context)],
        record_count: 0,
        created_at: unset,
        updated_at: unset,
        deleted_at: None,
    }
}

fn first_view(context: &Context) -> View {
    let id: ViewId = context.ids.next();
    View {
        id,
        name: DEFAULT_VIEW.to_owned(),
        filters: Vec::new(),
        sorts: Vec::new(),
        hidden_field_ids: Vec::new(),
        is_default: true,
    }
}

/// Inserts a new database into its folder, which must be in the caller's scope.
pub(crate) async fn insert(
    change: &mut Change,
    caller: &Caller,
    planned: Database,
) -> Result<Database, Error> {
    let destination = folders::destination(change, caller, planned.folder_id).await?;
    let now = change.now();
    let database = Database {
        path: destination.path_of(&planned.name),
        folders: destination.folders,
        created_at: now,
        updated_at: now,
        ..planned
    };
    store::databases::insert(change.tx(), &database).await?;
    change.note(noted(Operation::Create, &database).versions(None, Some(version(&database))));
    change.publish_upsert(Kind::Database, database.id);
    Ok(database)
}

/// Saves a database and commits. With `must_reindex` its records are published, too, as search renders them differently.
async fn save(
    mut change: Change,
    mut database: Database,
    must_reindex: bool,
    former: Vec<Former>,
) -> Result<Written<Database>, Error> {
    let before = version(&database);
    database.updated_at = change.now();
    store::databases::update(change.tx(), &database).await?;
    let update = noted(Operation::Update, &database).versions(Some(before), Some(version(&database)));
    change.note(Activity { former, ..update });
    change.publish_upsert(Kind::Database, database.id);
    if must_reindex {
        change.publish_records(database.id, Op::Upsert);
    }
    change.commit_with(database).await
}

fn noted(operation: Operation, database: &Database) -> Activity {
    Activity::of(operation, Kind::Database, database.id, &database.name)
        .at(&database.path, database.folder_id)
}

/// A database has no version counter; the time of its last write serves as one.
fn version(database: &Database) -> u64 {
    u64::try_from(database.updated_at.as_micros()).unwrap_or_default()
}

/// The former values of the fields that an update changes.
fn former(before: &Database, after: &Database) -> Vec<Former> {
    let changes = [
        (before.name != after.name).then(|| Former::Name(before.name.clone())),
        (before.folder_id != after.folder_id).then_some(Former::Folder(before.folder_id)),
        (before.description != after.description).then(|| Former::Description(before.description.clone())),
        (before.icon != after.icon).then(|| Former::Icon(before.icon.clone())),
    ];
    changes.into_iter().flatten().collect()
}

/// A live database that the caller may see.
pub(crate) async fn readable(db: &Db, caller: &Caller, id: &str) -> Result<Database, Error> {
    let found = store::databases::get(db.engine(), caller.workspace, parse(id)?).await?;
    let database = found.ok_or_else(|| Error::no_database(id))?;
    caller.require("database", id, &database.folders)?;
    Ok(database)
}

/// A live database, locked against changes of it and of its records until the end of the transaction.
async fn locked(change: &mut Change, caller: &Caller, id: DatabaseId) -> Result<Database, Error> {
    store::databases::lock(change.tx(), caller.workspace, id).await?;
    let found = store::databases::get(change.tx().engine(), caller.workspace, id).await?;
    let database = found.ok_or_else(|| Error::no_database(id))?;
    caller.require("database", id, &database.folders)?;
    Ok(database)
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
            checks.violation(path, "invalid", wording::NO_NUL);
        }
    }
}

/// Validates a patch; returns the new folder, if it moves the database.
fn check(patch: &DatabasePatch) -> Result<Option<Option<FolderId>>, Error> {
    let mut checks = Checks::default();
    checks.mask(&patch.unknown_fields);
    if let Some(name) = &patch.name {
        checks.name(name);
    }
    let text = |field: &Option<Option<String>>| field.clone().flatten();
    check_texts(&mut checks, text(&patch.description).as_deref(), text(&patch.icon).as_deref());
    let folder_id = patch.folder_id.as_ref().map(|folder| checks.optional_id("folderId", folder.as_deref()));
    checks.finish()?;
    Ok(folder_id)
}

/// Parses an id; an invalid one is reported as not found.
fn parse(id: &str) -> Result<DatabaseId, Error> {
    id.parse().map_err(|_| Error::no_database(id))
}
