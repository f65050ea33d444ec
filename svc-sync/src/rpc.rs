//! The generated servers: decode, authorize, call, encode.

pub(crate) mod imports;
pub(crate) mod syncs;
