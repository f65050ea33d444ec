//! Sends any bytes through every door that stands open without an identity: each operation over HTTP, each RPC.
//!
//! What the services check stands behind an identity: `inside.rs` has one. To run it:
//! `tests/fuzz/run.sh doors`.
#![no_main]

use cairn_fuzz::doors::DOORS;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| DOORS.knock(input));
