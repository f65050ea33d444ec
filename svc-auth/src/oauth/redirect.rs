//! Redirect URIs: validation at registration, matching, and display.

use url::Url;

use crate::model::oauth_error::{Code, OauthError};

const MAX_REDIRECT_URIS: usize = 20;
const MAX_URI_BYTES: usize = 2_048;
/// Private-use schemes that are not reversed domain names (RFC 8252, section 7.1). An allow-list: anything else could
/// be `javascript:`.
const APP_SCHEMES: &[&str] = &["cursor", "vscode", "vscode-insiders", "windsurf", "zed"];

/// One invalid URI rejects the whole client: its responses could go there.
pub(super) fn check(uris: &[String]) -> Result<(), OauthError> {
    let refused = |message: String| Err(OauthError::new(Code::InvalidRedirectUri, "redirect_uris", message));
    if !(1..=MAX_REDIRECT_URIS).contains(&uris.len()) {
        return refused(format!("redirect_uris must hold 1 to {MAX_REDIRECT_URIS} URIs"));
    }
    for (place, uri) in uris.iter().enumerate() {
        if let Some(fault) = fault(uri) {
            return refused(format!("redirect_uris[{place}] {fault}"));
        }
    }
    Ok(())
}

/// Why a redirect URI cannot be registered; `None` if it can.
pub(super) fn fault(uri: &str) -> Option<&'static str> {
    if uri.len() > MAX_URI_BYTES {
        return Some("must have at most 2048 characters");
    }
    if !uri.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some("must be a URI without spaces");
    }
    let Ok(url) = Url::parse(uri) else {
        return Some("must be an absolute URI");
    };
    if uri.contains('#') {
        return Some("must have no fragment");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Some("must hold no user name or password");
    }
    match url.scheme() {
        "https" => None,
        "http" if loopback_parts(uri).is_some() => None,
        "http" => Some("must use https, unless its host is localhost, 127.0.0.1 or [::1]"),
        scheme if scheme.contains('.') || APP_SCHEMES.contains(&scheme) => None,
        _ => Some("must use https, http on loopback, or the scheme of an app such as com.example.app:"),
    }
}

/// Whether a redirect URI matches a registered one: the same text, except for the port of a loopback address, which
/// apps choose at run time (RFC 8252, section 7.3).
pub(super) fn matches(registered: &str, used: &str) -> bool {
    registered == used
        || matches!((loopback_parts(registered), loopback_parts(used)), (Some(one), Some(other)) if one == other)
}

/// Whether the response goes to a program on the user's own machine.
pub(super) fn is_loopback(uri: &str) -> bool {
    loopback_parts(uri).is_some()
}

/// The receiver of the response, for display: a host in its ASCII form, or the scheme of an app.
pub(super) fn shown(uri: &str) -> String {
    let Ok(url) = Url::parse(uri) else {
        return String::new();
    };
    match (url.scheme(), url.host_str(), url.port()) {
        ("https" | "http", Some(host), Some(port)) => format!("{host}:{port}"),
        ("https" | "http", Some(host), None) => host.to_owned(),
        (scheme, ..) => format!("{scheme}:"),
    }
}

/// Host and rest of an `http` URI on loopback, without the port. Works on the text: a parser would normalize different
/// texts to the same URI.
fn loopback_parts(uri: &str) -> Option<(&str, &str)> {
    let after_scheme = uri.strip_prefix("http://")?;
    let end = after_scheme.find(['/', '?']).unwrap_or(after_scheme.len());
    let (authority, rest) = after_scheme.split_at_checked(end)?;
    let host = ["localhost", "127.0.0.1", "[::1]"].into_iter().find(|host| authority.starts_with(host))?;
    let port = authority.strip_prefix(host)?;
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|number| number > 0 && !port.starts_with('+'));
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some((host, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_real_clients_register_is_taken() {
        for uri in [
            "https://claude.ai/api/mcp/auth_callback",
            "https://chatgpt.com/connector/oauth/abc",
            "cursor://anysphere.cursor-mcp/oauth/callback",
            "https://www.cursor.com/agents/mcp/oauth/callback",
            "http://localhost:8787/callback",
            "https://vscode.dev/redirect",
            "http://127.0.0.1:33418/",
            "http://127.0.0.1/",
            "http://[::1]:1/callback",
            "com.example.app:/callback",
        ] {
            assert_eq!(fault(uri), None, "{uri}");
        }
    }

    #[test]
    fn what_could_hurt_is_refused() {
        for uri in [
            "",
            "/callback",
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "http://tools.example/callback",
            "http://127.0.0.1.evil.example/",
            "http://localhost.evil.example/",
            "http://localhost@evil.example/",
            "http://127.0.0.1:99999/",
            "http://127.0.0.1:+80/",
            "https://user@tools.example/",
            "https://tools.example/#part",
            "https://tools.example/a b",
            "https://tools.example/\r\nSet-Cookie:x",
            "myapp://callback",
            &format!("https://tools.example/{}", "a".repeat(MAX_URI_BYTES)),
        ] {
            assert!(fault(uri).is_some(), "{uri}");
        }
    }

    #[test]
    fn only_the_port_of_loopback_may_differ() {
        let registered = "http://127.0.0.1:33418/callback";
        for used in
            ["http://127.0.0.1:33418/callback", "http://127.0.0.1:1/callback", "http://127.0.0.1/callback"]
        {
            assert!(matches(registered, used), "{used}");
        }
        for used in [
            "http://localhost:33418/callback",
            "http://127.0.0.1:33418/callback/",
            "http://127.0.0.1:33418/callback?x=1",
            "http://127.0.0.1:33418/a/../callback",
            "https://127.0.0.1:33418/callback",
            "http://127.0.0.1:33418@evil.example/callback",
            "http://127.0.0.1:x/callback",
            "HTTP://127.0.0.1/callback",
        ] {
            assert!(!matches(registered, used), "{used}");
        }
        assert!(!matches("https://tools.example/cb", "https://tools.example:8443/cb"));
        assert!(!matches("https://tools.example/cb", "https://tools.example/cb/"));
        assert!(matches("cursor://a/b", "cursor://a/b"));
    }

    #[test]
    fn a_person_reads_who_receives_the_answer() {
        for (uri, expected) in [
            ("https://claude.ai/api/mcp/auth_callback", "claude.ai"),
            ("https://tools.example:8443/cb", "tools.example:8443"),
            ("http://localhost:8787/callback", "localhost:8787"),
            ("cursor://anysphere.cursor-mcp/oauth/callback", "cursor:"),
            ("https://clаude.ai/cb", "xn--clude-5ve.ai"),
        ] {
            assert_eq!(shown(uri), expected);
        }
    }
}
