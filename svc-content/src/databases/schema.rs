//! Changes of a database's schema: its properties and views.

use cairn_proto::ids::{PropertyId, ViewId};

use super::properties::{MAX_PROPERTIES, PropertyDraft, PropertyPatch, check_label, check_settings};
use super::views::{MAX_VIEWS, ViewDraft, ViewPatch};
use super::{Databases, former, locked, parse, save};
use crate::Error;
use crate::change::Change;
use crate::checks::Checks;
use crate::model::{Author, Database, Former, Property, PropertySettings, PropertyType, View, Written};
use crate::scope::Caller;
use crate::store;

/// A property or view with its position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Placed<T> {
    pub(crate) item: T,
    pub(crate) position: usize,
}

impl Databases {
    /// Appends a property.
    pub(crate) async fn create_property(
        &self,
        caller: &Caller,
        database_id: &str,
        draft: PropertyDraft,
    ) -> Result<Written<Placed<Property>>, Error> {
        let id: PropertyId = self.context.ids.next();
        let mut checks = Checks::default();
        check_label(&mut checks, "name", &draft.name);
        let kind = draft.kind.unwrap_or_else(|| {
            checks.violation("type", "required", "give a property type, such as text, number or select");
            PropertyType::Text
        });
        let config = draft.config.unwrap_or_default();
        let config = check_settings(&mut checks, kind, config, None, || self.new_option_id());
        // Before the transaction: acquiring a second connection while holding one can deadlock in a small pool.
        self.check_relation(&mut checks, caller, &config).await?;

        let mut change = Change::without_limits(&self.context, caller).await?;
        let mut database = locked(&mut change, caller, parse(database_id)?).await?;
        if database.properties.len() >= MAX_PROPERTIES {
            let message = format!("a database has at most {MAX_PROPERTIES} properties");
            checks.violation("name", "too_many", message);
        }
        checks.finish()?;

        let property = Property { id, name: draft.name, kind, is_primary: false, config };
        database.properties.push(property.clone());
        let written = save(change, database, false, vec![Former::Fields]).await?;
        Ok(placed_property(written, property))
    }

    /// Updates a property. Deleted options are removed from the records that have chosen them, each with a new version. A no-op
    /// publishes nothing and returns the head of the feed.
    pub(crate) async fn update_property(
        &self,
        caller: &Caller,
        database_id: &str,
        property_id: &str,
        patch: PropertyPatch,
    ) -> Result<Written<Placed<Property>>, Error> {
        let mut change = Change::without_limits(&self.context, caller).await?;
        let mut database = locked(&mut change, caller, parse(database_id)?).await?;
        let (place, before) = property_of(&database, property_id)?;
        let mut property = before.clone();
        let mut checks = Checks::default();
        checks.mask(&patch.unknown_fields);
        if patch.names_type {
            checks.violation("type", "fixed", TYPE_IS_FIXED);
        }
        if let Some(name) = patch.name {
            check_label(&mut checks, "name", &name);
            property.name = name;
        }
        if let Some(config) = patch.config {
            property.config = check_settings(&mut checks, before.kind, config, Some(&before.config), || {
                self.new_option_id()
            });
        }
        checks.finish()?;

        database.properties.remove(place);
        let last = database.properties.len();
        let position = patch.position.map_or(place, |wanted| wanted as usize).min(last);
        if property == before && position == place {
            return change.commit_with(Placed { item: property, position }).await;
        }
        database.properties.insert(position, property.clone());
        if property.config.options != before.config.options {
            let deleted = before.config.options.iter().filter(|option| property.option(&option.id).is_none());
            let (deleted, author) = (deleted.cloned().collect(), Author::of_record(&caller.principal));
            former::remove_option_values(&mut change, &database, property.id, deleted, &author).await?;
            store::cells::follow_options(change.tx(), &database, &property).await?;
        }
        // Search renders the fields of a record in the order of the properties.
        let must_reindex = position != place
            || property.name != before.name
            || property.config.options != before.config.options;
        let written = save(change, database, must_reindex, vec![Former::Fields]).await?;
        Ok(placed_property(written, property))
    }

    /// Deletes a property with its values: each record that has one gets a new version without it. Earlier versions keep the
    /// value under the property's name.
    pub(crate) async fn delete_property(
        &self,
        caller: &Caller,
        database_id: &str,
        property_id: &str,
    ) -> Result<u64, Error> {
        let mut change = Change::without_limits(&self.context, caller).await?;
        let mut database = locked(&mut change, caller, parse(database_id)?).await?;
        let (place, property) = property_of(&database, property_id)?;
        if property.is_primary {
            let message = "the primary property titles the records and cannot be deleted";
            return Err(Error::invalid("fieldId", "primary", message));
        }
        database.properties.remove(place);
        for view in &mut database.views {
            view.remove_property(property.id);
        }
        let author = Author::of_record(&caller.principal);
        former::remove_property_values(&mut change, &database, &property, &author).await?;
        store::cells::delete_of_property(change.tx(), &database, property.id).await?;
        Ok(save(change, database, true, vec![Former::Fields]).await?.position)
    }

