//! Responses to the client through the person's browser.

use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, StatusCode, header};

use super::pages;
use super::refusal::{Refusal, not_kept};

/// The redirect URI with the common parameters: the unchanged `state`, and the issuer (RFC 9207).
#[derive(Debug, Clone)]
pub(super) struct Redirect {
    pub(super) uri: String,
    pub(super) state: Option<String>,
    pub(super) issuer: String,
}

impl Redirect {
    /// The person consented.
    pub(super) fn with_code(&self, code: &str) -> Response {
        self.to(&[("code", code)])
    }

    /// The person declined, or the request was invalid.
    pub(super) fn with_error(&self, error: &str, description: &str) -> Response {
        self.to(&[("error", error), ("error_description", description)])
    }

    fn to(&self, answer: &[(&str, &str)]) -> Response {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(answer);
        if let Some(state) = &self.state {
            query.append_pair("state", state);
        }
        query.append_pair("iss", &self.issuer);
        let separator = if self.uri.contains('?') { '&' } else { '?' };
        see_other(&format!("{}{separator}{}", self.uri, query.finish()))
    }
}

/// 303: continues with GET.
pub(super) fn see_other(address: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(address) else {
        return pages::failure(&Refusal::invalid_request("the redirect URI cannot be sent in a header"));
    };
    let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response();
    not_kept(response.headers_mut());
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_keeps_the_query_that_the_client_registered() {
        let location = |uri: &str| {
            let redirect = Redirect {
                uri: uri.to_owned(),
                state: Some("a b&c".to_owned()),
                issuer: "https://cairn.example".to_owned(),
            };
            redirect.with_code("x").headers()[header::LOCATION].to_str().unwrap().to_owned()
        };
        let tail = "code=x&state=a+b%26c&iss=https%3A%2F%2Fcairn.example";
        assert_eq!(location("https://tools.example/cb"), format!("https://tools.example/cb?{tail}"));
        assert_eq!(location("https://tools.example/cb?a=1"), format!("https://tools.example/cb?a=1&{tail}"));
        assert_eq!(location("cursor://a.b/cb"), format!("cursor://a.b/cb?{tail}"));
    }
}
