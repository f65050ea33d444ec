//! A user session, for as long as the command runs.

use anyhow::Context as _;
use reqwest::header::{COOKIE, SET_COOKIE};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::client::Ended;
use crate::client::connection::{Connection, ServerOptions};

/// A signed-in user.
pub(super) struct Session {
    connection: Connection,
    /// The cookie's name and value.
    cookie: String,
    /// Ids and names of the user's workspaces.
    workspaces: Vec<(String, String)>,
}

impl Session {
    /// Signs in.
    pub(super) async fn open(server: &ServerOptions, email: &str, password: &str) -> anyhow::Result<Self> {
        let connection = Connection::without_token(server)?;
        let request = connection.request(Method::POST, "/api/session");
        let response = connection.good(request.json(&json!({"email": email, "password": password}))).await?;
        let cookie = cookie_of(&response).context("the answer has no session: is it a Cairn?")?;
        let body = response.bytes().await.map_err(reqwest::Error::without_url)?;
        let person: Value = serde_json::from_slice(&body).context("the answer is not as expected")?;
        let workspaces = person.get("workspaces").and_then(Value::as_array).into_iter().flatten();
        let workspaces = workspaces.map(|one| (text(one, "id").to_owned(), text(one, "name").to_owned()));
        Ok(Self { workspaces: workspaces.collect(), connection, cookie })
    }

    /// Signs out; if that fails, the session expires by itself.
    pub(super) async fn close(self) {
        let request = self.request(Method::DELETE, "/api/session");
        let _ = self.connection.send(request).await;
    }

    /// The requested workspace, or the only one.
    pub(super) fn workspace(&self, asked: Option<&str>) -> Result<String, Ended> {
        match (asked, self.workspaces.as_slice()) {
            (Some(asked), _) => Ok(asked.to_owned()),
            (None, [(only, _)]) => Ok(only.clone()),
            (None, []) => Err(Ended::failed("you are in no workspace".to_owned())),
            (None, several) => {
                let named = several
                    .iter()
                    .map(|(id, name)| format!("\n  {id}  {}", name.replace(char::is_control, " ")));
                Err(Ended::failed(format!("say with --workspace which one:{}", named.collect::<String>())))
            }
        }
    }

    pub(super) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.connection.request(method, path).header(COOKIE, &self.cookie)
    }

    pub(super) async fn answer(&self, request: RequestBuilder) -> anyhow::Result<Value> {
        self.connection.json(request).await
    }

    pub(super) async fn json(&self, method: Method, path: &str) -> anyhow::Result<Value> {
        self.answer(self.request(method, path)).await
    }
}

/// A string field.
pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn cookie_of(response: &Response) -> Option<String> {
    let set = response.headers().get(SET_COOKIE)?.to_str().ok()?;
    Some(set.split(';').next()?.trim().to_owned()).filter(|pair| pair.contains('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_workspace_needs_no_name() {
        let session = |names: &[&str]| Session {
            connection: Connection::at("http://127.0.0.1:1", None).unwrap(),
            cookie: String::new(),
            workspaces: names.iter().map(|name| ((*name).to_owned(), "Work".to_owned())).collect(),
        };
        assert_eq!(session(&["a"]).workspace(None).unwrap(), "a");
        assert_eq!(session(&["a", "b"]).workspace(Some("b")).unwrap(), "b");
        let told = session(&["a", "b"]).workspace(None).unwrap_err().to_string();
        assert!(told.contains("--workspace") && told.contains("b  Work"), "{told}");
        assert!(session(&[]).workspace(None).is_err());
    }
}
