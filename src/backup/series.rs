//! `cairn backup --every`: one backup after the other, until somebody stops it.

use std::io::Write as _;
use std::time::Duration;

use anyhow::Context as _;
use cairn_chassis::shutdown;
use tokio::time::{Instant, sleep_until};

use super::keeping::Keeping;
use super::make;
use crate::cli::{BackupOptions, shown_span};

/// How often older ones are removed: for that every list that stays is read.
const THINNED_EVERY: Duration = Duration::from_secs(60 * 60);
/// How soon one that failed is tried again, where they are not made more often anyway.
const RETRY: Duration = Duration::from_secs(60);

/// Makes backups until SIGINT or SIGTERM. One that is under way then is given up, as if it were killed: it is none, and the
/// earlier ones stay as they are.
pub(super) async fn run(options: &BackupOptions, every: Duration, keeping: Keeping) -> anyhow::Result<()> {
    let stopped = shutdown::on_signal().context("cannot listen for signals")?;
    tokio::select! {
        () = stopped.cancelled() => Ok(()),
        failed = Box::pin(go_on(options, every, keeping)) => failed,
    }
}

/// Answers only when the first one fails, or when nobody can be told any more.
async fn go_on(options: &BackupOptions, every: Duration, keeping: Keeping) -> anyhow::Result<()> {
    let mut has_made = false;
    let mut thinned: Option<Instant> = None;
    loop {
        let begun = Instant::now();
        let is_to_thin = thinned.is_none_or(|at| begun - at >= THINNED_EVERY);
        let wait = match make(options, is_to_thin.then_some(keeping)).await {
            Ok(made) => {
                tell(options, &made, has_made)?;
                has_made = true;
                thinned = if is_to_thin { Some(begun) } else { thinned };
                every
            }
            // A wrong option is not tried for ever.
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

/// One line for each, or one object.
fn tell(options: &BackupOptions, made: &super::Made, is_known: bool) -> anyhow::Result<()> {
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
