//! SQL only, no rules. Every function takes the workspace, and every key starts with it.

pub(crate) mod activity;
pub(crate) mod assets;
pub(crate) mod backlinks;
pub(crate) mod cells;
pub(crate) mod change_end;
pub(crate) mod columns;
pub(crate) mod databases;
pub(crate) mod doctor;
pub(crate) mod documents;
pub(crate) mod files;
pub(crate) mod folders;
pub(crate) mod former;
mod kinds;
pub(crate) mod locations;
pub(crate) mod memories;
pub(crate) mod memory_versions;
pub(crate) mod names;
pub(crate) mod overview;
pub(crate) mod page;
pub(crate) mod query;
pub(crate) mod records;
pub(crate) mod removal;
pub(crate) mod states;
pub(crate) mod titles;
pub(crate) mod trash;
pub(crate) mod tree;
pub(crate) mod usage;
pub(crate) mod versions;

pub(crate) use cairn_chassis::bodies;
use cairn_chassis::sql::{Migration, Statement};
use cairn_chassis::{feed, jobs, lifecycle, migration};

/// The tables of this service.
pub(crate) const MIGRATIONS: &[Migration] = &[
    feed::MIGRATION,
    migration!("0002_files"),
    migration!("0003_memories"),
    migration!("0004_databases"),
    migration!("0005_trash"),
    jobs::MIGRATION,
    migration!("0006_file_versions"),
    migration!("0007_assets"),
    migration!("0008_record_counts_by_creation"),
    migration!("0009_trash_of_databases"),
    migration!("0010_files_to_trash"),
    migration!("0012_former_properties"),
    migration!("0013_workspace_usage"),
    migration!("0014_memories_to_trash"),
    migration!("0015_description_of_files"),
    migration!("0016_who_deleted"),
    migration!("0017_activity"),
    migration!("0018_undo"),
    migration!("0019_listed_memories"),
    migration!("0021_memory_versions"),
    migration!("0022_trash_by_author"),
    migration!("0023_counted"),
    lifecycle::MIGRATION,
    feed::compaction::MIGRATION,
];

/// The schema of this service's tables on PostgreSQL.
pub(crate) const SCHEMA: &str = "content";

/// Every statement of this service, for the test that prepares them.
#[cfg_attr(not(test), expect(dead_code, reason = "a test prepares them"))]
pub(crate) fn statements() -> Vec<Statement> {
    let mut all = feed::statements();
    all.extend(jobs::statements());
    all.extend(lifecycle::statements());
    all.extend(activity::statements());
    all.extend(assets::statements());
    all.extend(backlinks::statements());
    all.extend(bodies::statements());
    all.extend(cells::statements());
    all.extend(change_end::statements());
    all.extend(columns::statements());
    all.extend(databases::statements());
    all.extend(doctor::statements());
    all.extend(documents::statements());
    all.extend(records::statements());
    all.extend(records::many::statements());
    all.extend(records::versions::statements());
    all.extend(records::write::statements());
    all.extend(files::statements());
    all.extend(folders::statements());
    all.extend(former::statements());
    all.extend(locations::statements());
    all.extend(memories::statements());
    all.extend(memories::contents::statements());
    all.extend(memory_versions::statements());
    all.extend(names::statements());
    all.extend(overview::statements());
    all.extend(removal::statements());
    all.extend(states::statements());
    all.extend(titles::statements());
    all.extend(trash::statements());
    all.extend(trash::along::statements());
    all.extend(trash::freed::statements());
    all.extend(tree::statements());
    all.extend(usage::statements());
    all.extend(versions::statements());
    all
}
