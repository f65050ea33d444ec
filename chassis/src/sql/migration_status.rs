//! Compares the migrations that a database has with those of this binary, and decides whether the binary may start on it.

use super::migrate::{self, Migration, Step};
use super::{Config, Db, Error};

/// The tables of a service, as this binary knows them.
#[derive(Debug, Clone, Copy)]
pub struct Tables {
    /// The service, and its schema on PostgreSQL.
    pub service: &'static str,
    /// The migrations that create them, in order.
    pub migrations: &'static [Migration],
}

impl Tables {
    /// Which of their migrations a database has; nothing is created or written. `None` when the service has no tables there.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn migration_status(self, config: &Config) -> Result<Option<MigrationStatus>, Error> {
        MigrationStatus::of(config, self.service, self.migrations).await
    }
}

/// A migration that a newer version has applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Its name.
    pub name: String,
    /// What it means for a binary that lacks it.
    pub step: Step,
    /// The release that applied it, where that was recorded.
    pub version: Option<String>,
}

impl Applied {
    fn refusal(&self, service: &str, why: &str) -> String {
        let by = self.version.as_ref().map(|version| format!(" (Cairn {version})")).unwrap_or_default();
        format!(
            "the database of {service} has the migration {}, which this version does not know: it was written by a newer \
             one{by}, and {why}; start that version or a newer one, or restore a backup from before the upgrade",
            self.name
        )
    }
}

/// The migrations of a database, compared with those of this binary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MigrationStatus {
    /// Those of this binary that are applied.
    pub applied: Vec<&'static str>,
    /// Those of this binary that are to be applied, in order.
    pub missing: Vec<Migration>,
    /// Applied ones that this binary does not have.
    pub newer: Vec<Applied>,
    /// Applied ones whose text differs from that of this binary.
    pub changed: Vec<String>,
}

impl MigrationStatus {
    /// Reads the migrations of a service; nothing is created or written. `None` when it has no tables there.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn of(
        config: &Config,
        service: &'static str,
        migrations: &[Migration],
    ) -> Result<Option<Self>, Error> {
        let Some(db) = Db::connect_lazily(config, service)? else { return Ok(None) };
        let status = migrate::status(&db, migrations).await;
        db.close().await;
        status.map(|status| Some(status).filter(|status| !status.is_empty()))
    }

    /// Whether the database has no migration of the service.
    pub fn is_empty(&self) -> bool {
        self.applied.is_empty() && self.newer.is_empty() && self.changed.is_empty()
    }

    /// The last contracting migration: a binary that lacks it would write wrong data.
    pub fn oldest_that_may_write(&self, migrations: &[Migration]) -> Option<String> {
        let newer = self.newer.iter().rev().find(|newer| newer.step == Step::Contract);
        let known = || {
            let is_applied = |migration: &&Migration| self.applied.contains(&migration.name);
            migrations.iter().rev().filter(is_applied).find(|known| known.step() == Step::Contract)
        };
        newer.map(|newer| newer.name.clone()).or_else(|| known().map(|known| known.name.to_owned()))
    }

    /// Why this binary may not use the tables; `None` when it may, once the missing migrations are applied.
    pub fn refusal(&self, service: &str) -> Option<String> {
        if let Some(name) = self.changed.first() {
            return Some(format!("the migration {name} was changed after it had been applied"));
        }
        let contracts = self.newer.iter().find(|newer| newer.step == Step::Contract);
        if let Some(newer) = contracts {
            return Some(newer.refusal(service, "versions that do not know it would write what is wrong"));
        }
        // Missing and unknown migrations together mean that the database was written by a diverged line of versions.
        let diverged = self.newer.first().filter(|_| !self.missing.is_empty())?;
        Some(diverged.refusal(service, "the database lacks what this version needs besides"))
    }

    /// The migrations to be applied.
    pub(super) fn to_apply(&self, service: &str) -> Result<&[Migration], Error> {
        match self.refusal(service) {
            Some(refusal) => Err(Error::config(refusal)),
            None => Ok(&self.missing),
        }
    }

    /// Logs that a newer version has expanded the database, which is expected during a rolling upgrade.
    pub(super) fn warn_of_newer(&self, service: &str) {
        for newer in &self.newer {
            tracing::warn!(
                service,
                migration = newer.name.as_str(),
                version = newer.version.as_deref(),
                "a newer version has expanded this database; this one goes on without what was added"
            );
        }
    }
}
