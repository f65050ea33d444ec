//! `cairn mcp`: a bridge from a client that speaks MCP on stdin and stdout to `/mcp`.
//!
//! Each line on stdin is a JSON-RPC message (or a batch), each line on stdout a response. Every message becomes one
//! HTTP request, and requests run concurrently; the only state of the bridge is the negotiated protocol version.

mod message;

use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use self::message::Message;
use super::connection::{Connection, ConnectionOptions, told};

pub(super) const EXAMPLES: &str = "Examples:
  CAIRN_URL=https://cairn.example CAIRN_TOKEN=cairn_… cairn mcp
  cairn mcp --profile work                           with what `cairn login` has kept
  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}' | cairn mcp

In a client's configuration: {\"command\": \"cairn\", \"args\": [\"mcp\"], \"env\": {\"CAIRN_URL\": \"…\", \"CAIRN_TOKEN\": \"…\"}}";

/// Concurrent requests; further messages wait.
const MAX_AT_ONCE: usize = 32;
/// The body limit of the service.
const MAX_LINE_BYTES: u64 = 32 * 1024 * 1024;
const PROTOCOL_VERSION: &str = "MCP-Protocol-Version";
const METHOD: &str = "Mcp-Method";
const NAME: &str = "Mcp-Name";
const TYPES: &str = "application/json, text/event-stream";

#[derive(Debug, Args)]
pub(crate) struct McpOptions {
    #[command(flatten)]
    connection: ConnectionOptions,
}

pub(super) async fn run(options: McpOptions) -> anyhow::Result<()> {
    let bridge = Bridge { connection: Connection::open(&options.connection)?, negotiated: Arc::default() };
    bridge.serve(BufReader::new(tokio::io::stdin()), tokio::io::stdout()).await
}

/// Shared by all messages.
#[derive(Clone)]
struct Bridge {
    connection: Connection,
    /// The version that `initialize` negotiated, which is sent with every later message that names none.
    negotiated: Arc<OnceLock<String>>,
}

impl Bridge {
    /// Forwards messages until the input ends, then waits for the responses in flight.
    async fn serve(
        &self,
        mut input: impl AsyncBufRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> anyhow::Result<()> {
        let (answers, waiting) = mpsc::channel(MAX_AT_ONCE);
        let writing = tokio::spawn(write(waiting, output));
        let room = Arc::new(Semaphore::new(MAX_AT_ONCE));
        let mut under_way = JoinSet::new();
        while !writing.is_finished()
            && let Some(line) = next_line(&mut input).await.context("stdin cannot be read")?
        {
            let (bridge, answers) = (self.clone(), answers.clone());
            let permit = Arc::clone(&room).acquire_owned().await?;
            under_way.spawn(async move {
                if let Some(answer) = bridge.answer(line).await {
                    // The receiver is dropped only when the client is gone.
                    let _ = answers.send(answer).await;
                }
                drop(permit);
            });
            while under_way.try_join_next().is_some() {}
        }
        under_way.join_all().await;
        drop(answers);
        writing.await?.context("stdout cannot be written")
    }

    /// The response line; `None` for notifications.
    async fn answer(&self, line: Line) -> Option<Bytes> {
        let bytes = match line {
            Line::Whole(bytes) => bytes,
            Line::TooLong => {
                let why = format!("a message may have at most {MAX_LINE_BYTES} bytes");
                return Some(message::failure(Value::Null, message::INVALID_REQUEST, &why));
            }
        };
        let message = match Message::read(&bytes) {
            Ok(message) => message,
            Err(why) => return Some(message::failure(Value::Null, message::PARSE_ERROR, &why)),
        };
        let answered = self.send(&message, bytes).await;
        if message.ids.is_empty() {
            if let Err(failure) = answered {
                warn(&format!("a notification was not taken: {}", failure.why));
            }
            return None;
        }
        match answered {
            Ok(body) => {
                self.note_version(&message, &body);
                Some(message::on_one_line(body))
            }
            Err(failure) => Some(message.failures(failure.code, &failure.why)),
        }
    }

    /// The JSON-RPC body of the response, whatever its HTTP status.
    async fn send(&self, message: &Message, line: Bytes) -> Result<Bytes, Failure> {
        let request = self.connection.authorized(self.request(message).body(line)).await;
        let response = request.map_err(|error| Failure::not_let_in(&error))?.send().await;
        let response = response.map_err(|error| Failure::unreachable(&error))?;
        let status = response.status();
        let body = response.bytes().await.map_err(|error| Failure::unreachable(&error))?;
        match status {
            StatusCode::ACCEPTED if message.ids.is_empty() => Ok(body),
            _ if message::is_answer(&body) => Ok(body),
            _ => Err(Failure { code: i64::from(status.as_u16()), why: told(status.as_u16(), &body) }),
        }
    }

    fn request(&self, message: &Message) -> RequestBuilder {
        let mut request = self.connection.request(Method::POST, "/mcp");
        request = request.header(ACCEPT, TYPES).header(CONTENT_TYPE, "application/json");
        let version = message.version.as_deref().or_else(|| self.negotiated.get().map(String::as_str));
        for (header, value) in [
            (PROTOCOL_VERSION, version),
            (METHOD, message.method.as_deref()),
            (NAME, message.name.as_deref()),
        ] {
            if let Some(value) = value {
                request = request.header(header, message::header_value(value).as_ref());
            }
        }
        request
    }

    fn note_version(&self, message: &Message, body: &[u8]) {
        if let Some(version) = message.negotiated_by(body) {
            // A second `initialize` does not change the negotiated version.
            let _ = self.negotiated.set(version);
        }
    }
}

/// Why there is no JSON-RPC response.
struct Failure {
    /// The HTTP status, which is outside of the codes that JSON-RPC and MCP reserve.
    code: i64,
    why: String,
}

impl Failure {
    /// The tokens of the profile cannot be renewed.
    fn not_let_in(error: &anyhow::Error) -> Self {
        let code = i64::from(StatusCode::UNAUTHORIZED.as_u16());
        Self { code, why: format!("Unauthorized: {error:#}") }
    }

