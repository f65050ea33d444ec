//! Reads what connected sources hold: folders, repositories, object stores, sites and services.
//!
//! A [`Provider`] lists documents, tells what changed, and fetches bodies. It holds no state of its own between calls
//! that it could not do without: where a listing stands is a [`Position`], which the caller keeps. Every request goes
//! through a [`Call`], which counts it in the owner's [`Ledger`], sends it through the guard of outbound addresses, and
//! knows when a provider wants to be left alone. [`connect`] makes a provider of settings and is the one list of them.
//!
//! Nothing here knows a database or an RPC. Bodies are bytes with a media type; what they say is read elsewhere.

mod call;
mod confluence;
mod connect;
mod drive;
mod fault;
mod github;
mod item;
mod jira;
mod kind;
mod ledger;
mod limit;
mod linear;
mod mcp;
mod notion;
mod position;
mod provider;
mod rest;
mod secret;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "each provider asks for its own kinds of fields; the first are under way")
)]
mod settings;
mod slack;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use self::call::{Call, FinalUrl};
pub use self::connect::{Reach, connect, modes};
pub use self::fault::Fault;
pub use self::item::{Body, Entry, ExternalId, Fetched, Item, ItemFault, Page, Partial, Then, Version};
pub use self::kind::ProviderKind;
pub use self::ledger::Ledger;
pub use self::position::Position;
pub use self::provider::{Account, Changes, Deletions, Listing, Provider, Search, Traits};
pub use self::secret::Secret;
