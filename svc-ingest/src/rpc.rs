//! The generated servers: decode, authorize, call, encode.

pub(crate) mod documents;
pub(crate) mod sources;
