//! The state of an import or sync run in words, with its actions.

use cairn_chassis::status::{Problem, Reason};
use cairn_proto::content::v1::Author;
use cairn_proto::domain::{Permission, RunStatus};
use http::request::Parts;
use maud::{Markup, html};

use super::frame::Page;
use super::parts::{self as part, Tone};
use super::visitor::Visitor;
use super::words;
use crate::error::Error;

/// What all kinds of runs have in common.
#[derive(Debug)]
pub(super) struct RunSummary<'a> {
    /// The URL of its page.
    pub(super) address: &'a str,
    pub(super) status: RunStatus,
    pub(super) total: u64,
    pub(super) processed: u64,
    /// The warnings known so far.
    pub(super) warnings: u64,
    pub(super) place: Option<u64>,
    pub(super) error: Option<&'a str>,
    pub(super) by: Option<&'a Author>,
    pub(super) created_at: &'a str,
    pub(super) started_at: Option<&'a str>,
    pub(super) finished_at: Option<&'a str>,
    pub(super) rollback_until: Option<&'a str>,
}

/// The badge of a status.
pub(super) fn badge(status: RunStatus) -> Markup {
    let (tone, word) = match status {
        RunStatus::Ready => (Tone::Plain, "Ready"),
        RunStatus::Queued => (Tone::Plain, "Queued"),
        RunStatus::Running => (Tone::Plain, "Running"),
        RunStatus::Completed => (Tone::Ok, "Completed"),
        RunStatus::CompletedWithWarnings => (Tone::Warn, "Completed with warnings"),
        RunStatus::Failed => (Tone::Wrong, "Failed"),
        RunStatus::Cancelled => (Tone::Plain, "Cancelled"),
        RunStatus::RolledBack => (Tone::Plain, "Rolled back"),
    };
    part::badge(tone, word)
}

/// The author of the run.
pub(super) fn by(author: Option<&Author>) -> Markup {
    html! {
        @match author {
            Some(author) => bdi { (author.name) },
            None => span.quiet { "not known" },
        }
    }
}

impl RunSummary<'_> {
    /// Whether the run is queued or in progress, so that its page polls.
    pub(super) const fn is_busy(&self) -> bool {
        matches!(self.status, RunStatus::Queued | RunStatus::Running)
    }

    /// The state, the progress, and the author with the time.
    pub(super) fn markup(&self) -> Markup {
        html! {
            p { (badge(self.status)) " " (self.sentence()) }
            @if self.status == RunStatus::Running { (self.progress()) }
            @if self.status == RunStatus::Failed {
                p.notice { (words::sentence(self.error.unwrap_or("it ended early"))) }
            }
            dl.facts {
                dt { "Asked for by" } dd { (by(self.by)) }
                dt { "Previewed" } dd { (part::time(self.created_at)) }
                dt { "Started" } dd { (part::time_or(self.started_at, "not yet")) }
                @if let Some(finished) = self.finished_at { dt { "Ended" } dd { (part::time(finished)) } }
            }
        }
    }

    fn sentence(&self) -> String {
        let began = self.started_at.is_some();
        match self.status {
            RunStatus::Ready => "It was previewed. Nothing is written until it is started.".to_owned(),
            RunStatus::Queued => match self.place {
                Some(place) => format!(
                    "It waits for its turn: place {} among the runs of this workspace.",
                    words::grouped(place)
                ),
                None => "It waits for its turn.".to_owned(),
            },
            RunStatus::Running => "It is under way.".to_owned(),
            RunStatus::Completed => "All of it was done.".to_owned(),
            RunStatus::CompletedWithWarnings => {
                "All that could be done was done; the warnings say what to look at.".to_owned()
            }
            RunStatus::Failed => {
                "It ended early. What it wrote so far is there; it can go on where it stopped.".to_owned()
            }
            RunStatus::Cancelled if began => {
                "It was cancelled. What it wrote so far is there; it can go on where it stopped.".to_owned()
            }
            RunStatus::Cancelled => "It was cancelled before it wrote anything.".to_owned(),
            RunStatus::RolledBack => {
                "What it did was taken back. What was changed since stayed as it is.".to_owned()
            }
        }
    }

    fn progress(&self) -> Markup {
        let done = self.processed.min(self.total);
        html! {
            p {
                progress aria-label="Done" value=(done) max=(self.total.max(1)) {}
                " " (words::grouped(done)) " of " (words::grouped(self.total))
                @if self.warnings > 0 { " · " (words::count(self.warnings, "warning", "warnings")) }
            }
        }
    }

    /// Start or Resume, and Cancel, with the permission to write.
    pub(super) fn forms(&self, visitor: &Visitor) -> Markup {
        let (base, began) = (self.address, self.started_at.is_some());
        let is_startable = self.status.is_startable();
        let is_cancellable = self.is_busy() || self.status == RunStatus::Ready;
        html! {
            @if visitor.may(Permission::Write) {
                @if is_startable {
                    form.inline method="post" action={ (base) "/start" } {
                        button.primary type="submit" { @if began { "Resume" } @else { "Start" } }
                    }
                }
                @if is_cancellable { (part::action(&format!("{base}/cancel"), "Cancel", "", &[])) }
            }
        }
    }

    /// Roll back, with the permission to delete, while that is possible. `told` describes the effect.
    pub(super) fn rollback(&self, visitor: &Visitor, told: &Markup) -> Markup {
        let Some(until) = self.rollback_until.filter(|until| *until > visitor.now().to_rfc3339().as_str())
        else {
            return html! {};
        };
        if !visitor.may(Permission::Delete) || self.is_busy() || self.status == RunStatus::RolledBack {
            return html! {};
        }
        let told = html! { (told) p { "It can be rolled back until " (part::time(until)) "." } };
        html! {
            (part::opens("roll-back", "Roll back", ""))
            (part::dialog("roll-back", "Roll back this run?", &told, &format!("{}/rollback", self.address), "Roll back", &html! {}))
        }
    }
}

