//! The loopback listener for the redirect (RFC 8252, section 7.3).

use anyhow::Context as _;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::Html;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::answer::Answer;

const PATH: &str = "/callback";
/// It loads no resources and echoes nothing from the request.
const PAGE: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Cairn</title>\
    <p>Cairn has got your answer. Close this page and go back to the terminal.</p></html>";

/// Listens for as long as the login takes.
pub(super) struct Callback {
    redirect_uri: String,
    answers: mpsc::Receiver<Answer>,
    serving: JoinHandle<()>,
}

impl Callback {
    /// Listens on a free port.
    pub(super) async fn listen() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no port is free to be answered at")?;
        let redirect_uri = format!("http://{}{PATH}", listener.local_addr()?);
        let (sender, answers) = mpsc::channel(8);
        let router = Router::new().route(PATH, get(take)).with_state(sender);
        let serving = tokio::spawn(async move {
            // The task ends with the login.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { redirect_uri, answers, serving })
    }

    pub(super) fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// The next authorization response.
    pub(super) async fn next(&mut self) -> anyhow::Result<Answer> {
        self.answers.recv().await.context("the address on this machine is no longer served")
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn take(State(sender): State<mpsc::Sender<Answer>>, RawQuery(query): RawQuery) -> Html<&'static str> {
    // The channel is full only if something other than a browser floods it.
    let _ = sender.try_send(Answer::of_query(&query.unwrap_or_default()));
    Html(PAGE)
}
