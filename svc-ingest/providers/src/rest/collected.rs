//! Builds a page.

use std::collections::HashMap;

use crate::{ExternalId, Fault, Item, ItemFault, Page, Then};

/// The documents and faults of a page; for duplicates, the last one wins.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    items: Vec<Item>,
    faults: Vec<ItemFault>,
    places: HashMap<ExternalId, usize>,
}

impl Collected {
    /// Adds the result of an item.
    pub(crate) fn take(&mut self, item: Result<Item, ItemFault>) {
        let item = match item {
            Ok(item) => item,
            Err(fault) => return self.faults.push(fault),
        };
        let id = match &item {
            Item::Present(entry) => entry.id.clone(),
            Item::Gone(id) => id.clone(),
        };
        match self.places.get(&id).and_then(|place| self.items.get_mut(*place)) {
            Some(earlier) => *earlier = item,
            None => {
                self.places.insert(id, self.items.len());
                self.items.push(item);
            }
        }
    }

    /// The page.
    ///
    /// # Errors
    /// [`Fault::Broken`] if there are more items than a page may have.
    pub(crate) fn into_page(self, then: Then) -> Result<Page, Fault> {
        Page::new(self.items, self.faults, then)
    }
}
