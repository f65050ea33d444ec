//! Feedback: reports to the people who maintain a workspace, by mail, or stored for them to read if no mail is
//! configured. A report may be mailed to many people, so reports are rate limited.

use std::fmt::Write as _;
use std::time::Duration;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::Identity;
use cairn_chassis::sql::Db;
use cairn_chassis::status::Violation;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::domain::limits::FEEDBACK_CHARS;
pub(crate) use cairn_proto::domain::{FeedbackCategory as Category, FeedbackChannel as Channel};
use cairn_proto::ids::{UserId, WorkspaceId};
use futures::StreamExt as _;
use serde_json::Value;

use crate::error::Error;
use crate::mail::Mailer;
use crate::model::feedback::{Entry, Reporter};
use crate::model::workspaces::Workspace;
use crate::store;
use crate::workspaces::{self, require_manager, require_member};

const MAX_CONTEXT_BYTES: usize = 10 * 1024;
/// Below the gateway's request timeout, so that the caller learns that delivery failed.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(8);
const DELIVERY_CONCURRENCY: usize = 4;
const HOUR: Duration = Duration::from_secs(60 * 60);
/// Reports of one token per hour (contract).
const MAX_PER_CALLER: i64 = 10;
/// Reports of a workspace per hour, over all callers (contract).
const MAX_PER_WORKSPACE: i64 = 30;
/// How many stored reports a workspace keeps, the newest: at most 8 MB.
const MAX_KEPT: i64 = 500;

/// How a report was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// At least one owner or admin was mailed.
    Mailed,
    /// Mail is not configured: owners and admins read it in the list.
    Stored,
}

/// A submitted report.
pub(crate) struct Report {
    pub(crate) message: String,
    pub(crate) category: Category,
    /// A JSON object as text.
    pub(crate) context: Option<String>,
    pub(crate) channel: Channel,
}

/// The rules of feedback.
#[derive(Debug)]
pub(crate) struct Feedback {
    pub(crate) db: Db,
    pub(crate) ambient: Ambient,
    pub(crate) mailer: Option<Mailer>,
}

impl Feedback {
    /// Delivers a report to the owners and admins of the caller's workspace.
    pub(crate) async fn submit(
        &self,
        caller: &Identity,
        workspace: WorkspaceId,
        report: &Report,
    ) -> Result<Delivery, Error> {
        let context = check(report)?;
        let found = store::workspaces::find(&self.db, workspace).await?;
        let workspace = found.ok_or_else(workspaces::not_found)?;
        self.record(caller, workspace.id, report).await?;
        let (category, channel) = (report.category.as_str(), report.channel.as_str());
        let Some(mailer) = &self.mailer else {
            // Somebody is waiting for a reaction, so the operator should notice.
            tracing::warn!(
                workspace.id = %workspace.id, category, channel,
                "feedback was received and stored, and mailed to nobody: CAIRN_SMTP_URL is not set"
            );
            return Ok(Delivery::Stored);
        };
        let recipients = store::feedback::list_managers(&self.db, workspace.id).await?;
        let subject = format!("Feedback on {}: {}", workspace.name, category_text(report.category));
        let text = compose(caller, &workspace, report, context.as_ref());
        let mailed = deliver(mailer, &recipients, &subject, &text).await;
        tracing::info!(workspace.id = %workspace.id, mailed, of = recipients.len(), "feedback was mailed");
        if mailed == 0 { Err(Error::DeliveryFailed) } else { Ok(Delivery::Mailed) }
    }

    /// Counts a report against the rate limits; stores it if mail is not configured. A report counts even if its mail
    /// does not arrive.
    async fn record(&self, caller: &Identity, workspace: WorkspaceId, report: &Report) -> Result<(), Error> {
        let now = self.ambient.clock.now();
        let reporter = Reporter {
            kind: caller.principal.kind.as_str().to_owned(),
            id: caller.principal.id.clone(),
            name: caller.principal.name.clone(),
        };
        let mut tx = self.db.begin_write().await?;
        // Serializes concurrent reports, so that each sees the others.
        tx.lock_name(&format!("cairn:feedback:{workspace}")).await?;
        let (all, own) = store::feedback::count(&mut tx, workspace, hour_before(now), &reporter).await?;
        if own >= MAX_PER_CALLER {
            return Err(Error::TooMuchFeedback { whose: "this token", most: MAX_PER_CALLER });
        }
        if all >= MAX_PER_WORKSPACE {
            return Err(Error::TooMuchFeedback {
                whose: "the callers of a workspace together",
                most: MAX_PER_WORKSPACE,
            });
        }
        let is_kept = self.mailer.is_none();
        let entry = Entry {
            id: self.ambient.ids.next(),
            created_at: now,
            reporter,
            category: report.category,
            channel: report.channel,
            message: is_kept.then(|| report.message.clone()),
            context: report.context.clone().filter(|_| is_kept),
        };
        store::feedback::insert(&mut tx, workspace, &entry).await?;
        if is_kept {
            store::feedback::keep_newest(&mut tx, workspace, MAX_KEPT).await?;
        }
        Ok(tx.commit().await?)
    }

