//! The gRPC face: decode, authorize, call, encode.

mod analytics;
mod browse;
mod index;
mod lifecycle;
mod related;
mod search;