    fn unreachable(error: &reqwest::Error) -> Self {
        let kind = if error.is_timeout() { "answers too late" } else { "does not answer" };
        let why = format!("Unavailable: Cairn {kind} at the address in CAIRN_URL; try again a little later");
        Self { code: i64::from(StatusCode::SERVICE_UNAVAILABLE.as_u16()), why }
    }
}

/// A line of the input.
enum Line {
    Whole(Bytes),
    TooLong,
}

/// The next line that is not empty; `None` at the end.
async fn next_line(input: &mut (impl AsyncBufRead + Unpin)) -> std::io::Result<Option<Line>> {
    loop {
        let mut line = Vec::new();
        let read = (&mut *input).take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut line).await?;
        if read == 0 {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') && line.len() as u64 > MAX_LINE_BYTES {
            skip_line(input).await?;
            return Ok(Some(Line::TooLong));
        }
        let text = line.trim_ascii();
        if !text.is_empty() {
            return Ok(Some(Line::Whole(Bytes::copy_from_slice(text))));
        }
    }
}

async fn skip_line(input: &mut (impl AsyncBufRead + Unpin)) -> std::io::Result<()> {
    loop {
        let held = input.fill_buf().await?;
        let end = held.iter().position(|byte| *byte == b'\n');
        let length = held.len();
        input.consume(end.map_or(length, |place| place + 1));
        if end.is_some() || length == 0 {
            return Ok(());
        }
    }
}

async fn write(
    mut answers: mpsc::Receiver<Bytes>,
    mut output: impl AsyncWrite + Unpin,
) -> std::io::Result<()> {
    while let Some(answer) = answers.recv().await {
        output.write_all(&answer).await?;
        output.write_all(b"\n").await?;
        output.flush().await?;
    }
    Ok(())
}

#[expect(
    clippy::print_stderr,
    reason = "stdout belongs to the protocol, and stderr is where clients show a log"
)]
fn warn(text: &str) {
    eprintln!("cairn mcp: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(text: &[u8]) -> Vec<String> {
        let mut input = BufReader::new(text);
        let mut found = Vec::new();
        while let Some(line) = next_line(&mut input).await.unwrap() {
            found.push(match line {
                Line::Whole(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
                Line::TooLong => "too long".to_owned(),
            });
        }
        found
    }

    #[tokio::test]
    async fn lines_end_as_they_may() {
        assert_eq!(lines(b"{}\r\n\n  \n[1]").await, ["{}", "[1]"]);
        assert_eq!(lines(b"").await, Vec::<String>::new());
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_skipped_whole() {
        let mut text = vec![b'x'; usize::try_from(MAX_LINE_BYTES).unwrap() + 10];
        text.extend_from_slice(b"\n{}\n");
        assert_eq!(lines(&text).await, ["too long", "{}"]);
    }
}
