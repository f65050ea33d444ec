//! Forms with files (`multipart/form-data`): a file that goes to a service as it comes, so that a large one is never in
//! memory whole, or all of a form in memory, where it is small.

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

/// Of each part but the file, where that is handed on.
const MOST_PART_BYTES: u64 = 64 * 1024;
/// Of one message to a service.
const MOST_CHUNK_BYTES: usize = 1024 * 1024;
/// Messages that wait for a service.
const WAITING: usize = 4;

/// How a form that is not whole is refused: its field, and the words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Incomplete {
    pub(crate) path: &'static str,
    pub(crate) message: &'static str,
}

impl Incomplete {
    /// Of a form that is taken into memory for its file.
    pub(crate) const fn of_file(path: &'static str) -> Self {
        Self { path, message: "did not arrive as a whole form: send it again" }
    }

    fn problem(self) -> Problem {
        refusal(self.path, "incomplete", self.message)
    }

    /// What is wrong with a form, in our words.
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

/// What parts the parts of a form.
///
/// # Errors
/// When the request is no form, or does not say.
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
    /// A form as it comes, whose part `file` may have any size.
    pub(crate) fn coming(body: Body, boundary: &str, file: &str, incomplete: Incomplete) -> Self {
        let sizes = SizeLimit::new().per_field(MOST_PART_BYTES).for_field(file, u64::MAX);
        let constraints = Constraints::new().size_limit(sizes);
        Self {
            parts: Multipart::with_constraints(body.into_data_stream(), boundary, constraints),
            incomplete,
        }
    }

    /// All of a form, as much as the class of its route takes.
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

    /// The next part, which is none of those that there are, and not one too many.
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

/// A part of a form, whose bytes are still to be read.
#[derive(Debug)]
pub(crate) struct Part {
    field: Field<'static>,
    incomplete: Incomplete,
}

impl Part {
    pub(crate) fn name(&self) -> &str {
        self.field.name().unwrap_or_default()
    }

    /// Empty where it is no file.
    pub(crate) fn file_name(&self) -> &str {
        self.field.file_name().unwrap_or_default()
    }

    /// The media type that the sender gave it.
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

/// Why reading a form ended early.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The form cannot be read, or breaks a rule.
    Refused(Problem),
    /// The service takes no more: its answer says why.
    Unwanted,
}

impl From<Problem> for Stopped {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}

/// What a service says to a form, unless it never had all of one.
pub(crate) fn settled<T>(read: Result<(), Stopped>, taken: Result<T, Problem>) -> Result<T, Problem> {
    match read {
        Err(Stopped::Refused(problem)) => Err(problem),
        Ok(()) | Err(Stopped::Unwanted) => taken,
    }
}

/// Where a form goes while it is read, as messages to a service.
#[derive(Debug)]
pub(crate) struct Outlet<M> {
    sender: mpsc::Sender<M>,
    of_bytes: fn(Bytes) -> M,
}

impl<M: Send + 'static> Outlet<M> {
    /// An outlet, and what comes out of it until it is dropped. `of_bytes` makes messages of a file.
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

    /// Hands the bytes of a file on; answers how many there were.
    pub(crate) async fn hand_on(&self, mut file: Part) -> Result<u64, Stopped> {
        let incomplete = file.incomplete;
        let mut size_bytes = 0;
        while let Some(mut chunk) = file.field.chunk().await.map_err(|error| incomplete.unreadable(&error))? {
            size_bytes += chunk.len() as u64;
            while !chunk.is_empty() {
                let piece = chunk.split_to(chunk.len().min(MOST_CHUNK_BYTES));
                self.send((self.of_bytes)(piece)).await?;
            }
        }
        Ok(size_bytes)
    }
}

pub(crate) fn refusal(path: &str, code: &str, message: &str) -> Problem {
    Problem::validation(vec![Violation::new(path, code, message)])
}
