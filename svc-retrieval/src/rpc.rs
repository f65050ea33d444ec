//! The gRPC face: decode, authorize, call, encode.

mod analytics;
mod browse;
mod golden;
mod index;
mod lifecycle;
mod questions;
mod related;
mod search;
