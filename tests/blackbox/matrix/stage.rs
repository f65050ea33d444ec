//! Fresh items that an operation is called on, and the outcome of a call.

use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::token_format;
use reqwest::Method;

use crate::support::callers::Caller;
use crate::support::http::{id, items, text};
use crate::support::mcp;
use crate::support::prelude::*;

/// A folder for items, and a word that they all contain.
pub(super) struct Stage<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) folder: String,
    pub(super) marker: String,
}

/// A database and its contents.
pub(super) struct Database {
    pub(super) id: String,
    /// The primary property.
    pub(super) name_field: String,
    pub(super) field: String,
    pub(super) view: String,
}

impl<'a> Stage<'a> {
    pub(super) fn new(workspace: &'a Workspace, folder: &str) -> Self {
        let letters: String =
            token_format::generate(&OsEntropy).chars().filter(char::is_ascii_alphabetic).collect();
        let marker = format!("zq{}", letters.to_lowercase().get(5..21).unwrap_or_default());
        Self { workspace, folder: folder.to_owned(), marker }
    }

    pub(super) fn file_body(&self) -> Value {
        let name = format!("{}.md", self.marker);
        json!({"name": name, "content": self.marker, "fileType": "markdown", "folderId": self.folder})
    }

    pub(super) async fn file(&self) -> String {
        id(&self.post("/api/v1/files", self.file_body()).await)
    }

    /// A file and the change that created it.
    pub(super) async fn file_and_change(&self) -> (String, String) {
        let made = self.workspace.token.post("/api/v1/files").json(self.file_body()).await.expect(201);
        (id(&made.json()), made.change())
    }

    pub(super) async fn folder(&self) -> String {
        self.workspace.folder(&self.marker, Some(&self.folder)).await
    }

    pub(super) async fn database(&self) -> Database {
        let body = json!({"name": self.marker, "folderId": self.folder});
        let made = self.post("/api/v1/databases", body).await;
        let path = format!("/api/v1/databases/{}", id(&made));
        let field = self.post(&format!("{path}/fields"), json!({"name": "note", "type": "text"})).await;
        Database {
            id: id(&made),
            name_field: id(&items(&made["properties"])[0]),
            field: id(&field),
            view: id(&items(&made["views"])[0]),
        }
    }

    /// A database in trash.
    pub(super) async fn trashed_database(&self) -> String {
        let database = self.database().await.id;
        self.delete(&format!("/api/v1/databases/{database}")).await;
        database
    }

    pub(super) fn values(&self, database: &Database) -> Value {
        json!({database.name_field.clone(): self.marker})
    }

    /// The path of a new record.
    pub(super) async fn record(&self, database: &Database) -> (String, String) {
        let records = format!("/api/v1/databases/{}/records", database.id);
        let made = self.post(&records, json!({"values": self.values(database)})).await;
        (format!("{records}/{}", id(&made)), id(&made))
    }

    /// The path of a record in trash.
    pub(super) async fn trashed_record(&self) -> String {
        let (path, _) = self.record(&self.database().await).await;
        self.delete(&path).await;
        path
    }

    /// Moves the item at that path to trash; returns the path.
    pub(super) async fn trashed(&self, path: String) -> String {
        self.delete(&path).await;
        path
    }

    /// A memory of one file. Only the file contains the word: the existence of a memory is no secret of a folder.
    pub(super) async fn memory(&self) -> Value {
        let members = json!([self.file_member().await]);
        self.post("/api/v1/memories", json!({"name": "A memory", "members": members})).await
    }

    pub(super) async fn file_member(&self) -> Value {
        json!({"kind": "file", "fileId": self.file().await})
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> Value {
        self.workspace.token.post(path).json(body).await.expect(201).json()
    }

    async fn delete(&self, path: &str) {
        self.workspace.token.delete(path).await.expect(204);
    }
}

/// A call that any caller can make.
#[derive(Debug)]
pub(super) enum Call {
    Rest { method: Method, path: String, body: Option<Value>, after: Option<String> },
    Tool { name: &'static str, arguments: Value, after: Option<String> },
}

impl Call {
    pub(super) fn get(path: impl Into<String>) -> Self {
        Self::Rest { method: Method::GET, path: path.into(), body: None, after: None }
    }

