//! Shared by JSON APIs: URLs and headers, bounded parsing of responses, pagination links, and times.

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

/// Bytes of a response with a list.
pub(crate) const MAX_LIST_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of a body that is assembled from several responses.
pub(crate) const MAX_BODY_BYTES: usize = 5 * 1024 * 1024;

/// Responses per body: ends the loop with a service that always has another page.
pub(crate) const MAX_BODY_PAGES: usize = 200;
