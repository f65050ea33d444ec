//! The dependencies between the modules of this crate.

use cairn_chassis::testing::Modules;

/// From the lowest to the highest. Modules that no layer names are the rules.
const LAYERS: [&[&str]; 5] = [
    &["checks", "columns", "context", "database_cache", "error", "model", "outside", "scope"],
    &["store"],
    &["*"],
    &["rpc"],
    &["service"],
];

#[test]
fn no_module_knows_what_is_above_it() {
    let modules = Modules::of_crate(env!("CARGO_MANIFEST_DIR")).unwrap();
    assert_eq!(modules.violations(&LAYERS), Vec::<String>::new());
}
