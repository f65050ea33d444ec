//! The authorization server of agents: OAuth 2.1 as MCP has it.
//!
//! A client is registered ([`Clients`]), or known by the address of its metadata. A person consents
//! ([`Authorizations`]) and the client gets a code; for the code it gets tokens ([`Tokens`]), and new ones for a refresh
//! token. All tokens of one consent belong to one grant ([`Grants`]) and end with it. Every secret is stored as its
//! SHA-256 only.

mod authorization;
mod clients;
mod document;
mod grants;
mod pkce;
mod redirect;
mod refusal;
mod resource;
mod scope;
mod successor;
mod tokens;

pub(crate) use self::authorization::{Asked, Authorizations, Checked, Consent};
pub(crate) use self::clients::{Client, Clients, Proof, Registration};
pub(crate) use self::grants::{Grant, Grants};
pub use self::refusal::{Code, Refusal};
pub(crate) use self::successor::Salt;
pub(crate) use self::tokens::{
    CodeAttempt, IssuedCode, NewAccessToken, NewGrant, PresentedAccess, RefreshAttempt, RefreshState,
    RefreshedGrant, TokenSet, Tokens,
};
