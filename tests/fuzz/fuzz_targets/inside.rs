//! Sends any bytes through every door as somebody who may do everything: bodies, queries, filters, tables, batches, tools of MCP,
//! messages of gRPC.
//!
//! With cargo-fuzz: `cargo +nightly fuzz run inside --fuzz-dir tests/fuzz`.
#![no_main]

use cairn_fuzz::doors::DOORS;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| DOORS.enter(input));
