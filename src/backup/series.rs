//! `cairn backup --every`: makes backups at an interval until it is stopped.

use std::io::Write as _;
use std::time::Duration;

use anyhow::Context as _;
use cairn_chassis::shutdown;
use tokio::time::{Instant, sleep_until};

use super::make;
use super::retention::Retention;
use crate::cli::{BackupOptions, shown_span};

/// How often the retention policy is applied, which reads every remaining manifest.
const PRUNE_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// The delay before a retry, unless the interval is shorter.
const RETRY: Duration = Duration::from_secs(60);

/// Makes backups until SIGINT or SIGTERM. A backup in progress is abandoned, as by a kill: it leaves no manifest, and
/// earlier ones are unaffected.
pub(super) async fn run(
    options: &BackupOptions,
    every: Duration,
    retention: Retention,
) -> anyhow::Result<()> {
    let stopped = shutdown::on_signal().context("cannot listen for signals")?;
    tokio::select! {
        () = stopped.cancelled() => Ok(()),
        failed = Box::pin(go_on(options, every, retention)) => failed,
    }
}

/// Returns only if the first backup fails, or if output can no longer be written.
async fn go_on(options: &BackupOptions, every: Duration, retention: Retention) -> anyhow::Result<()> {
    let mut has_made = false;
    let mut last_pruned: Option<Instant> = None;
    loop {
        let begun = Instant::now();
        let is_prune_due = last_pruned.is_none_or(|at| begun - at >= PRUNE_INTERVAL);
        let wait = match make(options, is_prune_due.then_some(retention)).await {
            Ok(made) => {
                tell(options, &made, has_made)?;
                has_made = true;
                last_pruned = if is_prune_due { Some(begun) } else { last_pruned };
                every
            }
            // An invalid option must not be retried for ever.
            Err(error) if !has_made => return Err(error),
            Err(error) => {
                let wait = every.min(RETRY);
                say(&format!("this backup failed, and is tried again in {}: {error:#}", shown_span(wait)));
                wait
            }
        };
        sleep_until(begun + wait).await;
    }
}

/// Prints a line, or a JSON object, for each backup.
fn tell(options: &BackupOptions, made: &super::BackupReport, is_known: bool) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if options.json {
        writeln!(out, "{}", made.in_json())?;
    } else if options.quiet {
        return Ok(());
    } else if is_known {
        made.tell_briefly(options, &mut out)?;
    } else {
        made.tell(options, &mut out)?;
    }
    Ok(out.flush()?)
}

#[expect(clippy::print_stderr, reason = "what failed is for whoever started the command")]
fn say(what: &str) {
    eprintln!("cairn: {what}");
}
