//! Sends any bytes through every door as somebody who may do everything: bodies, queries, filters, tables, batches, tools of MCP,
//! messages of gRPC.
//!
//! To run it: `tests/fuzz/run.sh inside`.
#![no_main]

use cairn_fuzz::doors::DOORS;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| DOORS.enter(input));
