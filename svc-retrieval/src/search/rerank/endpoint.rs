//! An HTTP endpoint `/rerank` as Cohere, Jina, Voyage, vLLM, llama.cpp and Infinity have it.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cairn_chassis::outbound::{Guard, Limits, Refused};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, StatusCode};
use serde::Deserialize;
use serde_json::json;

use super::{Error, Reranker};

/// A search waits for the reranker, so the timeout is short: a slow model costs the reranking and not the answer.
const LIMITS: Limits = Limits { time: Duration::from_secs(3), bytes: 1024 * 1024 };

/// The configuration of the endpoint.
#[derive(Clone)]
pub struct EndpointConfig {
    /// The whole address, such as `https://api.jina.ai/v1/rerank`.
    pub url: String,
    /// The model's name; left out of requests when absent, as servers of one model like it.
    pub model: Option<String>,
    /// The key that is sent as a bearer token.
    pub key: Option<String>,
}

// Without the key.
cairn_chassis::debug_fields!(EndpointConfig { url, model });

/// Why an endpoint can never be asked.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// We do not go to that address.
    #[error("the reranker's address is refused: {0}")]
    Refused(#[from] Refused),
    /// It would break the request.
    #[error("the reranker's key has characters that cannot be sent")]
    Key,
}

/// The endpoint.
pub struct Endpoint {
    guard: Guard,
    config: EndpointConfig,
    authorization: Option<HeaderValue>,
}

// Without the key.
cairn_chassis::debug_fields!(Endpoint { config });

impl Endpoint {
    /// An endpoint behind the guard; nothing is sent yet.
    ///
    /// # Errors
    /// When its address is one that the guard refuses, or its key cannot be sent.
    pub fn new(guard: Guard, config: EndpointConfig) -> Result<Self, EndpointError> {
        guard.check(&config.url)?;
        let authorization = match &config.key {
            None => None,
            Some(key) => {
                let mut value =
                    HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| EndpointError::Key)?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        Ok(Self { guard, config, authorization })
    }

    fn request(&self, query: &str, texts: &[&str]) -> Result<Request<Bytes>, http::Error> {
        let mut body = json!({"query": query, "documents": texts});
        if let (Some(model), Some(fields)) = (&self.config.model, body.as_object_mut()) {
            fields.insert("model".to_owned(), json!(model));
        }
        let mut request = Request::post(&self.config.url).header(CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        request.body(Bytes::from(body.to_string()))
    }
}

#[async_trait]
impl Reranker for Endpoint {
    async fn rerank(&self, query: &str, texts: &[&str]) -> Result<Vec<f32>, Error> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let request =
            self.request(query, texts).map_err(|_| Error::Answer("no request can be made for it"))?;
        let sent = self.guard.send(request, LIMITS).await;
        let response = sent.map_err(|refused| Error::Unreachable(refused.to_string()))?;
        if response.status() != StatusCode::OK {
            return Err(Error::Status(response.status().as_u16()));
        }
        read(response.body(), texts.len())
    }
}

#[derive(Deserialize)]
struct Answer {
    /// `data` is Voyage's name for it.
    #[serde(alias = "data")]
    results: Vec<Judged>,
}

#[derive(Deserialize)]
struct Judged {
    index: usize,
    #[serde(alias = "score")]
    relevance_score: f32,
}

/// One number for each text. Models without a last sigmoid answer numbers beyond 0 and 1: they all get one then.
fn read(body: &[u8], texts: usize) -> Result<Vec<f32>, Error> {
    let answer: Answer =
        serde_json::from_slice(body).map_err(|_| Error::Answer("it is not JSON with results"))?;
    let mut numbers = vec![None; texts];
    for judged in answer.results {
        let number =
            numbers.get_mut(judged.index).ok_or(Error::Answer("it names a text that was not sent"))?;
        *number = Some(judged.relevance_score).filter(|score| score.is_finite());
    }
    let numbers: Option<Vec<f32>> = numbers.into_iter().collect();
    let numbers = numbers.ok_or(Error::Answer("it leaves texts out"))?;
    if numbers.iter().all(|number| (0.0..=1.0).contains(number)) {
        return Ok(numbers);
    }
    Ok(numbers.into_iter().map(|number| 1.0 / (1.0 + (-number).exp())).collect())
}

#[cfg(test)]
mod tests;
