//! `cairn upgrade check`: which migrations a data folder or a database of another version needs.

use std::io::Write as _;

use anyhow::bail;
use cairn_chassis::sql::{Migration, MigrationStatus, Step, Tables};
use serde::Serialize;

use crate::cli::{Role, UpgradeCheckOptions};
use crate::{storages, version};

/// The tables of each service that has any.
const TABLES: [(Role, Tables); 5] = [
    (Role::Auth, cairn_auth::TABLES),
    (Role::Content, cairn_content::TABLES),
    (Role::Ingest, cairn_ingest::TABLES),
    (Role::Retrieval, cairn_retrieval::TABLES),
    (Role::Sync, cairn_sync::TABLES),
];

/// The schema of a service compared with this version.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Service {
    service: &'static str,
    applied: usize,
    /// Migrations that this version would apply at its start.
    missing: Vec<Named>,
    /// Migrations that a newer version has applied.
    newer: Vec<Named>,
    /// The oldest migration level that may still write to the schema.
    oldest_that_may_write: Option<String>,
    /// Why this version cannot start on it.
    refusal: Option<String>,
}

#[derive(Debug, Serialize)]
struct Named {
    name: String,
    step: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

impl Named {
    fn missing(migration: &Migration) -> Self {
        Self { name: migration.name.to_owned(), step: migration.step().word(), version: None }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    version: &'static str,
    /// Whether this version can start on all of it.
    can_start: bool,
    /// Whether a rollback to the version that wrote it stays possible.
    way_back: bool,
    services: Vec<Service>,
}

/// Prints the state of every schema; fails if this version cannot start on it. Writes nothing.
pub(crate) async fn check(options: UpgradeCheckOptions) -> anyhow::Result<()> {
    let mut services = Vec::new();
    for (role, tables) in TABLES {
        for storage in storages::of(role, &options.stored.data, options.stored.database.as_deref())? {
            if let Some(status) = tables.migration_status(&storage).await? {
                services.push(Service::of(tables, &status));
            }
        }
    }
    if services.is_empty() {
        bail!(storages::NONE_HERE);
    }
    let report = Report::of(services);
    let mut out = std::io::stdout().lock();
    if options.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?;
    } else {
        report.write(&mut out)?;
    }
    out.flush()?;
    if report.can_start {
        return Ok(());
    }
    bail!("version {} cannot start on this; see above", report.version)
}

impl Service {
    fn of(tables: Tables, status: &MigrationStatus) -> Self {
        let newer = status.newer.iter().map(|newer| Named {
            name: newer.name.clone(),
            step: newer.step.word(),
            version: newer.version.clone(),
        });
        Self {
            service: tables.service,
            applied: status.applied.len(),
            missing: status.missing.iter().map(Named::missing).collect(),
            newer: newer.collect(),
            oldest_that_may_write: status.oldest_that_may_write(tables.migrations),
            refusal: status.refusal(tables.service),
        }
    }
}

impl Report {
    fn of(services: Vec<Service>) -> Self {
        let contracts = |named: &Named| named.step == Step::Contract.word();
        Self {
            version: version::VERSION,
            can_start: services.iter().all(|service| service.refusal.is_none()),
            way_back: !services.iter().any(|service| service.missing.iter().any(contracts)),
            services,
        }
    }

    fn write(&self, out: &mut impl std::io::Write) -> std::io::Result<()> {
        for Service { service, applied, missing, newer, oldest_that_may_write, refusal } in &self.services {
            match refusal {
                Some(refusal) => writeln!(out, "{service}: {refusal}")?,
                None if missing.is_empty() => writeln!(out, "{service}: up to date, {applied} migrations")?,
                None => writeln!(out, "{service}: to be applied at the start: {}", listed(missing))?,
            }
            if refusal.is_none() && !newer.is_empty() {
                let listed = listed(newer);
                writeln!(out, "{service}: a newer version has added {listed}; this one goes on without")?;
            }
            if let Some(name) = oldest_that_may_write {
                writeln!(out, "{service}: only versions that know {name} may write")?;
            }
        }
        if !self.can_start {
            return Ok(());
        }
        let way_back = if self.way_back {
            "The version that wrote this can be started again afterwards."
        } else {
            "There is no way back afterwards but a backup: something contracts. Make one first."
        };
        writeln!(out, "Version {} can start on this. {way_back}", self.version)?;
        writeln!(out, "An index that it does not know it builds anew, beside the requests.")
    }
}

fn listed(named: &[Named]) -> String {
    let one = |named: &Named| match &named.version {
        Some(version) => format!("{} ({}, of {version})", named.name, named.step),
        None => format!("{} ({})", named.name, named.step),
    };
    named.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The author of a migration states whether the previous release can still run on it (docs/adr/0075).
    #[test]
    fn every_migration_says_whether_it_expands_or_contracts() {
        let all = TABLES.iter().flat_map(|(_, tables)| tables.migrations);
        let faults: Vec<String> = all.filter_map(Migration::fault).collect();
        assert!(faults.is_empty(), "{faults:#?}");
    }

    #[test]
    fn services_are_told_by_their_names() {
        assert!(TABLES.iter().all(|(role, tables)| role.name() == tables.service));
    }

    #[test]
    fn what_is_found_is_told_to_people() {
        let named =
            |name: &str, step: Step| Named { name: name.to_owned(), step: step.word(), version: None };
        let service = |missing, newer| Service {
            service: "content",
            applied: 3,
            missing,
            newer,
            oldest_that_may_write: None,
            refusal: None,
        };
        let told = |service: Service| {
            let mut text = Vec::new();
            Report::of(vec![service]).write(&mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        assert!(told(service(vec![], vec![])).contains("up to date, 3 migrations"));
        let expanding = told(service(vec![named("0002_a", Step::Expand)], vec![]));
        assert!(expanding.contains("0002_a (expand)") && expanding.contains("started again"), "{expanding}");
        let contracting = told(service(vec![named("0003_b", Step::Contract)], vec![]));
        assert!(contracting.contains("no way back"), "{contracting}");
        assert!(told(service(vec![], vec![named("0004_c", Step::Expand)])).contains("goes on without"));
        let refused =
            Service { refusal: Some("written by a newer one".to_owned()), ..service(vec![], vec![]) };
        assert!(!Report::of(vec![refused]).can_start);
    }
}
