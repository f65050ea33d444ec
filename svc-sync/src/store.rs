//! SQL only: no rule is known here. Every function names the workspace, and every key begins with it.

pub(crate) mod batches;
pub(crate) mod details;
pub(crate) mod entries;
mod numbers;
pub(crate) mod removal;
pub(crate) mod runs;

use cairn_chassis::sql::{Migration, Statement};
use cairn_chassis::{lifecycle, migration};

/// The tables of this service.
pub(crate) const MIGRATIONS: &[Migration] = &[
    lifecycle::MIGRATION,
    migration!("0002_sync"),
    migration!("0003_imports"),
    migration!("0004_asker_names"),
];

/// The schema of this service's tables on PostgreSQL.
pub(crate) const SCHEMA: &str = "sync";

/// Every statement of this service, for the test that prepares them all.
#[cfg_attr(not(test), expect(dead_code, reason = "a test prepares them"))]
pub(crate) fn statements() -> Vec<Statement> {
    let mut all = lifecycle::statements();
    all.extend(batches::statements());
    all.extend(details::statements());
    all.extend(entries::statements());
    all.extend(removal::statements());
    all.extend(runs::statements());
    all
}
