//! The gRPC face: decode, authorize, call, encode.

mod analytics;
mod index;
mod related;
mod search;
