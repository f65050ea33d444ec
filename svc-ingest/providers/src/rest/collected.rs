//! A page as it is put together.

use std::collections::HashMap;

use crate::{ExternalId, Fault, Item, ItemFault, Page, Then};

/// Documents and faults of one page; of a document that comes twice, the later word counts.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    items: Vec<Item>,
    faults: Vec<ItemFault>,
    places: HashMap<ExternalId, usize>,
}

impl Collected {
    /// Takes what became of an item.
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
    /// [`Fault::Broken`] when there are more than a page may have.
    pub(crate) fn into_page(self, then: Then) -> Result<Page, Fault> {
        Page::new(self.items, self.faults, then)
    }
}
