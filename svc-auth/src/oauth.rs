//! The authorization server of agents: OAuth 2.1 as MCP has it.
//!
//! A client is registered ([`Clients`]), or known by the address of its metadata. A person consents
//! ([`Authorizations`]) and the client gets a code; for the code it gets tokens ([`Tokens`]), and new ones for a refresh
//! token. All tokens of one consent belong to one grant ([`Grants`]) and end with it. Every secret is stored as its
//! SHA-256 only.

mod authorization;
mod client_name;
mod clients;
mod document;
mod grants;
mod lifetimes;
mod pkce;
mod redirect;
mod resource;
mod scope;
mod successor;
mod tokens;

pub(crate) use self::authorization::{Asked, Authorizations, Checked, Consent};
pub(crate) use self::clients::{Clients, Proof, Registration};
pub(crate) use self::grants::Grants;
pub(crate) use self::resource::Door;
pub(crate) use self::tokens::{CodeAttempt, RefreshAttempt, TokenSet, Tokens};
