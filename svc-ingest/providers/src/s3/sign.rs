//! AWS signature version 4, for requests without a body.

use std::fmt::Write as _;

use bytes::Bytes;
use cairn_chassis::clock::Timestamp;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderName, HeaderValue, Request, header};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::{Fault, Secret};

/// The SHA-256 of an empty body.
const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// An access key.
pub(super) struct Keys {
    pub(super) id: Secret,
    pub(super) key: Secret,
    pub(super) session: Option<Secret>,
    pub(super) region: String,
}

cairn_chassis::debug_fields!(Keys { region });

impl Keys {
    /// Signs a request, including all headers that it has so far. The query must be sorted by name.
    ///
    /// # Errors
    /// [`Fault::Credentials`] if they are not valid in a header.
    pub(super) fn sign(&self, request: &mut Request<Bytes>, now: Timestamp) -> Result<(), Fault> {
        let time: String = now.to_rfc3339().chars().filter(|letter| !matches!(letter, '-' | ':')).collect();
        let time = format!("{}Z", time.get(..15).unwrap_or_default());
        let day = time.get(..8).unwrap_or_default();
        let headers = request.headers_mut();
        headers
            .insert(HeaderName::from_static("x-amz-content-sha256"), HeaderValue::from_static(EMPTY_SHA256));
        headers.insert(HeaderName::from_static("x-amz-date"), value(&time)?);
        if let Some(session) = &self.session {
            headers.insert(HeaderName::from_static("x-amz-security-token"), session.plain()?);
        }
        let (canonical, signed) = canonical(request)?;
        let scope = format!("{day}/{}/s3/aws4_request", self.region);
        let hash = hex::encode(Sha256::digest(canonical.as_bytes()));
        let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{hash}");
        let mut key = Zeroizing::new(format!("AWS4{}", self.key.expose()).into_bytes());
        for part in [day, self.region.as_str(), "s3", "aws4_request"] {
            key = Zeroizing::new(keyed(&key, part)?);
        }
        let signature = hex::encode(keyed(&key, &to_sign)?);
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope},SignedHeaders={signed},Signature={signature}",
            self.id.expose()
        );
        let mut authorization = value(&authorization)?;
        authorization.set_sensitive(true);
        request.headers_mut().insert(header::AUTHORIZATION, authorization);
        Ok(())
    }
}

/// The canonical request, and the names of its headers.
fn canonical(request: &Request<Bytes>) -> Result<(String, String), Fault> {
    let uri = request.uri();
    let host = uri.authority().ok_or(Fault::Address)?.as_str();
    let mut headers = vec![("host", host)];
    for (name, value) in request.headers() {
        headers.push((name.as_str(), value.to_str().map_err(|_| Fault::Credentials)?.trim()));
    }
    headers.sort_unstable();
    let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let mut text = format!("{}\n{}\n{}\n", request.method(), uri.path(), uri.query().unwrap_or_default());
    for (name, value) in headers {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name}:{value}");
    }
    let _ = write!(text, "\n{names}\n{EMPTY_SHA256}");
    Ok((text, names))
}

fn keyed(key: &[u8], text: &str) -> Result<Vec<u8>, Fault> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|_| Fault::Credentials)?;
    mac.update(text.as_bytes());
    Ok(mac.finalize().into_bytes().to_vec())
}

fn value(text: &str) -> Result<HeaderValue, Fault> {
    HeaderValue::from_str(text).map_err(|_| Fault::Credentials)
}

/// Percent-encodes all but letters, digits, `-_.~` and, optionally, `/`.
pub(super) fn encoded(text: &str, keeps_slash: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'_' | b'.' | b'~')
            || (keeps_slash && byte == b'/')
        {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples from AWS's documentation.
    fn signed(url: &str, headers: &[(&'static str, &'static str)]) -> String {
        let keys = Keys {
            id: Secret::new("AKIAIOSFODNN7EXAMPLE"),
            key: Secret::new("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
            session: None,
            region: "us-east-1".to_owned(),
        };
        let mut request = Request::get(url).body(Bytes::new()).unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, HeaderValue::from_static(value));
        }
        keys.sign(&mut request, Timestamp::parse_rfc3339("2013-05-24T00:00:00Z").unwrap()).unwrap();
        assert!(!format!("{keys:?} {:?}", request.headers()).contains("EXAMPLE"));
        let header = request.headers()["authorization"].to_str().unwrap().to_owned();
        header.rsplit_once("Signature=").unwrap().1.to_owned()
    }

    #[test]
    fn signatures_are_those_of_the_documentation() {
        let get = signed("https://examplebucket.s3.amazonaws.com/test.txt", &[("range", "bytes=0-9")]);
        assert_eq!(get, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
        let list = signed("https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", &[]);
        assert_eq!(list, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    }

    #[test]
    fn text_is_encoded_byte_by_byte() {
        assert_eq!(encoded("a b/é+~", true), "a%20b/%C3%A9%2B~");
        assert_eq!(encoded("a/b", false), "a%2Fb");
    }
}
