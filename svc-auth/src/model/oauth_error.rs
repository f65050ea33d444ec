//! Errors of the OAuth protocol.

/// The error codes of RFC 6749, 7591 and 8707 that are used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// A parameter is missing, malformed, or sent where it may not be.
    InvalidRequest,
    /// The client is unknown, or its authentication failed.
    InvalidClient,
    /// The code or the refresh token is not valid, or not this client's.
    InvalidGrant,
    /// The scope is unknown, malformed, or more than was granted.
    InvalidScope,
    /// The resource is not ours (RFC 8707).
    InvalidTarget,
    /// Only `code` is supported.
    UnsupportedResponseType,
    /// A redirect URI of a registration is not acceptable (RFC 7591).
    InvalidRedirectUri,
    /// Another part of a registration is not acceptable (RFC 7591).
    InvalidClientMetadata,
}

impl Code {
    /// The spelling of the RFC.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidClient => "invalid_client",
            Self::InvalidGrant => "invalid_grant",
            Self::InvalidScope => "invalid_scope",
            Self::InvalidTarget => "invalid_target",
            Self::UnsupportedResponseType => "unsupported_response_type",
            Self::InvalidRedirectUri => "invalid_redirect_uri",
            Self::InvalidClientMetadata => "invalid_client_metadata",
        }
    }
}

/// An error response, with advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OauthError {
    /// For programs.
    pub code: Code,
    /// The offending parameter.
    pub parameter: &'static str,
    /// For people. It quotes nothing that the client sent (RFC 6749 allows few characters in it, and it may be
    /// displayed).
    pub description: String,
}

impl OauthError {
    pub(crate) fn new(code: Code, parameter: &'static str, description: impl Into<String>) -> Self {
        Self { code, parameter, description: description.into() }
    }
}
