//! Reads what connected sources hold: folders, repositories, object stores, sites and services.
//!
//! A [`Provider`] lists documents, reports changes, and fetches bodies. Any state that it holds between calls is only a cache: the caller
//! stores the [`Position`] of a listing. Every request goes through a [`Call`], which counts it in the owner's [`Ledger`], passes the
//! guard of outbound addresses, and honors rate limits. [`connect`] creates a provider from its settings, and is the only list of
//! providers.
//!
//! Nothing here knows a database or an RPC. Bodies are bytes with a media type; their text is extracted elsewhere.

mod atlassian;
mod call;
mod confluence;
mod connect;
mod drive;
mod fault;
mod filter;
mod folder;
mod git;
mod github;
mod item;
mod jira;
mod kind;
mod ledger;
mod limit;
mod linear;
mod mcp;
mod mime;
mod notion;
mod position;
mod provider;
mod rest;
mod s3;
mod secret;
mod settings;
mod slack;
mod web;
mod xml;

#[cfg(test)]
mod contract;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

/// Bytes of a document: larger ones are reported and not read.
pub const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;

pub use self::call::{Call, FinalUrl};
pub use self::connect::{Reach, connect, modes};
pub use self::fault::Fault;
pub use self::item::{Body, Entry, ExternalId, Fetched, Item, ItemFault, Page, Partial, Then, Version};
pub use self::kind::ProviderKind;
pub use self::ledger::Ledger;
pub use self::limit::retry_after;
pub use self::position::Position;
pub use self::provider::{Account, Changes, Deletions, Listing, Provider, Search, Traits};
pub use self::secret::Secret;
