//! Records the fields of a form while it is read, so that an error page can show them and nothing typed is lost.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use bytes::BytesMut;
use http::{Method, header};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;

use super::visitor::PART;
use crate::class::{Class, Surface};

/// Limit for a signed-in person: what the file editor sends, every byte escaped.
pub(super) const MAX_BYTES: usize = 3 * 1024 * 1024;
/// Limit for anybody else.
pub(super) const MAX_UNKNOWN_BYTES: usize = 64 * 1024;
/// How long the rest of a form is awaited.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// A form that may be shown again.
pub(super) struct RecordedForm(Arc<Mutex<Recording>>);

// Form input is not logged.
cairn_chassis::debug_fields!(RecordedForm);

/// What was read of a form so far, and the rest of its body.
#[derive(Default)]
struct Recording {
    bytes: BytesMut,
    is_whole: bool,
    is_too_long: bool,
    /// Set when a handler dropped the body before its end.
    rest: Option<Body>,
}

impl RecordedForm {
    /// Starts recording; `None` if the request has no form, may hold secrets, or was sent by a script, which still
    /// has its data.
    pub(super) fn watch(class: Class, request: &mut Request) -> Option<Self> {
        let sent = request.headers().get(header::CONTENT_TYPE).and_then(|sent| sent.to_str().ok());
        let is_form = sent.is_some_and(|sent| sent.starts_with("application/x-www-form-urlencoded"));
        let is_of_script = request.headers().contains_key(PART);
        let is_post = request.method() == Method::POST;
        if class.surface != Surface::Page || class.has_secrets || !is_post || !is_form || is_of_script {
            return None;
        }
        let kept = Arc::<Mutex<Recording>>::default();
        let inner = std::mem::take(request.body_mut());
        *request.body_mut() = Body::new(RecordingBody { inner: Some(inner), kept: Arc::clone(&kept) });
        Some(Self(kept))
    }

    /// The fields, if the form is within the limit.
    pub(super) async fn fields(&self, most: usize) -> Option<Vec<(String, String)>> {
        let (mut bytes, rest) = {
            let mut kept = lock(&self.0);
            if kept.is_too_long {
                return None;
            }
            (std::mem::take(&mut kept.bytes), if kept.is_whole { None } else { Some(kept.rest.take()?) })
        };
        if let Some(rest) = rest {
            tokio::time::timeout(DRAIN_TIMEOUT, drain(rest, &mut bytes, most)).await.ok()??;
        }
        (bytes.len() <= most).then(|| form_urlencoded::parse(&bytes).into_owned().collect())
    }
}

async fn drain(mut rest: Body, bytes: &mut BytesMut, most: usize) -> Option<()> {
    while let Some(frame) = rest.frame().await {
        let Ok(part) = frame.ok()?.into_data() else { continue };
        if bytes.len() + part.len() > most {
            return None;
        }
        bytes.extend_from_slice(&part);
    }
    Some(())
}

fn lock(kept: &Mutex<Recording>) -> MutexGuard<'_, Recording> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recording {
    fn add(&mut self, part: &Bytes) {
        if self.is_too_long || self.bytes.len() + part.len() > MAX_BYTES {
            self.is_too_long = true;
            self.bytes = BytesMut::new();
            return;
        }
        self.bytes.extend_from_slice(part);
    }
}

/// The body of a form, recorded while it is read.
struct RecordingBody {
    inner: Option<Body>,
    kept: Arc<Mutex<Recording>>,
}

impl HttpBody for RecordingBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(inner) = self.inner.as_mut() else { return Poll::Ready(None) };
        let polled = Pin::new(inner).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(part) = frame.data_ref() {
                    lock(&self.kept).add(part);
                }
            }
            Poll::Ready(None) => lock(&self.kept).is_whole = true,
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or_else(SizeHint::default, HttpBody::size_hint)
    }
}

impl Drop for RecordingBody {
    fn drop(&mut self) {
        lock(&self.kept).rest = self.inner.take();
    }
}

#[cfg(test)]
mod tests {
    use cairn_proto::domain::Permission;
    use futures::stream;

    use super::*;
    use crate::class::Who;

    const PAGE: Class = Class::new(Surface::Page, Who::Person);

    fn sent(parts: &[&'static str]) -> Request {
        let parts: Vec<_> = parts.iter().map(|part| Ok::<_, std::io::Error>(*part)).collect();
        http::Request::post("/w/1/memories/new")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Body::from_stream(stream::iter(parts)))
            .unwrap()
    }

    fn fields(of: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
        Some(of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[tokio::test]
    async fn what_was_sent_is_there_however_much_of_it_was_read() {
        for read in 0..3 {
            let mut request = sent(&["name=Ada&", "note=a+b%0D%0Ac"]);
            let typed = RecordedForm::watch(PAGE, &mut request).unwrap();
            let mut body = request.into_body();
            for _ in 0..read {
                body.frame().await.unwrap().unwrap();
            }
            drop(body);
            assert_eq!(
                typed.fields(MAX_BYTES).await,
                fields(&[("name", "Ada"), ("note", "a b\r\nc")]),
                "{read}"
            );
        }
        let mut request = sent(&["a=1"]);
        let typed = RecordedForm::watch(PAGE, &mut request).unwrap();
        assert_eq!(request.into_body().collect().await.unwrap().to_bytes(), "a=1");
        assert_eq!(typed.fields(3).await, fields(&[("a", "1")]));
    }

    #[tokio::test]
    async fn what_is_too_long_or_secret_is_not_kept() {
        let mut request = sent(&["a=1&", "b=2"]);
        let typed = RecordedForm::watch(PAGE, &mut request).unwrap();
        drop(request);
        assert_eq!(typed.fields(6).await, None);
        assert!(RecordedForm::watch(PAGE.with_secrets(), &mut sent(&["password=x"])).is_none());
        assert!(RecordedForm::watch(Class::rest(Permission::Write), &mut sent(&["a=1"])).is_none());
        let mut of_script = sent(&["a=1"]);
        of_script.headers_mut().insert(PART, http::HeaderValue::from_static("preview"));
        assert!(RecordedForm::watch(PAGE, &mut of_script).is_none());
    }
}
