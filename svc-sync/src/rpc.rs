//! The generated servers: decode, authorize, call, encode.

pub(crate) mod syncs;
