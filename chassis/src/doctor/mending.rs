//! Mends what breaks rules, in one transaction that the caller ends.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Check, Mend, Progress, SHOWN};
use crate::execute;
use crate::on_db;
use crate::sql::{Db, Engine, Error, Tx};

/// What one mend takes away may be what another rule asks for, so all are looked at again until nothing changes.
const ROUNDS: usize = 12;

/// Something that was mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mended {
    /// What did not hold.
    pub rule: Cow<'static, str>,
    /// Of what.
    pub subject: String,
    /// What was done.
    pub does: Cow<'static, str>,
    /// Whether something is gone for good.
    pub is_loss: bool,
}

/// What was mended: of each rule 20 things by name, and how many there were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    by_rule: BTreeMap<(Cow<'static, str>, Cow<'static, str>), OfRule>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct OfRule {
    subjects: Vec<String>,
    /// Beside those.
    further: u64,
    is_loss: bool,
}

impl OfRule {
    fn add(&mut self, subject: String) {
        if self.subjects.contains(&subject) {
            return;
        }
        if self.subjects.len() < SHOWN {
            self.subjects.push(subject);
        } else {
            self.further += 1;
        }
    }
}

impl Report {
    /// Adds something that was mended, unless it is told already.
    pub fn add(&mut self, mended: Mended) {
        let Mended { rule, subject, does, is_loss } = mended;
        let told = self.by_rule.entry((rule, does)).or_default();
        told.is_loss |= is_loss;
        told.add(subject);
    }

    /// Adds everything of another report.
    pub fn merge(&mut self, other: Self) {
        for (key, of_rule) in other.by_rule {
            let told = self.by_rule.entry(key).or_default();
            told.is_loss |= of_rule.is_loss;
            told.further += of_rule.further;
            of_rule.subjects.into_iter().for_each(|subject| told.add(subject));
        }
    }

    /// Whether nothing was mended.
    pub fn is_empty(&self) -> bool {
        self.by_rule.is_empty()
    }

    /// Everything in the order of rules; what is beyond 20 of one comes as a number.
    pub fn into_items(self) -> Vec<Mended> {
        let mut items = Vec::new();
        for ((rule, does), OfRule { subjects, further, is_loss }) in self.by_rule {
            let rest = (further > 0).then(|| format!("and {further} more"));
            items.extend(subjects.into_iter().chain(rest).map(|subject| Mended {
                rule: rule.clone(),
                subject,
                does: does.clone(),
                is_loss,
            }));
        }
        items
    }
}

/// Begins a transaction to mend in. On PostgreSQL it fails rather than undo what somebody writes meanwhile.
///
/// # Errors
/// When no connection can be had.
pub async fn begin(db: &Db) -> Result<Tx, Error> {
    let mut tx = db.begin_write().await?;
    match tx.engine() {
        // What is mended first may refer to what is mended next.
        Engine::Sqlite(c) => sqlx::query("PRAGMA defer_foreign_keys = ON").execute(c).await?.rows_affected(),
        Engine::Postgres(c) => {
            sqlx::raw_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").execute(c).await?.rows_affected()
        }
    };
    Ok(tx)
}

/// Mends what these checks find, and tells what.
///
/// # Errors
/// When the database fails; nothing is mended then, once the transaction is dropped.
pub async fn mend(
    tx: &mut Tx,
    checks: &[Check],
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<(), Error> {
    for _ in 0..ROUNDS {
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

/// Answers whether anything was changed.
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
    let mut touched = 0;
    for statement in statements {
        let statement: &'static str = statement;
        touched += execute!(tx, statement)?;
    }
    if touched == 0 {
        return Ok(false);
    }
    for (subject,) in subjects {
        report.add(Mended { rule: check.rule.into(), subject, does: does.into(), is_loss });
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
            report.add(Mended {
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
