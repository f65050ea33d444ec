//! Reads pages with an action between them.

use std::collections::BTreeSet;

use crate::{Call, Item, Page, Partial, Position, Provider, Then};

/// Everything that the pages contained.
#[derive(Debug)]
pub(crate) struct PagesRead {
    pub(crate) present: BTreeSet<String>,
    pub(crate) partial: Vec<Partial>,
    pub(crate) next: Position,
}

/// Reads a listing, or the changes since a position, and runs an action after each page except the last.
pub(crate) async fn read(
    call: &Call,
    provider: &dyn Provider,
    changes_from: Option<&Position>,
    mut between: impl AsyncFnMut(usize, &Page),
) -> PagesRead {
    let (mut present, mut at) = (BTreeSet::new(), changes_from.cloned());
    for number in 1..1_000 {
        let page = match (&at, changes_from) {
            (Some(at), Some(_)) => provider.changes(call, at).await.unwrap(),
            (at, _) => provider.list(call, at.as_ref()).await.unwrap(),
        };
        present.extend(ids(&page));
        match &page.then {
            Then::End { next, partial } => {
                return PagesRead { present, partial: partial.clone(), next: next.clone() };
            }
            Then::More(next) => at = Some(next.clone()),
        }
        between(number, &page).await;
    }
    panic!("the listing does not end")
}

/// The ids of the existing documents of a page.
pub(crate) fn ids(page: &Page) -> Vec<String> {
    let present = page.items.iter().filter_map(|item| match item {
        Item::Present(entry) => Some(entry.id.to_string()),
        Item::Gone(_) => None,
    });
    present.collect()
}
