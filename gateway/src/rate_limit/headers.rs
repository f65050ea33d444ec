//! The rate-limit headers: each check reports its window, and the response shows the last one reported.

use std::sync::{Arc, Mutex, PoisonError};

use http::{Extensions, HeaderMap, HeaderName, HeaderValue};

use super::WindowState;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const WINDOW: HeaderName = HeaderName::from_static("x-ratelimit-window");

/// The window that the response will show.
#[derive(Debug, Clone, Default)]
pub(crate) struct ShownWindow(Arc<Mutex<Option<Reported>>>);

#[derive(Debug, Clone, Copy)]
enum Reported {
    Unlimited,
    Limited(WindowState),
}

/// Reports the caller's tightest window; `None` when nothing is limited.
pub(super) fn report(request: &Extensions, state: Option<WindowState>) {
    if let Some(ShownWindow(shown)) = request.get() {
        let reported = state.map_or(Reported::Unlimited, Reported::Limited);
        *shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(reported);
    }
}

impl ShownWindow {
    /// Collects what is reported while a request is served.
    pub(crate) fn listen(request: &mut Extensions) -> Self {
        let shown = Self::default();
        request.insert(shown.clone());
        shown
    }

    /// Whether anything was reported, also that nothing is limited.
    pub(crate) fn is_reported(&self) -> bool {
        self.reported().is_some()
    }

    /// Writes the headers of the reported window, if there is one.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        if let Some(Reported::Limited(state)) = self.reported() {
            write(state, headers);
        }
    }

    fn reported(&self) -> Option<Reported> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the headers of a window.
pub(crate) fn write(state: WindowState, headers: &mut HeaderMap) {
    headers.insert(LIMIT, HeaderValue::from(state.limit));
    headers.insert(REMAINING, HeaderValue::from(state.remaining));
    headers.insert(RESET, HeaderValue::from(state.resets_in));
    headers.insert(WINDOW, HeaderValue::from_static(state.window.as_str()));
}
