//! The HTML document and its security policy. Nothing is inline: neither style nor script.

use axum::response::{IntoResponse as _, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use maud::{DOCTYPE, Markup, html};

use super::assets;
use super::look::Look;

/// The content policy of console pages. Only the module that swaps fragments creates HTML from text (Trusted Types).
pub(crate) const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
     frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types cairn",
);
/// The content policy of read-only pages.
pub(crate) const READING: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);
/// The modules of an interactive page: the render-blocking one, and the rest.
pub(crate) const MODULES: [&str; 2] = [assets::FIRST_JS, assets::APP_JS];
const SPECULATION_RULES: HeaderName = HeaderName::from_static("speculation-rules");

/// The head and body attributes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Document<'a> {
    /// The title before "Cairn".
    pub(crate) title: &'a str,
    /// The class of the body, which selects the layout.
    pub(crate) class: &'a str,
    /// The URLs of the modules.
    pub(crate) modules: &'a [&'static str],
    pub(crate) look: Look,
}

impl Document<'_> {
    /// The document with this body. The caller sets the policies.
    pub(crate) fn around(&self, status: StatusCode, body: &Markup) -> Response {
        let Look { theme, density, keys } = self.look;
        let document = html! {
            (DOCTYPE)
            html lang="en" data-theme=[theme.attribute()] data-density=[density.attribute()] data-keys=[keys.attribute()] {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) " – Cairn" }
                    link rel="icon" type="image/svg+xml" href=(assets::ICON_SVG);
                    link rel="stylesheet" href=(assets::APP_CSS);
                    @for module in self.modules {
                        // Only this module blocks rendering.
                        script type="module" src=(module) blocking=[(*module == assets::FIRST_JS).then_some("render")] {}
                    }
                }
                body class=(self.class) { (body) }
            }
        };
        let html = HeaderValue::from_static("text/html; charset=utf-8");
        (status, [(header::CONTENT_TYPE, html)], document.into_string()).into_response()
    }
}

/// Sets the security headers of a console page.
pub(crate) fn guard(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // With `no-referrer`, browsers send `Origin: null` with our own forms, which we reject.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    if let Ok(rules) = HeaderValue::from_str(&format!("\"{}\"", assets::RULES_JSON)) {
        headers.insert(SPECULATION_RULES, rules);
    }
}
