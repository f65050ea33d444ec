//! A JSON response body, serialized into one buffer.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use cairn_chassis::status::Problem;
use http::{HeaderValue, header};
use serde::Serialize;

use crate::error::Error;

/// Initial capacity: most responses fit, and a longer one doubles it. axum's own body starts at 128 bytes, and
/// growing from there costs as much as writing a small response.
const INITIAL_CAPACITY: usize = 4 * 1024;
/// Headers of a finished response, most of them added outside of handlers: reserving for them avoids rehashing the
/// map twice.
const EXPECTED_HEADERS: usize = 16;
const KIND: HeaderValue = HeaderValue::from_static("application/json");

/// Responds with a value as JSON.
#[derive(Debug)]
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for JsonBody<T> {
    fn into_response(self) -> Response {
        let mut body = Vec::with_capacity(INITIAL_CAPACITY);
        match serde_json::to_writer(&mut body, &self.0) {
            Ok(()) => {
                let mut response = Response::new(Body::from(body));
                let headers = response.headers_mut();
                headers.reserve(EXPECTED_HEADERS);
                headers.insert(header::CONTENT_TYPE, KIND);
                response
            }
            Err(error) => Error::from(Problem::internal(error)).into_response(),
        }
    }
}
