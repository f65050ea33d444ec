//! Repairs violations, in one transaction that the caller commits.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Check, MAX_LISTED, Mend, Progress};
use crate::execute;
use crate::on_db;
use crate::sql::{Db, Engine, Error, Tx};

/// A repair may cause a violation of another rule, so all checks are repeated until nothing changes, at most this often.
const MAX_ROUNDS: usize = 12;

/// A repaired violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The rule.
    pub rule: Cow<'static, str>,
    /// What violated it.
    pub subject: String,
    /// What was done.
    pub does: Cow<'static, str>,
    /// Whether data was lost.
    pub is_loss: bool,
}

/// The repairs: for each rule up to 20 subjects, and the number of further ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    by_rule: BTreeMap<(Cow<'static, str>, Cow<'static, str>), RuleReport>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct RuleReport {
    subjects: Vec<String>,
    /// How many subjects are not listed.
    further: u64,
    is_loss: bool,
}

impl RuleReport {
    fn add(&mut self, subject: String) {
        if self.subjects.contains(&subject) {
            return;
        }
        if self.subjects.len() < MAX_LISTED {
            self.subjects.push(subject);
        } else {
            self.further += 1;
        }
    }
}

impl Report {
    /// Adds a repair, unless its subject is listed already.
    pub fn add(&mut self, mended: Repair) {
        let Repair { rule, subject, does, is_loss } = mended;
        let report = self.by_rule.entry((rule, does)).or_default();
        report.is_loss |= is_loss;
        report.add(subject);
    }

    /// Adds all repairs of another report.
    pub fn merge(&mut self, other: Self) {
        for (key, added) in other.by_rule {
            let report = self.by_rule.entry(key).or_default();
            report.is_loss |= added.is_loss;
            report.further += added.further;
            added.subjects.into_iter().for_each(|subject| report.add(subject));
        }
    }

    /// Whether nothing was repaired.
    pub fn is_empty(&self) -> bool {
        self.by_rule.is_empty()
    }

    /// All repairs in the order of rules; those beyond 20 of a rule as one item with their number.
    pub fn into_items(self) -> Vec<Repair> {
        let mut items = Vec::new();
        for ((rule, does), RuleReport { subjects, further, is_loss }) in self.by_rule {
            let rest = (further > 0).then(|| format!("and {further} more"));
            items.extend(subjects.into_iter().chain(rest).map(|subject| Repair {
                rule: rule.clone(),
                subject,
                does: does.clone(),
                is_loss,
            }));
        }
        items
    }
}

/// Begins a transaction for repairs. On PostgreSQL it is repeatable read, so it fails instead of overwriting concurrent
/// writes.
///
/// # Errors
/// When no connection is available.
pub async fn begin(db: &Db) -> Result<Tx, Error> {
    let mut tx = db.begin_write().await?;
    match tx.engine() {
        // A repaired row may reference one that is repaired later.
        Engine::Sqlite(c) => sqlx::query("PRAGMA defer_foreign_keys = ON").execute(c).await?.rows_affected(),
        Engine::Postgres(c) => {
            sqlx::raw_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").execute(c).await?.rows_affected()
        }
    };
    Ok(tx)
}

/// Repairs the violations of these checks, and adds them to the report.
///
/// # Errors
/// When the database fails; the repairs are rolled back when the transaction is dropped.
pub async fn mend(
    tx: &mut Tx,
    checks: &[Check],
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<(), Error> {
    for _ in 0..MAX_ROUNDS {
        let mut changed = false;
        for check in checks {
            changed |= mend_one(tx, check, report, progress).await?;
        }
        if !changed {
            break;
        }
    }
    Ok(())
}

/// Returns whether anything was changed.
async fn mend_one(
    tx: &mut Tx,
    check: &Check,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<bool, Error> {
    let (does, statements, is_loss) = match check.mend {
        Mend::Restore { does, sql } => (does, sql, false),
        Mend::GiveUp { does, sql } => (does, sql, true),
        Mend::ByHand(_) => return Ok(false),
    };
    let subjects: Vec<(String,)> = on_db!(tx, |c| sqlx::query_as(check.sql).fetch_all(c).await)?;
    if subjects.is_empty() {
        return Ok(false);
    }
    progress(check.rule);
    let mut changed = 0;
    for statement in statements {
        let statement: &'static str = statement;
        changed += execute!(tx, statement)?;
    }
    if changed == 0 {
        return Ok(false);
    }
    for (subject,) in subjects {
        report.add(Repair { rule: check.rule.into(), subject, does: does.into(), is_loss });
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_mended_is_told_by_name_up_to_a_bound() {
        let mut report = Report::default();
        for number in (0..25).chain(0..3) {
            report.add(Repair {
                rule: "a rule".into(),
                subject: format!("thing {number}"),
                does: "done".into(),
                is_loss: number == 7,
            });
        }
        let mut all = Report::default();
        all.merge(report);
        let items = all.into_items();
        assert_eq!(items.len(), 21);
        assert_eq!(items[20].subject, "and 5 more");
        assert!(items.iter().all(|item| item.is_loss));
    }
}