    /// Appends a view.
    pub(crate) async fn create_view(
        &self,
        caller: &Caller,
        database_id: &str,
        draft: ViewDraft,
    ) -> Result<Written<Placed<View>>, Error> {
        let id: ViewId = self.context.ids.next();
        let mut change = Change::without_limits(&self.context, caller).await?;
        let mut database = locked(&mut change, caller, parse(database_id)?).await?;
        let mut checks = Checks::default();
        if database.views.len() >= MAX_VIEWS {
            checks.violation("name", "too_many", format!("a database has at most {MAX_VIEWS} views"));
        }
        let mut view = View {
            id,
            name: String::new(),
            filters: Vec::new(),
            sorts: Vec::new(),
            hidden_field_ids: Vec::new(),
            is_default: false,
        };
        let patch = ViewPatch {
            name: Some(draft.name),
            filters: Some(draft.filters),
            sorts: Some(draft.sorts),
            hidden_field_ids: Some(draft.hidden_field_ids),
            ..ViewPatch::default()
        };
        view.apply(&mut checks, &database, patch);
        checks.finish()?;
        let position = database.views.len();
        database.views.push(view.clone());
        let written = save(change, database, false, vec![Former::Views]).await?;
        Ok(Written { item: Placed { item: view, position }, position: written.position })
    }

    /// Updates a view.
    pub(crate) async fn update_view(
        &self,
        caller: &Caller,
        database_id: &str,
        view_id: &str,
        patch: ViewPatch,
    ) -> Result<Written<Placed<View>>, Error> {
        let mut change = Change::without_limits(&self.context, caller).await?;
        let mut database = locked(&mut change, caller, parse(database_id)?).await?;
        let place = view_of(&database, view_id)?;
        let mut view = database.views.remove(place);
        let position = patch.position.map_or(place, |wanted| wanted as usize).min(database.views.len());
        let mut checks = Checks::default();
        view.apply(&mut checks, &database, patch);
        checks.finish()?;
        database.views.insert(position, view.clone());
        let written = save(change, database, false, vec![Former::Views]).await?;
        Ok(Written { item: Placed { item: view, position }, position: written.position })
    }

    /// Deletes a view. At least one remains, and exactly one of the remaining ones is the default.
    pub(crate) async fn delete_view(
        &self,
        caller: &Caller,
        database_id: &str,
        view_id: &str,
    ) -> Result<u64, Error> {
        let mut change = Change::without_limits(&self.context, caller).await?;
        let mut database = locked(&mut change, caller, parse(database_id)?).await?;
        let deleted = database.views.remove(view_of(&database, view_id)?);
        let Some(first) = database.views.first_mut() else {
            let message = "a database keeps at least one view: make another one before you delete this one";
            return Err(Error::invalid("viewId", "last", message));
        };
        first.is_default |= deleted.is_default;
        Ok(save(change, database, false, vec![Former::Views]).await?.position)
    }

    fn new_option_id(&self) -> String {
        let id: PropertyId = self.context.ids.next();
        id.to_string()
    }

    async fn check_relation(
        &self,
        checks: &mut Checks,
        caller: &Caller,
        config: &PropertySettings,
    ) -> Result<(), Error> {
        let Some(id) = config.relation_database_id else {
            return Ok(());
        };
        let found = store::databases::get(self.context.db.engine(), caller.workspace, id).await?;
        match found {
            None => {
                checks.violation("config.relationDatabaseId", "not_found", "there is no such database");
                Ok(())
            }
            Some(database) => caller.require("database", id, &database.folders),
        }
    }
}

/// The message for an attempt to change the type of a property.
const TYPE_IS_FIXED: &str = "the type of a property is fixed: add a property of the other type, write the values there, \
     and delete this one; leave the type out to change the rest";

fn placed_property(written: Written<Database>, property: Property) -> Written<Placed<Property>> {
    let place = written.item.properties.iter().position(|one| one.id == property.id);
    let item = Placed { item: property, position: place.unwrap_or_default() };
    Written { item, position: written.position }
}

fn property_of(database: &Database, text: &str) -> Result<(usize, Property), Error> {
    let id: PropertyId = text.parse().map_err(|_| Error::no_property(text))?;
    let mut all = database.properties.iter().enumerate();
    let found = all.find(|(_, property)| property.id == id);
    found.map(|(place, property)| (place, property.clone())).ok_or_else(|| Error::no_property(text))
}

pub(crate) fn view_of(database: &Database, text: &str) -> Result<usize, Error> {
    let id: ViewId = text.parse().map_err(|_| Error::no_view(text))?;
    database.views.iter().position(|view| view.id == id).ok_or_else(|| Error::no_view(text))
}
