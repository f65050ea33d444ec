//! Progress bars of a backup or a restore; shown on a terminal only.

use indicatif::{ProgressBar, ProgressStyle};

const BYTES: &str = "{msg:16} {bar:40} {bytes}/{total_bytes}  {eta} left";
const COUNT: &str = "{msg:16} {bar:40} {pos}/{len}  {eta} left";

/// Whether progress is shown. Without a terminal it never is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    is_quiet: bool,
}

impl Progress {
    pub(super) const fn new(is_quiet: bool) -> Self {
        Self { is_quiet }
    }

    /// A bar over the bytes of a file.
    pub(super) fn bytes(self, what: &str, bytes: u64) -> ProgressBar {
        self.bar(what, bytes, BYTES)
    }

    /// A bar over a number of items.
    pub(super) fn count(self, what: &str, things: usize) -> ProgressBar {
        self.bar(what, things as u64, COUNT)
    }

    fn bar(self, what: &str, length: u64, template: &str) -> ProgressBar {
        if self.is_quiet {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new(length).with_message(what.to_owned());
        match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }
}
