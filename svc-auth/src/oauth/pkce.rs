//! Proof Key for Code Exchange (RFC 7636): S256 only, and mandatory.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::model::oauth_error::{Code, OauthError};

const METHOD: &str = "S256";
/// The length of a SHA-256 in base64url.
const CHALLENGE_LENGTH: usize = 43;
const VERIFIER_LENGTH: std::ops::RangeInclusive<usize> = 43..=128;

/// Validates the challenge of an authorization request.
pub(super) fn check_challenge(challenge: &str, method: &str) -> Result<(), OauthError> {
    let refused = |parameter, message: &str| Err(OauthError::new(Code::InvalidRequest, parameter, message));
    if challenge.is_empty() {
        return refused("code_challenge", "code_challenge is required: use PKCE with S256");
    }
    if method != METHOD {
        return refused("code_challenge_method", "code_challenge_method must be S256");
    }
    let is_base64url = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if challenge.len() != CHALLENGE_LENGTH || !challenge.bytes().all(is_base64url) {
        return refused(
            "code_challenge",
            "code_challenge must be the base64url SHA-256 of the verifier, 43 characters",
        );
    }
    Ok(())
}

/// Checks that the code is redeemed by the client that requested it.
pub(super) fn check_verifier(verifier: &str, challenge: &str) -> Result<(), OauthError> {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    if !VERIFIER_LENGTH.contains(&verifier.len()) || !verifier.bytes().all(is_unreserved) {
        let message = "code_verifier must have 43 to 128 characters of A-Z a-z 0-9 - . _ ~";
        return Err(OauthError::new(Code::InvalidRequest, "code_verifier", message));
    }
    let computed = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    if computed.as_bytes().ct_eq(challenge.as_bytes()).into() {
        return Ok(());
    }
    let message = "code_verifier does not belong to the code_challenge of this code";
    Err(OauthError::new(Code::InvalidGrant, "code_verifier", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 7636, appendix B.
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    #[test]
    fn the_example_of_the_rfc_passes() {
        check_challenge(CHALLENGE, "S256").unwrap();
        check_verifier(VERIFIER, CHALLENGE).unwrap();
    }

    #[test]
    fn everything_else_is_refused() {
        for (challenge, method) in [
            ("", "S256"),
            (CHALLENGE, ""),
            (CHALLENGE, "plain"),
            (CHALLENGE, "s256"),
            (&CHALLENGE[1..], "S256"),
            ("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw+cM", "S256"),
            ("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM=", "S256"),
        ] {
            assert_eq!(check_challenge(challenge, method).unwrap_err().code, Code::InvalidRequest);
        }
        for (verifier, code) in [
            ("", Code::InvalidRequest),
            (&VERIFIER[1..], Code::InvalidRequest),
            (&"a".repeat(129), Code::InvalidRequest),
            ("dBjftJeZ4CVP mB92K27uhbUJU1p1r_wW1gFWFOEjXk", Code::InvalidRequest),
            (&"a".repeat(43), Code::InvalidGrant),
            (CHALLENGE, Code::InvalidGrant),
        ] {
            assert_eq!(check_verifier(verifier, CHALLENGE).unwrap_err().code, code, "{verifier}");
        }
    }
}
