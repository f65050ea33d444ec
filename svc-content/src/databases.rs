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
    /// Chosen here when absent.
    pub(crate) new_id: Option<String>,
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
    /// What is to be said of names in the mask that are no field.
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

    /// Live databases in the order of name, then id; of a folder-scoped caller only what the scope covers.
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
        let _turn = db.reading_fairly(workspace).await?;
        let found =
            store::databases::list(db, workspace, &scope, request.after.as_ref(), request.fetch()).await?;
        let total = match request.known_total(found.len()) {
            Some(total) => total,
            None => store::databases::count(db, workspace, &scope).await?,
        };
        Ok(request.page(found, total, |database| (database.name.clone(), database.id.to_string())))
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
        let mut change = Change::begin(&self.context, caller).await?;
        // The folder before the database: see store::folders::hold.
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
        // The index keeps with each record the folder in which it is looked for.
        let is_shown_anew = database.folder_id != before.folder_id;
        let changed = former(&before, &database);
        save(change, database, is_shown_anew, changed).await
    }
}

/// The property that titles the records.
pub(crate) fn primary_property(context: &Context, name: String) -> Property {
    let (kind, config) = (PropertyType::Text, PropertySettings::default());
    Property { id: context.ids.next(), name, kind, is_primary: true, config }
}

/// A database as it is to be, with its first view; where it stands and since when is known when it is written.
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
    let nowhen = Timestamp::from_micros(0);
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
        created_at: nowhen,
        updated_at: nowhen,
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

/// Writes a new database into the folder that it names, which the caller must reach.
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

/// Ends the change of a database; with its records when these look different to who indexes them.
async fn save(
    mut change: Change,
    mut database: Database,
    is_shown_anew: bool,
    former: Vec<Former>,
) -> Result<Written<Database>, Error> {
    let before = version(&database);
    database.updated_at = change.now();
    store::databases::update(change.tx(), &database).await?;
    let update = noted(Operation::Update, &database).versions(Some(before), Some(version(&database)));
    change.note(Activity { former, ..update });
    change.publish_upsert(Kind::Database, database.id);
    if is_shown_anew {
        change.publish_records(database.id, Op::Upsert);
    }
    change.commit_with(database).await
}

fn noted(operation: Operation, database: &Database) -> Activity {
    Activity::of(operation, Kind::Database, database.id, &database.name)
        .at(&database.path, database.folder_id)
}

/// A database counts no versions: it is told apart by when it was written.
fn version(database: &Database) -> u64 {
    u64::try_from(database.updated_at.as_micros()).unwrap_or_default()
}

/// What an update changes of a database, and what that was.
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

/// A live database that no other transaction can change, or change a record of, until this one ends.
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

/// The new folder, if there is to be one.
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

/// A text that is no id names no database.
fn parse(id: &str) -> Result<DatabaseId, Error> {
    id.parse().map_err(|_| Error::no_database(id))
}