    /// The stored reports, newest first, for an owner or admin.
    pub(crate) async fn list(&self, user: UserId, workspace: WorkspaceId) -> Result<Vec<Entry>, Error> {
        let mut tx = self.db.begin_read().await?;
        let held = require_member(&mut tx, user, workspace).await?.role;
        require_manager(held, "reading feedback")?;
        let listed = store::feedback::list(&mut tx, workspace, MAX_KEPT).await?;
        tx.commit().await?;
        Ok(listed)
    }

    /// Deletes the records of mailed reports that no longer count.
    pub(crate) async fn purge(&self) -> Result<(), Error> {
        Ok(store::feedback::delete_mailed(&self.db, hour_before(self.ambient.clock.now())).await?)
    }
}

fn hour_before(now: Timestamp) -> Timestamp {
    Timestamp::from_seconds(now.as_seconds() - HOUR.as_secs().cast_signed())
}

/// The number of recipients that were mailed. Each gets a separate mail, so that a rejected address does not affect the
/// others.
async fn deliver(mailer: &Mailer, recipients: &[String], subject: &str, text: &str) -> usize {
    let mut mailed = 0;
    let sending = futures::stream::iter(recipients.to_vec())
        .map(|to| async move { mailer.send(&to, subject, text).await })
        .buffer_unordered(DELIVERY_CONCURRENCY)
        .for_each(|sent| {
            match sent {
                Ok(()) => mailed += 1,
                Err(error) => tracing::warn!(%error, "feedback cannot be mailed to one of its recipients"),
            }
            std::future::ready(())
        });
    if tokio::time::timeout(DELIVERY_TIMEOUT, sending).await.is_err() {
        tracing::warn!("the mail server is too slow; feedback was not mailed to all of its recipients");
    }
    mailed
}

/// Parses the context as JSON.
fn check(report: &Report) -> Result<Option<Value>, Error> {
    let mut violations = Vec::new();
    if report.message.trim().is_empty() {
        violations.push(Violation::new("message", "required", wording::EMPTY));
    }
    if report.message.chars().count() > FEEDBACK_CHARS {
        let message = wording::at_most(FEEDBACK_CHARS, Unit::Characters);
        violations.push(Violation::new("message", "too_long", message));
    }
    let context = report.context.as_deref().and_then(|text| read_context(text, &mut violations));
    if violations.is_empty() { Ok(context) } else { Err(Error::Invalid(violations)) }
}

fn read_context(text: &str, violations: &mut Vec<Violation>) -> Option<Value> {
    if text.len() > MAX_CONTEXT_BYTES {
        let message =
            format!("{} as JSON; it has {}", wording::at_most(MAX_CONTEXT_BYTES, Unit::Bytes), text.len());
        violations.push(Violation::new("context", "too_long", message));
        return None;
    }
    let read = serde_json::from_str(text).ok().filter(Value::is_object);
    if read.is_none() {
        violations.push(Violation::new("context", "invalid", "must be a JSON object"));
    }
    read
}

fn compose(caller: &Identity, workspace: &Workspace, report: &Report, context: Option<&Value>) -> String {
    let mut text = format!(
        "{} ({}) reported over {}:\n\n{}\n\n-- \nCategory: {}\nWorkspace: {} ({})\n",
        caller.principal.name,
        caller.principal.kind.as_str(),
        channel_text(report.channel),
        report.message,
        category_text(report.category),
        workspace.name,
        workspace.id,
    );
    if let Some(context) = context {
        // Writing to a String cannot fail.
        let _ = write!(text, "Context:\n{context:#}\n");
    }
    text
}

/// For people.
fn category_text(category: Category) -> String {
    category.as_str().replace('_', " ")
}

/// For people.
const fn channel_text(channel: Channel) -> &'static str {
    match channel {
        Channel::Rest => "the REST API",
        Channel::Cli => "the command line",
        Channel::Mcp => "MCP",
        Channel::Grpc => "gRPC",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(message: &str, context: Option<&str>) -> Vec<(String, String)> {
        let report = Report {
            message: message.to_owned(),
            category: Category::Other,
            context: context.map(ToOwned::to_owned),
            channel: Channel::Rest,
        };
        match check(&report) {
            Ok(_) => Vec::new(),
            Err(Error::Invalid(found)) => found.into_iter().map(|one| (one.path, one.code)).collect(),
            Err(other) => panic!("{other}"),
        }
    }

    /// A JSON object of exactly `bytes` bytes.
    fn object(bytes: usize) -> String {
        format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8))
    }

    #[test]
    fn the_limits_are_exact() {
        assert_eq!(codes(&"ä".repeat(5_000), Some(&object(10_240))), []);
        let both = [("message", "too_long"), ("context", "too_long")];
        let both = both.map(|(path, code)| (path.to_owned(), code.to_owned()));
        assert_eq!(codes(&"ä".repeat(5_001), Some(&object(10_241))), both);
    }

    #[test]
    fn a_report_says_something_and_its_context_is_an_object() {
        assert_eq!(codes(" \n", None)[0].1, "required");
        for odd in ["", "[]", "\"x\"", "{", "null"] {
            assert_eq!(codes("m", Some(odd)), [("context".to_owned(), "invalid".to_owned())], "{odd}");
        }
        assert_eq!(codes("m", Some("{}")), []);
    }
}
