//! The resource of tokens (RFC 8707): the MCP endpoint of the deployment, or its whole API, in the spellings that
//! clients use.

use url::{Host, Url};

use crate::model::oauth_error::{Code, OauthError};

const LOOPBACK: &str = "localhost";

/// A part of the deployment that tokens can be issued for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// The MCP endpoint.
    Mcp,
    /// The REST API and the MCP endpoint, for the command line.
    Api,
}

impl Door {
    const fn path(self) -> &'static str {
        match self {
            Self::Mcp => "/mcp",
            Self::Api => "/api",
        }
    }
}

/// A normalized address, for comparison and storage.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Address {
    scheme: String,
    host: String,
    port: u16,
    /// Without a trailing slash.
    path: String,
}

impl Address {
    fn read(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok()?;
        let is_plain = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        if !is_plain || !matches!(url.scheme(), "https" | "http") {
            return None;
        }
        let host = url.host()?;
        let is_loopback = match &host {
            Host::Domain(name) => *name == LOOPBACK,
            Host::Ipv4(ip) => ip.is_loopback(),
            Host::Ipv6(ip) => ip.is_loopback(),
        };
        Some(Self {
            scheme: url.scheme().to_owned(),
            // The names of loopback are the same host, as in the gateway's origin check.
            host: if is_loopback { LOOPBACK.to_owned() } else { host.to_string() },
            port: url.port_or_known_default()?,
            path: url.path().trim_end_matches('/').to_owned(),
        })
    }
}

/// A resource of the deployment at this address, in its stored form; `None` if the address is invalid.
fn of(base_url: &str, door: Door) -> Option<String> {
    let Address { scheme, host, port, path } = Address::read(base_url)?;
    Some(format!("{scheme}://{host}:{port}{path}{}", door.path()))
}

/// Whether a token for this resource, in its stored form, is valid at this part of the deployment.
pub(super) fn opens(resource: &str, base_url: &str, door: Door) -> bool {
    let is = |door| of(base_url, door).as_deref() == Some(resource);
    match door {
        Door::Mcp => is(Door::Mcp) || is(Door::Api),
        Door::Api => is(Door::Api),
    }
}

/// The requested resource. Clients name the MCP endpoint with or without `/mcp` and a slash, and older ones not at all;
/// a request that includes the API gets the API.
pub(super) fn check(resources: &[String], base_url: &str) -> Result<String, OauthError> {
    let refused = || {
        let message = "resource must be the address of this server's MCP endpoint or of its API, as their metadata name it";
        OauthError::new(Code::InvalidTarget, "resource", message)
    };
    let base = Address::read(base_url).ok_or_else(refused)?;
    let below = |door: Door| Address { path: format!("{}{}", base.path, door.path()), ..base.clone() };
    let (mcp, api) = (below(Door::Mcp), below(Door::Api));
    let mut door = Door::Mcp;
    for resource in resources {
        match Address::read(resource) {
            Some(asked) if asked == api => door = Door::Api,
            Some(asked) if asked == base || asked == mcp => {}
            Some(_) | None => return Err(refused()),
        }
    }
    of(base_url, door).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(resource: &str, base: &str) -> Result<String, OauthError> {
        check(&[resource.to_owned()], base)
    }

    #[test]
    fn the_forms_that_clients_send_are_one() {
        let base = "https://cairn.example";
        let expected = "https://cairn.example:443/mcp";
        assert_eq!(check(&[], base).unwrap(), expected);
        for form in [
            "https://cairn.example",
            "https://cairn.example/",
            "https://cairn.example/mcp",
            "https://cairn.example/mcp/",
            "https://Cairn.Example:443/mcp",
        ] {
            assert_eq!(asked(form, base).unwrap(), expected, "{form}");
        }
        assert_eq!(
            asked("http://localhost:8700/mcp", "http://127.0.0.1:8700").unwrap(),
            "http://localhost:8700/mcp"
        );
        assert!(asked("https://cairn.example/team/mcp", "https://cairn.example/team/").is_ok());
    }

    #[test]
    fn the_api_is_a_resource_that_opens_the_endpoint_too() {
        let base = "https://cairn.example";
        let api = asked("https://cairn.example/api/", base).unwrap();
        assert_eq!(api, "https://cairn.example:443/api");
        let both = ["https://cairn.example/mcp".to_owned(), "https://cairn.example/api".to_owned()];
        assert_eq!(check(&both, base).unwrap(), api);
        let mcp = asked("https://cairn.example/mcp", base).unwrap();
        assert!(opens(&api, base, Door::Api) && opens(&api, base, Door::Mcp) && opens(&mcp, base, Door::Mcp));
        assert!(!opens(&mcp, base, Door::Api));
        assert!(!opens(&api, "https://other.example", Door::Api) && !opens(&mcp, "", Door::Mcp));
    }

    #[test]
    fn other_resources_are_refused() {
        for odd in [
            "",
            "cairn.example",
            "http://cairn.example/mcp",
            "https://cairn.example:8443/mcp",
            "https://cairn.example/mcp?a=b",
            "https://cairn.example/mcp#part",
            "https://user@cairn.example/mcp",
            "https://cairn.example/MCP",
            "https://cairn.example/mcp/x",
            "https://cairn.example/api/v1",
            "https://cairn.example.evil/mcp",
            "ftp://cairn.example/mcp",
        ] {
            assert_eq!(asked(odd, "https://cairn.example").unwrap_err().code, Code::InvalidTarget, "{odd}");
        }
        let both = ["https://cairn.example/mcp".to_owned(), "https://evil.example/mcp".to_owned()];
        assert!(check(&both, "https://cairn.example").is_err());
    }
}
