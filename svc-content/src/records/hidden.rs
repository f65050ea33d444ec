//! Prevents folder-scoped callers from learning about items outside their scope through queries: a reference to a hidden item
//! is treated as absent in filters and sorts, just as it is redacted from responses.

use std::collections::HashSet;

use super::Records;
use crate::Error;
use crate::model::{Condition, Database, Filter, PropertyType, Selection, Test};
use crate::scope::Caller;

/// Referenced ids by kind of item.
#[derive(Debug, Default)]
pub(super) struct References {
    pub(super) files: Vec<String>,
    pub(super) records: Vec<String>,
    pub(super) assets: Vec<String>,
}

impl References {
    /// Adds the values of a property of this type; no-op unless it is a reference.
    pub(super) fn extend(&mut self, kind: PropertyType, ids: impl IntoIterator<Item = String>) {
        match kind {
            PropertyType::Relation => self.records.extend(ids),
            PropertyType::FileReference => self.files.extend(ids),
            PropertyType::AssetReference => self.assets.extend(ids),
            PropertyType::Text
            | PropertyType::Number
            | PropertyType::Boolean
            | PropertyType::Date
            | PropertyType::Select
            | PropertyType::MultiSelect
            | PropertyType::Url => {}
        }
    }
}

impl Records {
    /// Restricts a selection to what a folder-scoped caller may know. Sorts by references are dropped, as the order would reveal
    /// which records have hidden ones.
    pub(super) async fn narrow(
        &self,
        caller: &Caller,
        database: &Database,
        selection: &mut Selection,
    ) -> Result<(), Error> {
        let Some(folders) = caller.listed() else { return Ok(()) };
        let kind_of = |id| database.property(id).map(|property| property.kind);
        let is_reference = |kind: Option<PropertyType>| kind.is_some_and(PropertyType::is_reference);
        selection.orders.retain(|order| !is_reference(kind_of(order.property)));

        let mut named = References::default();
        for_each(&mut selection.filters, &mut |condition| {
            if let (Some(kind), Test::KeyIs(ids)) = (kind_of(condition.property), &condition.test) {
                named.extend(kind, ids.iter().cloned());
            }
        });
        let visible: HashSet<String> = self.covered(caller, &named).await?;
        for_each(&mut selection.filters, &mut |condition| {
            let Some(kind) = kind_of(condition.property).filter(|kind| kind.is_reference()) else { return };
            match &mut condition.test {
                Test::KeyIs(ids) => ids.retain(|id| visible.contains(id)),
                test @ Test::Present { .. } => *test = Test::Visible { kind, folders: folders.to_vec() },
                Test::TextIs(_)
                | Test::TextHas(_)
                | Test::NumberIs(_)
                | Test::Between { .. }
                | Test::Visible { .. } => {}
            }
        });
        Ok(())
    }
}

fn for_each(filters: &mut [Filter], each: &mut impl FnMut(&mut Condition)) {
    for filter in filters {
        match filter {
            Filter::All(branches) | Filter::Any(branches) => for_each(branches, each),
            Filter::Is(condition) => each(condition),
        }
    }
}
