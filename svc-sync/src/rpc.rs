//! The generated servers: decode, authorize, call, encode.

mod lifecycle;
pub(crate) mod syncs;
