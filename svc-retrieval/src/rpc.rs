//! The gRPC face: decode, authorize, call, encode.

mod search;
