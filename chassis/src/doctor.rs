//! Checks of what must always hold of a service's tables, whatever happened to its processes.
//!
//! A service lists its invariants as statements that select what breaks them; nothing is written. What an index holds of a
//! service's documents is compared in [`index`].

pub mod index;

use std::fmt;

use crate::on_db;
use crate::sql::{Error, Statement, Tx};

/// More than these are counted by nobody: the rule is broken, and where to look is clear.
const SHOWN: usize = 20;

/// One invariant.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// What must hold, for people.
    pub rule: &'static str,
    /// Selects one text for each thing that breaks the rule.
    pub sql: &'static str,
}

/// Something that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What does not hold.
    pub rule: &'static str,
    /// Of what.
    pub subject: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "broken: {}: {}", self.rule, self.subject)
    }
}

/// Told what is being looked at.
pub type Progress<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// The statements of some checks, for [`crate::sql::prepare_all`].
pub fn statements(checks: &[Check]) -> Vec<Statement> {
    checks.iter().map(|check| check.sql.into()).collect()
}

/// Runs checks on what one transaction sees; at most 20 findings for each rule.
///
/// # Errors
/// When the database fails.
pub async fn run(tx: &mut Tx, checks: &[Check], progress: Progress<'_>) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    for check in checks {
        progress(check.rule);
        let subjects: Vec<(String,)> = on_db!(tx, |c| sqlx::query_as(check.sql).fetch_all(c).await)?;
        let shown = subjects.into_iter().take(SHOWN);
        findings.extend(shown.map(|(subject,)| Finding { rule: check.rule, subject }));
    }
    Ok(findings)
}
