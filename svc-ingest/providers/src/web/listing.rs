//! Pages in sitemaps and feeds.

use cairn_chassis::clock::Timestamp;
use url::Url;

use super::address;
use crate::rest::Collected;
use crate::{Entry, ExternalId, Fault, Item, ItemFault, Page, Then, Version};

/// A page in a list.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    pub(super) url: Url,
    /// Empty if the list has none.
    pub(super) title: String,
    /// Only for display and sorting: it is often wrong.
    pub(super) updated_at: Option<Timestamp>,
}

impl Listed {
    /// Parses a URL of a list; `None` if it is not a page.
    pub(super) fn new(source: &Url, address: &str) -> Option<Self> {
        let url = address::listed(source, address).filter(|_| !address.trim().is_empty())?;
        Some(Self { url, title: String::new(), updated_at: None })
    }
}

/// Converts listed pages to entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listing {
    /// Whether the pages themselves are read, which know their canonical URL.
    pub(super) reads_pages: bool,
}

impl Listing {
    /// The entry of a page.
    pub(super) fn entry(self, listed: &Listed) -> Result<Entry, ItemFault> {
        let id =
            ExternalId::new(listed.url.as_str()).map_err(|_| ItemFault::unusable_id(listed.url.as_str()))?;
        // Only the page itself tells whether it changed.
        let mut entry = Entry::new(id, Version::unknown(), &listed.title);
        entry.updated_at = listed.updated_at;
        entry.url = (!self.reads_pages).then(|| listed.url.to_string());
        Ok(entry)
    }

    /// Builds a page of the listing.
    pub(super) fn page<'l>(
        self,
        listed: impl Iterator<Item = &'l Listed>,
        then: Then,
    ) -> Result<Page, Fault> {
        let mut page = Collected::default();
        for listed in listed {
            page.take(self.entry(listed).map(Item::from));
        }
        page.into_page(then)
    }
}
