//! Lists the contents of a workspace over the API.

use std::collections::HashMap;

use anyhow::Context as _;
use reqwest::header::LINK;
use reqwest::{Method, Response, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::Ended;
use crate::client::connection::{Connection, told};

/// The page size for records, which may be large.
const RECORDS_AT_ONCE: usize = 200;

#[derive(Debug, Deserialize)]
pub(super) struct Workspace {
    pub(super) id: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Folder {
    pub(super) id: String,
    /// From the root, with `/` before each name.
    pub(super) path: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct File {
    pub(super) id: String,
    pub(super) path: String,
    pub(super) content_hash: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Database {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) folder_id: Option<String>,
    pub(super) properties: Vec<Property>,
    #[serde(flatten)]
    pub(super) rest: serde_json::Map<String, Value>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Property {
    pub(super) id: String,
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) rest: serde_json::Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Memory {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) slug: String,
    pub(super) description: Option<String>,
    pub(super) use_when: Option<String>,
    pub(super) members: Vec<Member>,
    /// The memory as the API returns it.
    #[serde(skip)]
    pub(super) whole: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Member {
    pub(super) kind: String,
    pub(super) file_id: Option<String>,
    pub(super) folder_id: Option<String>,
    pub(super) source_document_id: Option<String>,
    pub(super) database_id: Option<String>,
}

/// An attachment.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Asset {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) content_hash: String,
}

/// The API of a workspace.
#[derive(Clone)]
pub(super) struct Remote {
    connection: Connection,
}

impl Remote {
    pub(super) const fn new(connection: Connection) -> Self {
        Self { connection }
    }

    pub(super) async fn workspace(&self) -> anyhow::Result<Workspace> {
        let request = self.connection.request(Method::GET, "/api/v1/workspace");
        read(self.connection.json(request).await?)
    }

    /// Like [`Self::list`]; `None` if the token is restricted to folders and may not list this.
    pub(super) async fn list_if_allowed<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> anyhow::Result<Option<Vec<T>>> {
        let probe = self.connection.request(Method::GET, path).query(&[("limit", "1")]);
        if self.connection.send(probe).await?.status() == StatusCode::FORBIDDEN {
            return Ok(None);
        }
        self.list(path).await.map(Some)
    }

    /// All items of a list endpoint, page by page.
    pub(super) async fn list<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<Vec<T>> {
        let mut all = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let mut request = self.connection.request(Method::GET, path);
            if let Some(cursor) = &cursor {
                request = request.query(&[("cursor", cursor)]);
            }
            let response = self.connection.good(request).await?;
            cursor = next_cursor(&response);
            let body = response.bytes().await.map_err(reqwest::Error::without_url)?;
            let page: Vec<T> = serde_json::from_slice(&body).context("the answer is not as expected")?;
            all.extend(page);
            if cursor.is_none() {
                return Ok(all);
            }
        }
    }

    /// The records of a database from that offset; empty at the end.
    pub(super) async fn records(&self, database: &str, offset: usize) -> anyhow::Result<Vec<Value>> {
        #[derive(Deserialize)]
        struct Page {
            records: Vec<Value>,
        }
        let path = format!("/api/v1/databases/{database}/records?limit={RECORDS_AT_ONCE}&offset={offset}");
        let request = self.connection.request(Method::GET, &path);
        let page: Page = read(self.connection.json(request).await?)?;
        Ok(page.records)
    }

    /// Streams the bytes at a path of the API; `None` if they were deleted meanwhile.
    pub(super) async fn bytes(&self, path: &str) -> anyhow::Result<Option<Response>> {
        let response = self.connection.send(self.connection.request(Method::GET, path)).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(Some(response));
        }
        if status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let body = response.bytes().await.unwrap_or_default();
        Err(Ended::failed(told(status.as_u16(), &body)).into())
    }
}

/// The cursor of the next page (RFC 8288). The address itself is not followed, so that the token is not sent elsewhere.
fn next_cursor(response: &Response) -> Option<String> {
    cursor_of(response.headers().get(LINK)?.to_str().ok()?)
}

fn cursor_of(link: &str) -> Option<String> {
    let (address, _) = link.strip_prefix('<')?.split_once('>')?;
    let address = Url::parse(address).or_else(|_| Url::parse("http://localhost")?.join(address)).ok()?;
    address.query_pairs().find(|(name, _)| name == "cursor").map(|(_, value)| value.into_owned())
}

fn read<T: DeserializeOwned>(value: Value) -> anyhow::Result<T> {
    serde_json::from_value(value).context("the answer is not as expected")
}

/// The components of a path.
pub(super) fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty())
}

/// Folder paths by id.
pub(super) fn by_id(folders: &[Folder]) -> HashMap<&str, &str> {
    folders.iter().map(|folder| (folder.id.as_str(), folder.path.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_in_the_link() {
        let link = "<https://cairn.example/api/v1/files?limit=2&cursor=n%2Bw>; rel=\"next\"";
        assert_eq!(cursor_of(link), Some("n+w".to_owned()));
        assert_eq!(cursor_of("</api/v1/files?cursor=a>; rel=\"next\""), Some("a".to_owned()));
        assert_eq!(cursor_of("<https://cairn.example/api/v1/files>; rel=\"next\""), None);
        assert_eq!(cursor_of("nothing"), None);
    }
}
