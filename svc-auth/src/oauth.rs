//! The authorization server for agents: OAuth 2.1 as MCP profiles it.
//!
//! A client is registered ([`Clients`]), or identified by the URL of its metadata. A user consents ([`Authorizations`])
//! and the client gets a code, which it exchanges for tokens ([`Tokens`]); a refresh token yields new ones. All tokens
//! of one consent belong to one grant ([`Grants`]) and end with it. Secrets are stored as SHA-256 digests only.

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

pub(crate) use self::authorization::{AuthorizationParams, Authorizations, CheckedAuthorization, Consent};
pub(crate) use self::clients::{Clients, Proof, Registration};
pub(crate) use self::grants::Grants;
pub(crate) use self::resource::Door;
pub(crate) use self::tokens::{CodeAttempt, RefreshAttempt, TokenSet, Tokens};
