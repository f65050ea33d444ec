//! Checks of what must always hold of a service's tables, whatever happened to its processes.
//!
//! A service lists its invariants as statements that select what breaks them; nothing is written. What an index holds of a
//! service's documents is compared in [`index`]. Beside each invariant stands how it is mended, which [`mend`] does when that is
//! wanted (docs/adr/0102).

pub mod index;
mod mending;

use std::fmt;

pub use self::mending::{Mended, Report, begin, mend};
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
    /// What is done about what breaks it.
    pub mend: Mend,
}

/// What is done about what breaks a rule. Each statement leaves alone what breaks no rule, so that it can be repeated.
#[derive(Debug, Clone, Copy)]
pub enum Mend {
    /// What it should be follows from what is there: nothing is lost.
    Restore {
        /// What is done, for people.
        does: &'static str,
        /// Does it, one after the other.
        sql: &'static [&'static str],
    },
    /// What it was is not known any more.
    GiveUp {
        /// What is done, for people.
        does: &'static str,
        /// Does it, one after the other.
        sql: &'static [&'static str],
    },
    /// Nothing, for this reason, which is for people.
    ByHand(&'static str),
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

/// The statements that mend what some checks find, for [`crate::sql::prepare_all`].
pub fn mends(checks: &[Check]) -> Vec<Statement> {
    let statements = checks.iter().flat_map(|check| match check.mend {
        Mend::Restore { sql, .. } | Mend::GiveUp { sql, .. } => sql,
        Mend::ByHand(_) => &[],
    });
    statements.map(|sql| (*sql).into()).collect()
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
        let told = |(subject,): (String,)| match check.mend {
            Mend::ByHand(why) => format!("{subject}: {why}"),
            Mend::Restore { .. } | Mend::GiveUp { .. } => subject,
        };
        let shown = subjects.into_iter().take(SHOWN).map(told);
        findings.extend(shown.map(|subject| Finding { rule: check.rule, subject }));
    }
    Ok(findings)
}
