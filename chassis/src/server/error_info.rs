//! Adds ErrorInfo to errors without it, such as those of tonic itself (an unknown method, a message that does not decode).

use axum::body::Body;
use http::{HeaderMap, HeaderValue, Response};
use tonic::{Code, Status};

use crate::status::{MAX_ERROR_BYTES, Problem};

const DETAILS: &str = "grpc-status-details-bin";
const MESSAGE: &str = "grpc-message";

/// Whether the error has details, and they fit into the header limit of a client's transport.
fn is_complete(headers: &HeaderMap) -> bool {
    let length = |name| headers.get(name).map_or(0, HeaderValue::len);
    headers.contains_key(DETAILS) && length(DETAILS) + length(MESSAGE) <= MAX_ERROR_BYTES
}

/// Adds the details that the code of an error implies, if it has none.
pub(super) fn complete(response: Response<Body>) -> Response<Body> {
    // A failed call has its status in the headers.
    let Some(status) = Status::from_header_map(response.headers()) else { return response };
    if status.code() == Code::Ok || is_complete(response.headers()) {
        return response;
    }
    let mut problem = Problem::from_status(&status);
    if problem.message.is_empty() {
        problem.message = status.code().description().to_owned();
    }
    let mut completed = Status::from(problem);
    *completed.metadata_mut() = status.metadata().clone();
    completed.into_http::<Body>()
}
