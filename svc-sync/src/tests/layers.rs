//! What may know what in this crate.

use cairn_chassis::testing::Modules;

/// From the lowest to the highest. What no layer names are the rules.
const LAYERS: [&[&str]; 6] = [
    &["error", "model", "packed", "scope"],
    &["store", "plan", "reading", "reversal", "delegation"],
    &["content", "decision", "manifest"],
    &["context", "imports", "run_state", "syncs", "doctor"],
    &["runs", "rpc"],
    &["service"],
];

#[test]
fn no_module_knows_what_is_above_it() {
    let modules = Modules::of_crate(env!("CARGO_MANIFEST_DIR")).unwrap();
    assert_eq!(modules.violations(&LAYERS), Vec::<String>::new());
}
