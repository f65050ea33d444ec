//! Progress on a terminal; nothing elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

const BAR: &str = "{msg:12} {bar:40} {pos}/{len}  {eta} left";
const SPINNER: &str = "{msg:12} {spinner} {elapsed}";
const REDRAW: Duration = Duration::from_millis(120);

/// Whether progress is shown. Without a terminal it never is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    pub(super) quiet: bool,
}

impl Progress {
    /// A bar with a known number of steps.
    pub(super) fn bar(self, what: &'static str, steps: usize) -> ProgressBar {
        self.styled(ProgressBar::new(steps as u64), what, BAR)
    }

    /// For work of unknown duration.
    pub(super) fn spinner(self, what: &'static str) -> ProgressBar {
        let spinner = self.styled(ProgressBar::new_spinner(), what, SPINNER);
        if !self.quiet {
            spinner.enable_steady_tick(REDRAW);
        }
        spinner
    }

    fn styled(self, bar: ProgressBar, what: &'static str, template: &str) -> ProgressBar {
        if self.quiet {
            return ProgressBar::hidden();
        }
        match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style).with_message(what),
            Err(_) => bar.with_message(what),
        }
    }
}
