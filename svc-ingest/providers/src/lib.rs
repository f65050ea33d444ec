//! Reads what connected sources hold: folders, repositories, object stores, sites and services.
//!
//! A [`Provider`] lists documents, tells what changed, and fetches bodies. It holds no state of its own between calls
//! that it could not do without: where a listing stands is a [`Position`], which the caller keeps. Every request goes
//! through a [`Call`], which counts it in the owner's [`Ledger`], sends it through the guard of outbound addresses, and
//! knows when a provider wants to be left alone. [`connect`] makes a provider of settings and is the one list of them.
//!
//! Nothing here knows a database or an RPC. Bodies are bytes with a media type; what they say is read elsewhere.

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

/// The most bytes of a document that is fetched: what is larger is told and not read.
pub const MOST_BODY_BYTES: usize = 32 * 1024 * 1024;

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
