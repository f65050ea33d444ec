//! Extractors: typed, validated inputs whose rejections are our errors and never the framework's.

use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{self, FromRef, FromRequest, FromRequestParts, Request};
use bytes::Bytes;
use cairn_chassis::json;
use cairn_chassis::status::{Problem, Violation};
use http::request::Parts;
use http::{HeaderMap, header};
use serde_json::{Map, Value};

use crate::auth::Caller;
use crate::class::Class;
use crate::error::Error;
use crate::intake::Intake;
use crate::schema::Input;
use crate::validate;

/// A JSON body, validated against its schema.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

impl<S: Send + Sync, T: Input> FromRequest<S> for Json<T>
where
    Arc<Intake>: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<Self, Error> {
        let (intake, bytes) = receive(request, state).await?;
        intake.read(bytes, read_body).await?.map(Self)
    }
}

/// An optional JSON body; an empty one yields the default.
#[derive(Debug)]
pub(crate) struct JsonIfSent<T>(pub(crate) T);

impl<S: Send + Sync, T: Input + Default> FromRequest<S> for JsonIfSent<T>
where
    Arc<Intake>: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<Self, Error> {
        let (intake, bytes) = receive(request, state).await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        intake.read(bytes, read_body).await?.map(Self)
    }
}

async fn receive<S: Sync>(request: Request, state: &S) -> Result<(Arc<Intake>, Bytes), Error>
where
    Arc<Intake>: FromRef<S>,
{
    if !is_json(request.headers()) {
        return Err(Error::not_json());
    }
    let (parts, body) = request.into_parts();
    let limit = Class::of(&parts.extensions).max_bytes;
    let caller = parts.extensions.get::<Caller>();
    let workspace = caller.and_then(|caller| caller.identity.claims.workspace);
    let intake = Arc::<Intake>::from_ref(state);
    let bytes = intake.receive(body, limit, &parts.extensions, workspace).await?;
    Ok((intake, bytes))
}

fn read_body<T: Input>(bytes: &[u8]) -> Result<T, Error> {
    let mut value: Value = json::read(bytes).map_err(Error::unreadable)?;
    if let Value::Object(fields) = &mut value {
        whole_numbers(fields);
    }
    Ok(validate::read(value, "body")?)
}

/// JSON Schema accepts 5.0 as an integer, serde does not.
fn whole_numbers(fields: &mut Map<String, Value>) {
    for value in fields.values_mut() {
        if let Some(whole) = value.as_f64().filter(|_| value.is_f64()).and_then(validate::whole) {
            *value = Value::from(whole);
        }
    }
}

/// A missing Content-Type counts as JSON: these routes accept nothing else.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let Some(sent) = headers.get(header::CONTENT_TYPE) else {
        return true;
    };
    let essence =
        sent.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// Query parameters, validated against their schema; unknown ones are ignored.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Send + Sync, T: Input> FromRequestParts<S> for Query<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        if parts.uri.query().is_none_or(str::is_empty) && T::contract().takes_nothing() {
            return Ok(Self(validate::nothing("query")?));
        }
        let pairs = extract::Query::<Vec<(String, String)>>::try_from_uri(&parts.uri).map_err(|_| {
            Problem::validation(vec![Violation::new("query", "invalid", "is not a query string")])
        })?;
        let mut fields = Map::new();
        for (name, text) in pairs.0 {
            // A list parameter is repeated, once per value; for a scalar the last value wins.
            match fields.get_mut(&name) {
                Some(Value::Array(values)) => values.push(Value::String(text)),
                Some(value) => *value = Value::String(text),
                None if T::contract().is_list(&name) => {
                    fields.insert(name, Value::Array(vec![Value::String(text)]));
                }
                None => {
                    fields.insert(name, Value::String(text));
                }
            }
        }
        validate::keep_known(&mut fields, T::contract());
        validate::coerce(&mut fields, T::contract());
        Ok(Self(validate::read(Value::Object(fields), "query")?))
    }
}

/// An id in the path. A malformed id cannot name anything, so it is 404 and not 400.
#[derive(Debug)]
pub(crate) struct PathId<T>(pub(crate) T);

impl<S: Send + Sync, T: FromStr> FromRequestParts<S> for PathId<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let extract::Path(text) =
            extract::Path::<String>::from_request_parts(parts, state).await.map_err(|_| no_such())?;
        text.parse().map(Self).map_err(|_| no_such())
    }
}

/// Two ids in the path.
#[derive(Debug)]
pub(crate) struct PathIds<A, B>(pub(crate) A, pub(crate) B);

impl<S: Send + Sync, A: FromStr, B: FromStr> FromRequestParts<S> for PathIds<A, B> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let extract::Path((one, other)) = extract::Path::<(String, String)>::from_request_parts(parts, state)
            .await
            .map_err(|_| no_such())?;
        Ok(Self(one.parse().map_err(|_| no_such())?, other.parse().map_err(|_| no_such())?))
    }
}

fn no_such() -> Error {
    Problem::not_found("there is nothing with that id in this workspace").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_told_by_its_content_type() {
        let with = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, text.parse().unwrap());
            is_json(&headers)
        };
        assert!(is_json(&HeaderMap::new()));
        assert!(
            with("application/json")
                && with("Application/JSON; charset=utf-8")
                && with("application/ld+json")
        );
        assert!(
            !with("text/plain")
                && !with("application/x-www-form-urlencoded")
                && !with("")
                && !with("text/x+json")
        );
    }
}
