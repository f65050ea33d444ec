//! What a database has of a service's migrations: what is missing, what a newer version has added, and what follows for
//! a binary that would start on it.

use super::migrate::{self, Migration, Step};
use super::{Config, Db, Error};

/// The tables of a service, as this binary knows them.
#[derive(Debug, Clone, Copy)]
pub struct Tables {
    /// The service, and its schema on PostgreSQL.
    pub service: &'static str,
    /// What makes them, in order.
    pub migrations: &'static [Migration],
}

impl Tables {
    /// How they stand in a database; nothing is made or written. `None` when they are not there.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn standing(self, config: &Config) -> Result<Option<Standing>, Error> {
        Standing::of(config, self.service, self.migrations).await
    }
}

/// A migration that a newer version has applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Its name.
    pub name: String,
    /// What it means for a binary that does not know it.
    pub step: Step,
    /// The release that applied it, where that was recorded.
    pub version: Option<String>,
}

impl Applied {
    fn refused_for(&self, service: &str, why: &str) -> String {
        let by = self.version.as_ref().map(|version| format!(" (Cairn {version})")).unwrap_or_default();
        format!(
            "the database of {service} has the migration {}, which this version does not know: it was written by a newer \
             one{by}, and {why}; start that version or a newer one, or restore a backup from before the upgrade",
            self.name
        )
    }
}

/// How a service's tables stand to this binary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// What both have.
    pub applied: Vec<&'static str>,
    /// What this binary would apply, in its order.
    pub missing: Vec<Migration>,
    /// What this binary does not know.
    pub newer: Vec<Applied>,
    /// What has the name of a known one and did something else.
    pub changed: Vec<String>,
}

impl Standing {
    /// How the tables of a service stand; nothing is made or written. `None` when there are none.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn of(
        config: &Config,
        service: &'static str,
        migrations: &[Migration],
    ) -> Result<Option<Self>, Error> {
        let Some(db) = Db::look_at(config, service)? else { return Ok(None) };
        let found = migrate::standing(&db, migrations).await;
        db.close().await;
        found.map(|found| Some(found).filter(|found| !found.is_empty()))
    }

    /// Whether the database has no table of the service.
    pub fn is_empty(&self) -> bool {
        self.applied.is_empty() && self.newer.is_empty() && self.changed.is_empty()
    }

    /// The last migration that a binary must know to write here: what it contracts, older ones would write wrongly.
    pub fn oldest_that_may_write(&self, migrations: &[Migration]) -> Option<String> {
        let newer = self.newer.iter().rev().find(|newer| newer.step == Step::Contract);
        let known = || {
            let is_applied = |migration: &&Migration| self.applied.contains(&migration.name);
            migrations.iter().rev().filter(is_applied).find(|known| known.step() == Step::Contract)
        };
        newer.map(|newer| newer.name.clone()).or_else(|| known().map(|known| known.name.to_owned()))
    }

    /// Why this binary may not work with the tables; nothing when it may, after it has applied what is missing.
    pub fn refusal(&self, service: &str) -> Option<String> {
        if let Some(name) = self.changed.first() {
            return Some(format!("the migration {name} was changed after it had been applied"));
        }
        let contracts = self.newer.iter().find(|newer| newer.step == Step::Contract);
        if let Some(newer) = contracts {
            return Some(
                newer.refused_for(service, "versions that do not know it would write what is wrong"),
            );
        }
        // Tables that lack something of ours and have something unknown are of another line of versions.
        let other_line = self.newer.first().filter(|_| !self.missing.is_empty())?;
        Some(other_line.refused_for(service, "the database lacks what this version needs besides"))
    }

    /// What is to be applied.
    pub(super) fn to_apply(&self, service: &str) -> Result<&[Migration], Error> {
        match self.refusal(service) {
            Some(refusal) => Err(Error::config(refusal)),
            None => Ok(&self.missing),
        }
    }

    /// Says that a newer version has been here, which is as it should be in the middle of an upgrade.
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