/// A tab: a list of the page with its URL and count, and whether it is selected.
pub(super) struct Tab {
    pub(super) address: String,
    pub(super) label: String,
    pub(super) count: u64,
    pub(super) is_shown: bool,
}

pub(super) fn tabs(name: &str, tabs: &[Tab]) -> Markup {
    html! {
        nav.tabs aria-label=(name) {
            @for tab in tabs {
                a href=(tab.address) aria-current=[tab.is_shown.then_some("page")] { (tab.label) " " span.quiet { (words::grouped(tab.count)) } }
            }
        }
    }
}

/// The last value of a query parameter; empty without one.
pub(super) fn query_param(parts: &Parts, name: &str) -> String {
    let query = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
    query.filter(|(of, _)| of == name).last().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

/// Whether a refused action on a run is reported on the run's page: its state does not allow the action, or the plan
/// has no room for it.
pub(super) const fn is_told_there(problem: &Problem) -> bool {
    matches!(
        problem.reason,
        Reason::RunBusy
            | Reason::RunNotStartable
            | Reason::RunNotRevertible
            | Reason::RunNotCancellable
            | Reason::LimitExceeded
            | Reason::PayloadTooLarge
            | Reason::ValidationError
    )
}

/// The error at the top of the page.
pub(super) fn problem(problem: Option<&Problem>) -> Markup {
    let Some(known) = problem else { return html! {} };
    if known.reason != Reason::LimitExceeded {
        return part::summary(problem, &[("archive", "Archive"), ("folderId", "Folder")]);
    }
    html! {
        div #problem .problem role="alert" tabindex="-1" autofocus {
            h2 { "The plan of this workspace has no room for it. Nothing was written." }
            ul {
                @for limit in &known.violations {
                    li { (limit_named(&limit.path)) ": " (limit.message) "." }
                }
            }
            p { (words::ROOM) }
        }
    }
}

fn limit_named(path: &str) -> &str {
    match path {
        "files" => "Files",
        "storageBytes" => "Storage",
        "documents" => "Documents of one sync",
        other => other,
    }
}

/// The page with its error and the error's status.
pub(super) fn with_problem<'a>(page: Page<'a>, problem: Option<&Problem>) -> Page<'a> {
    match problem {
        Some(problem) => page.with_error(Error::from(problem.clone()).status),
        None => page,
    }
}

#[cfg(test)]
mod tests {
    use cairn_chassis::status::Violation;

    use super::*;

    fn summary(status: RunStatus) -> RunSummary<'static> {
        RunSummary {
            address: "/w/1/sync/2",
            status,
            total: 1_204,
            processed: 312,
            warnings: 3,
            place: Some(2),
            error: Some("the <folder> is gone"),
            by: None,
            created_at: "2026-11-23T14:05:09Z",
            started_at: None,
            finished_at: None,
            rollback_until: None,
        }
    }

    #[test]
    fn every_state_is_told_in_a_sentence() {
        for status in RunStatus::ALL {
            let html = summary(status).markup().into_string();
            assert!(html.contains("class=\"badge") && html.contains("not yet"), "{html}");
            assert_eq!(html.contains("<progress"), status == RunStatus::Running, "{html}");
            assert_eq!(html.contains("The &lt;folder&gt; is gone."), status == RunStatus::Failed, "{html}");
        }
        let running = summary(RunStatus::Running).markup().into_string();
        assert!(running.contains("312 of 1\u{202f}204 · 3 warnings"), "{running}");
        let queued = summary(RunStatus::Queued).markup().into_string();
        assert!(queued.contains("place 2 among the runs of this workspace"), "{queued}");
    }

    #[test]
    fn a_plan_that_is_full_is_told_by_what_is_full() {
        let limit = Violation::new("files", "limit_exceeded", "1 of 1 are used, and this would add 1");
        let full = Problem { violations: vec![limit], ..Problem::new(Reason::LimitExceeded, "x") };
        let html = problem(Some(&full)).into_string();
        assert!(html.contains("Files: 1 of 1 are used, and this would add 1."), "{html}");
        assert!(is_told_there(&full) && !is_told_there(&Problem::not_found("x")));
    }
}
