//! What the services that speak JSON over HTTP have in common: addresses and headers, answers read within bounds, links
//! to next pages, and times.

mod api;
mod collected;
#[cfg(test)]
mod counterparts;
#[cfg(test)]
pub(crate) mod fake;
mod json;
mod link;
mod moment;
#[cfg(test)]
pub(crate) mod paging;

pub(crate) use self::api::Api;
pub(crate) use self::collected::Collected;
pub(crate) use self::json::{Items, read};
pub(crate) use self::link::{follow, next_page};
pub(crate) use self::moment::{NO_ZONE, moment};

/// The most bytes of an answer that lists things.
pub(crate) const MOST_LIST_BYTES: usize = 16 * 1024 * 1024;

/// The most bytes of a document's body, put together of all the answers that it takes.
pub(crate) const MOST_BODY_BYTES: usize = 5 * 1024 * 1024;

/// The most answers that one body is put together of: a service that always has another page is left.
pub(crate) const MOST_BODY_PAGES: usize = 200;
