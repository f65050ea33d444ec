//! `multipart/form-data`: a large file is streamed to a service without buffering it, a small form is read into
//! memory.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use cairn_chassis::status::{Problem, Violation};
use futures::{Stream, stream};
use http::{HeaderMap, header};
use multer::{Constraints, Field, Multipart, SizeLimit};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::class::Class;
use crate::error::Error;
use crate::intake::Intake;

/// Limit of each part except a streamed file.
const MAX_PART_BYTES: u64 = 64 * 1024;
/// Limit of one message to a service.
const MAX_CHUNK_BYTES: usize = 1024 * 1024;
/// Messages buffered for a service (backpressure).
const WAITING: usize = 4;

/// The violation of a truncated form: its field and message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Incomplete {
    pub(crate) path: &'static str,
    pub(crate) message: &'static str,
}

impl Incomplete {
    /// For a form that is read into memory.
    pub(crate) const fn of_file(path: &'static str) -> Self {
        Self { path, message: "did not arrive as a whole form: send it again" }
    }

    fn problem(self) -> Problem {
        refusal(self.path, "incomplete", self.message)
    }

    /// A parse error in our words.
    pub(crate) fn unreadable(self, error: &multer::Error) -> Problem {
        if let multer::Error::FieldSizeExceeded { field_name, .. } = error {
            let path = field_name.as_deref().unwrap_or("body");
            return refusal(path, "too_long", "may have at most 64 KiB");
        }
        if matches!(error, multer::Error::NoBoundary) {
            return refusal("body", "invalid", "the Content-Type of a form names its boundary");
        }
        self.problem()
    }
}

/// The boundary of a multipart request.
///
/// # Errors
/// When the request is no multipart form or has no boundary.
pub(crate) fn boundary(headers: &HeaderMap) -> multer::Result<String> {
    let sent = headers.get(header::CONTENT_TYPE).and_then(|sent| sent.to_str().ok());
    multer::parse_boundary(sent.unwrap_or_default())
}

/// A form that is read part by part.
#[derive(Debug)]
pub(crate) struct Form {
    parts: Multipart<'static>,
    incomplete: Incomplete,
}

impl Form {
    /// A streamed form, whose part `file` may have any size.
    pub(crate) fn coming(body: Body, boundary: &str, file: &str, incomplete: Incomplete) -> Self {
        let sizes = SizeLimit::new().per_field(MAX_PART_BYTES).for_field(file, u64::MAX);
        let constraints = Constraints::new().size_limit(sizes);
        Self {
            parts: Multipart::with_constraints(body.into_data_stream(), boundary, constraints),
            incomplete,
        }
    }

    /// A buffered form, up to the body limit of its route.
    pub(crate) async fn in_memory(
        request: Request,
        intake: &Intake,
        incomplete: Incomplete,
    ) -> Result<Self, Error> {
        let (head, body) = request.into_parts();
        let boundary = boundary(&head.headers).map_err(|_| incomplete.problem())?;
        let limit = Class::of(&head.extensions).max_bytes;
        let bytes = intake.receive(body, limit, &head.extensions, None).await?;
        let parts = Multipart::new(stream::iter([Ok::<_, Infallible>(bytes)]), boundary);
        Ok(Self { parts, incomplete })
    }

    pub(crate) async fn next_part(&mut self) -> Result<Option<Part>, Problem> {
        let incomplete = self.incomplete;
        let field = self.parts.next_field().await.map_err(|error| incomplete.unreadable(&error))?;
        Ok(field.map(|field| Part { field, incomplete }))
    }

    /// The next part; rejects duplicates and excess parts.
    pub(crate) async fn next_new_part(
        &mut self,
        fields: &Map<String, Value>,
        most: usize,
    ) -> Result<Option<Part>, Problem> {
        let Some(part) = self.next_part().await? else { return Ok(None) };
        if fields.contains_key(part.name()) {
            return Err(refusal(part.name(), "invalid", "may stand once in a form"));
        }
        if fields.len() == most {
            return Err(refusal("body", "too_long", "has more parts than there are names for"));
        }
        Ok(Some(part))
    }
}

/// A part of a form, with its body unread.
#[derive(Debug)]
pub(crate) struct Part {
    field: Field<'static>,
    incomplete: Incomplete,
}

impl Part {
    pub(crate) fn name(&self) -> &str {
        self.field.name().unwrap_or_default()
    }

    /// Empty if it is no file.
    pub(crate) fn file_name(&self) -> &str {
        self.field.file_name().unwrap_or_default()
    }

    /// The media type sent with it.
    pub(crate) fn sent_type(&self) -> Option<String> {
        self.field.content_type().map(ToString::to_string)
    }

    pub(crate) async fn text(self) -> Result<String, Problem> {
        self.field.text().await.map_err(|error| self.incomplete.unreadable(&error))
    }

    pub(crate) async fn bytes(self) -> Result<Bytes, Problem> {
        self.field.bytes().await.map_err(|error| self.incomplete.unreadable(&error))
    }
}

/// Why reading a form stopped early.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The form cannot be parsed, or violates a rule.
    Refused(Problem),
    /// The service stopped reading; its response says why.
    Unwanted,
}

impl From<Problem> for Stopped {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}

/// Combines both sides: the service's response, unless the form itself was truncated.
pub(crate) fn settled<T>(read: Result<(), Stopped>, taken: Result<T, Problem>) -> Result<T, Problem> {
    match read {
        Err(Stopped::Refused(problem)) => Err(problem),
        Ok(()) | Err(Stopped::Unwanted) => taken,
    }
}

/// Sends the parts of a form to a service as messages.
#[derive(Debug)]
pub(crate) struct Outlet<M> {
    sender: mpsc::Sender<M>,
    of_bytes: fn(Bytes) -> M,
}

impl<M: Send + 'static> Outlet<M> {
    /// Returns an outlet and the stream of its messages, which ends when it is dropped. `of_bytes` wraps chunks of
    /// the file.
    pub(crate) fn open(of_bytes: fn(Bytes) -> M) -> (Self, impl Stream<Item = M> + Send + 'static) {
        let (sender, receiver) = mpsc::channel(WAITING);
        let messages = stream::unfold(receiver, |mut receiver: mpsc::Receiver<M>| async move {
            receiver.recv().await.map(|message| (message, receiver))
        });
        (Self { sender, of_bytes }, messages)
    }

    pub(crate) async fn send(&self, message: M) -> Result<(), Stopped> {
        self.sender.send(message).await.map_err(|_| Stopped::Unwanted)
    }

    /// Streams the bytes of a file; returns their number.
    pub(crate) async fn hand_on(&self, mut file: Part) -> Result<u64, Stopped> {
        let incomplete = file.incomplete;
        let mut size_bytes = 0;
        while let Some(mut chunk) = file.field.chunk().await.map_err(|error| incomplete.unreadable(&error))? {
            size_bytes += chunk.len() as u64;
            while !chunk.is_empty() {
                let piece = chunk.split_to(chunk.len().min(MAX_CHUNK_BYTES));
                self.send((self.of_bytes)(piece)).await?;
            }
        }
        Ok(size_bytes)
    }
}

pub(crate) fn refusal(path: &str, code: &str, message: &str) -> Problem {
    Problem::validation(vec![Violation::new(path, code, message)])
}
