//! Checks the invariants of a service's tables.
//!
//! A service lists its invariants as statements that select violations; nothing is written. A search index is compared with
//! its documents in [`index`]. Each invariant comes with its repair, which [`mend`] applies on request (docs/adr/0102).

pub mod index;
mod mending;

use std::fmt;

pub use self::mending::{Repair, Report, begin, mend};
use crate::on_db;
use crate::sql::{Error, Statement, Tx};

/// How many violations of a rule are listed.
const MAX_LISTED: usize = 20;

/// One invariant.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// The invariant, for people.
    pub rule: &'static str,
    /// Selects one text for each violation.
    pub sql: &'static str,
    /// The repair of violations.
    pub mend: Mend,
}

/// The repair of violations of a rule. The statements change only violations, so they are idempotent.
#[derive(Debug, Clone, Copy)]
pub enum Mend {
    /// The correct value can be derived: nothing is lost.
    Restore {
        /// What is done, for people.
        does: &'static str,
        /// The statements, in order.
        sql: &'static [&'static str],
    },
    /// The correct value is lost.
    GiveUp {
        /// What is done, for people.
        does: &'static str,
        /// The statements, in order.
        sql: &'static [&'static str],
    },
    /// No automatic repair, for this reason, which is for people.
    ByHand(&'static str),
}

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static str,
    /// What violates it.
    pub subject: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "broken: {}: {}", self.rule, self.subject)
    }
}

/// Called with what is being checked.
pub type Progress<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// The statements of some checks, for [`crate::sql::prepare_all`].
pub fn statements(checks: &[Check]) -> Vec<Statement> {
    checks.iter().map(|check| check.sql.into()).collect()
}

/// The statements of the repairs of some checks, for [`crate::sql::prepare_all`].
pub fn mends(checks: &[Check]) -> Vec<Statement> {
    let statements = checks.iter().flat_map(|check| match check.mend {
        Mend::Restore { sql, .. } | Mend::GiveUp { sql, .. } => sql,
        Mend::ByHand(_) => &[],
    });
    statements.map(|sql| (*sql).into()).collect()
}

/// Runs checks in one transaction; returns at most 20 findings for each rule.
///
/// # Errors
/// When the database fails.
pub async fn run(tx: &mut Tx, checks: &[Check], progress: Progress<'_>) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    for check in checks {
        progress(check.rule);
        let subjects: Vec<(String,)> = on_db!(tx, |c| sqlx::query_as(check.sql).fetch_all(c).await)?;
        let described = |(subject,): (String,)| match check.mend {
            Mend::ByHand(why) => format!("{subject}: {why}"),
            Mend::Restore { .. } | Mend::GiveUp { .. } => subject,
        };
        let listed = subjects.into_iter().take(MAX_LISTED).map(described);
        findings.extend(listed.map(|subject| Finding { rule: check.rule, subject }));
    }
    Ok(findings)
}
