//! Under which address the caller reached us: the issuer, and what every address in the metadata begins with.

use http::HeaderMap;

use crate::app::App;

/// The address without a slash at its end; `None` when neither the configuration nor a loopback `Host` says it.
///
/// The configured one, except on loopback: clients compare the resource with what their user typed, and a machine has
/// several names for its loopback.
pub(crate) fn base_url(app: &App, headers: &HeaderMap) -> Option<String> {
    app.origins.loopback_address(headers).or_else(|| Some(app.links.to("")).filter(|base| !base.is_empty()))
}