    pub(super) fn post(path: impl Into<String>, body: Value) -> Self {
        Self::Rest { method: Method::POST, path: path.into(), body: Some(body), after: None }
    }

    pub(super) fn patch(path: impl Into<String>, body: Value) -> Self {
        Self::Rest { method: Method::PATCH, path: path.into(), body: Some(body), after: None }
    }

    pub(super) fn delete(path: impl Into<String>) -> Self {
        Self::Rest { method: Method::DELETE, path: path.into(), body: None, after: None }
    }

    /// A POST without a body.
    pub(super) fn act(path: impl Into<String>) -> Self {
        Self::Rest { method: Method::POST, path: path.into(), body: None, after: None }
    }

    /// The same call with invalid arguments: an unauthorized caller gets no other answer.
    pub(super) fn of_nonsense(&self) -> Self {
        let nonsense = || json!({"nonsense": [1]});
        match self {
            Self::Rest { method, path, body: None, after } if method == Method::GET => Self::Rest {
                method: method.clone(),
                path: format!("{path}{}limit=nonsense", if path.contains('?') { '&' } else { '?' }),
                body: None,
                after: after.clone(),
            },
            Self::Rest { method, path, body, after } => Self::Rest {
                method: method.clone(),
                path: path.clone(),
                body: body.as_ref().map(|_| nonsense()),
                after: after.clone(),
            },
            Self::Tool { name, after, .. } => {
                Self::Tool { name, arguments: nonsense(), after: after.clone() }
            }
        }
    }

    pub(super) async fn send(&self, caller: &impl Caller) -> Outcome {
        match self {
            Self::Rest { method, path, body, after } => {
                let mut request = caller.request(method.clone(), path);
                if let Some(body) = body {
                    request = request.json(body);
                }
                if let Some(change) = after {
                    request = request.after(change);
                }
                let reply = request.await;
                let parsed: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
                let code = parsed["error"].as_str().map(ToOwned::to_owned);
                Outcome { status: reply.status, code, text: reply.text() }
            }
            Self::Tool { name, arguments, after } => {
                let mut params = json!({"name": name, "arguments": arguments});
                if let Some(change) = after {
                    params["_meta"] = json!({mcp::META_CHANGE: change});
                }
                let reply = mcp::legacy(caller, "tools/call", params).await;
                if reply.status != 200 {
                    return Outcome { status: reply.status, code: None, text: reply.text() };
                }
                of_tool(&reply.json())
            }
        }
    }
}

/// The HTTP status that corresponds to a tool's result.
fn of_tool(answer: &Value) -> Outcome {
    let result = &answer["result"];
    assert!(result.is_object(), "the call itself is wrong: {answer}");
    let message = text(&items(&result["content"])[0], "text");
    let status = match (&result["isError"], message.split(':').next().unwrap_or_default()) {
        (Value::Bool(false), _) => 200,
        (_, "Forbidden") => 403,
        (_, "Not found") => 404,
        (_, other) => panic!("{other}: {answer}"),
    };
    Outcome { status, code: None, text: result.to_string() }
}

/// The outcome of a call.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) status: u16,
    /// The code of a REST error.
    code: Option<String>,
    text: String,
}

impl Outcome {
    #[track_caller]
    pub(super) fn refused(&self, what: &str, status: u16, code: &str) {
        assert_eq!(self.status, status, "{what}: {self:?}");
        assert!(self.code.as_deref().is_none_or(|told| told == code), "{what}: {self:?}");
    }

    #[track_caller]
    pub(super) fn done(self, what: &str) -> Self {
        assert_eq!(self.status / 100, 2, "{what}: {self:?}");
        self
    }

    #[track_caller]
    pub(super) fn shows(&self, what: &str, marker: &str, expected: bool) {
        assert_eq!(self.text.contains(marker), expected, "{what} and {marker}: {self:?}");
    }
}
