//! What a folder-scoped caller learns by asking for records: nothing of what the scope hides. A reference to that is,
//! to every question, as if it were not there, just as it is left out of the answers.

use std::collections::HashSet;

use super::Records;
use crate::Error;
use crate::model::{Condition, Database, Filter, PropertyType, Selection, Test};
use crate::scope::Caller;

/// Ids of things by what kind of property names them.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub(super) files: Vec<String>,
    pub(super) records: Vec<String>,
    pub(super) assets: Vec<String>,
}

impl Named {
    /// Takes what a property of that type names.
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
    /// A selection that tells a folder-scoped caller nothing of what the scope hides. References order nothing then: the
    /// order would tell which records have hidden ones.
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

        let mut named = Named::default();
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
