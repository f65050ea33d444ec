//! SQL only: no rule is known here. Every function names the workspace, and every key begins with it.

pub(crate) mod doctor;
pub(crate) mod extractions;
pub(crate) mod ingest;
pub(crate) mod locations;
mod numbers;
pub(crate) mod provider_operations;
pub(crate) mod removal;
pub(crate) mod source_documents;
pub(crate) mod source_runs;
pub(crate) mod source_views;
pub(crate) mod sources;
pub(crate) mod texts;
pub(crate) mod usage;
pub(crate) mod webhook_deliveries;
pub(crate) mod webhooks;

pub(crate) use cairn_chassis::bodies;
use cairn_chassis::sql::{Migration, Statement};
use cairn_chassis::{feed, jobs, lifecycle, migration};

/// The tables of this service.
pub(crate) const MIGRATIONS: &[Migration] = &[
    feed::MIGRATION,
    migration!("0002_documents"),
    jobs::MIGRATION,
    lifecycle::MIGRATION,
    migration!("0003_extractions"),
    migration!("0010_sources"),
    migration!("0011_extraction_turns"),
    migration!("0012_plan"),
    migration!("0013_webhooks"),
    feed::compaction::MIGRATION,
];

/// The schema of this service's tables on PostgreSQL.
pub(crate) const SCHEMA: &str = "ingest";

/// Every statement of this service, for the test that prepares them all.
#[cfg_attr(not(test), expect(dead_code, reason = "a test prepares them"))]
pub(crate) fn statements() -> Vec<Statement> {
    let mut all = feed::statements();
    all.extend(jobs::statements());
    all.extend(lifecycle::statements());
    all.extend(bodies::statements());
    all.extend(extractions::statements());
    all.extend(ingest::statements());
    all.extend(locations::statements());
    all.extend(provider_operations::statements());
    all.extend(removal::statements());
    all.extend(source_documents::statements());
    all.extend(source_runs::statements());
    all.extend(source_views::statements());
    all.extend(sources::statements());
    all.extend(texts::statements());
    all.extend(usage::statements());
    all.extend(webhook_deliveries::statements());
    all.extend(webhooks::statements());
    all
}
