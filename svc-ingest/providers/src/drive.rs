//! Files of Google Drive: all that an account sees, those of a shared drive, or those below a folder.
//!
//! Drive reports all changes, including deletions, since a token, which is taken before the first page of a listing.

mod auth;
mod objects;
mod pages;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cairn_proto::domain::SourceMode;
use http::{Method, Response, StatusCode, header};
use serde::{Deserialize, Serialize};
use url::Url;

use self::auth::Auth;
use self::objects::{FIELDS, File, Way};
use crate::connect::Draft;
use crate::rest::{Api, Items, MAX_LIST_BYTES, read};
use crate::{
    Account, Body, Call, Changes, Deletions, Entry, ExternalId, Fault, Fetched, Listing, Page, Partial,
    Position, Provider, Search, Traits, Version,
};

pub(crate) const MODES: &[SourceMode] = &[SourceMode::Catalog, SourceMode::Indexed, SourceMode::Live];

const SHAPE: u16 = 1;
const HOST: &str = "https://www.googleapis.com";
const EVERY: Duration = Duration::from_secs(15 * 60);
/// The wait for a rate limit without a reset time: Google's quotas are per minute.
const UNSAID_LIMIT: Duration = Duration::from_secs(10);
/// Bytes of a downloaded file.
const MAX_FILE_BYTES: usize = 25 * 1024 * 1024;
/// Folders in the queue of a listing.
const MAX_FOLDERS: usize = 200;
/// Ancestors that are followed to find out whether a file is below a folder.
const MAX_DEPTH: usize = 100;

#[derive(Debug)]
struct Drive {
    api: Api,
    auth: Auth,
    drive: Option<String>,
    folder: Option<String>,
    /// The files of the last page, which saves a request per fetch.
    last_page: Mutex<HashMap<String, File>>,
    /// The cached parents of folders.
    parents: Mutex<HashMap<String, Vec<String>>>,
}

/// The cursor of a listing or of changes.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Place {
    Listing {
        /// The token from which changes start after the listing.
        start: String,
        page: Option<String>,
        /// Folders that are still to be listed, the current one first; empty if everything is listed at once.
        folders: Vec<String>,
        partial: Vec<Partial>,
    },
    Changes {
        token: String,
    },
}

/// Parses the settings.
pub(crate) fn make(draft: &mut Draft<'_>) -> Option<Box<dyn Provider>> {
    let settings = &mut draft.settings;
    let has_base = settings.value("baseUrl").is_some();
    let base = settings.address("baseUrl", draft.reach.guard());
    let (drive, folder) = (settings.text("driveId"), settings.text("folderId"));
    for (name, id) in [("driveId", &drive), ("folderId", &folder)] {
        if id.as_deref().is_some_and(|id| !is_id(id)) {
            settings.refuse(
                name,
                "invalid_value",
                "must be an id as it stands in the address of a drive or folder",
            );
        }
    }
    let auth = Auth::of(&mut draft.credentials, draft.reach.guard());
    Some(Box::new(Drive {
        api: Api::new(if has_base { base? } else { Url::parse(HOST).ok()? }),
        auth: auth?,
        drive,
        folder,
        last_page: Mutex::default(),
        parents: Mutex::default(),
    }))
}

/// Whether a text has the format of Google's ids: only those may go into URLs and queries.
fn is_id(text: &str) -> bool {
    let is_plain =
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    is_plain && (1..=128).contains(&text.len()) && !matches!(text, "." | "..")
}

impl Drive {
    async fn get(&self, call: &Call, url: &Url, most_bytes: usize) -> Result<Response<Bytes>, Fault> {
        let response = self.exchange(call, url, most_bytes).await?;
        // A token may be revoked early; a service account requests a new one.
        if response.status() == StatusCode::UNAUTHORIZED && self.auth.invalidate().await {
            let response = self.exchange(call, url, most_bytes).await?;
            if response.status() == StatusCode::UNAUTHORIZED {
                self.auth.mark_rejected().await;
            }
            crate::call::judge(response.status())?;
            return Ok(response);
        }
        crate::call::judge(response.status())?;
        Ok(response)
    }

    async fn exchange(&self, call: &Call, url: &Url, most_bytes: usize) -> Result<Response<Bytes>, Fault> {
        let mut request = self.api.request(Method::GET, url, Bytes::new())?;
        request.headers_mut().insert(header::AUTHORIZATION, self.auth.header(call).await?);
        let response = call.exchange(request, most_bytes).await?;
        if response.status() == StatusCode::FORBIDDEN {
            match refusal(response.body()) {
                Refusal::Limit => return Err(call.hold_for(UNSAID_LIMIT).await),
                Refusal::ExportSize => return Err(Fault::TooLarge(10 * 1024 * 1024)),
                Refusal::Access => {}
            }
        }
        Ok(response)
    }

    /// A URL of the API, with the parameters for shared drives.
    fn at(&self, parts: &[&str], query: &[(&str, &str)]) -> Url {
        let parts = ["drive", "v3"].into_iter().chain(parts.iter().copied());
        let mut url = self.api.at_with(parts, &[("supportsAllDrives", "true")]);
        url.query_pairs_mut().extend_pairs(query);
        url
    }

    fn listing(&self, query: &str, size: &str, page: Option<&str>) -> Url {
        let fields = format!("nextPageToken,incompleteSearch,files({FIELDS})");
        let mut url = self.at(
            &["files"],
            &[("includeItemsFromAllDrives", "true"), ("pageSize", size), ("q", query), ("fields", &fields)],
        );
        let mut pairs = url.query_pairs_mut();
        match &self.drive {
            // Drive answers queries over all drives only partially.
            None => pairs.append_pair("corpora", "user"),
            Some(drive) => pairs.append_pair("corpora", "drive").append_pair("driveId", drive),
        };
        pairs.extend_pairs(page.map(|page| ("pageToken", page)));
        drop(pairs);
        url
    }

    async fn start(&self, call: &Call) -> Result<String, Fault> {
        #[derive(Deserialize)]
        struct Start {
            #[serde(rename = "startPageToken")]
            token: String,
        }
        let mut url = self.at(&["changes", "startPageToken"], &[]);
        url.query_pairs_mut().extend_pairs(self.drive.as_ref().map(|drive| ("driveId", drive)));
        match self.get(call, &url, MAX_LIST_BYTES).await {
            // Without access to the shared drive, all of its files would look deleted.
            Err(Fault::Gone) => Err(Fault::Forbidden),
            answer => Ok(read::<Start>(answer?.body())?.token),
        }
    }

    /// A file in the selected scope; `None` if it does not exist or is outside.
    async fn chosen_file(&self, call: &Call, id: &str) -> Result<Option<File>, Fault> {
        let kept = self.last_page.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        if kept.is_some() {
            return Ok(kept);
        }
        match self.file(call, id).await? {
            Some(file) if self.is_in_scope(call, &file).await? => Ok(Some(file)),
            Some(_) | None => Ok(None),
        }
    }

    async fn file(&self, call: &Call, id: &str) -> Result<Option<File>, Fault> {
        match self.get(call, &self.at(&["files", id], &[("fields", FIELDS)]), MAX_LIST_BYTES).await {
            Err(Fault::Gone) => Ok(None),
            answer => Ok(Some(read(answer?.body())?)),
        }
    }

    /// The bytes of a file, and their media type.
    async fn bytes(&self, call: &Call, file: &File) -> Result<Fetched, Fault> {
        let kinds = match file.way() {
            Way::None => return Ok(Fetched::Unsupported(file.mime.clone())),
            Way::Download => {
                let url = self.at(&["files", &file.id], &[("alt", "media")]);
                return Ok(self.body(file, self.get(call, &url, MAX_FILE_BYTES).await?, &file.mime));
            }
            Way::Export(kinds) => kinds,
        };
        let mut refused = Fault::Refused;
        for kind in kinds {
            let url = self.at(&["files", &file.id, "export"], &[("mimeType", kind)]);
            match self.get(call, &url, MAX_FILE_BYTES).await {
                Err(fault @ Fault::Refused) => refused = fault,
                answer => return Ok(self.body(file, answer?, kind)),
            }
        }
        Err(refused)
    }

    fn body(&self, file: &File, answer: Response<Bytes>, kind: &str) -> Fetched {
        let version = file.version().unwrap_or_else(|| Version::of_bytes(answer.body()));
        let mut body = Body::new(answer.into_body(), kind, version);
        body.title = Some(file.name.clone()).filter(|name| !name.is_empty());
        body.url.clone_from(&file.web);
        Fetched::Body(body)
    }
}

/// The meaning of a 403.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Limit,
    ExportSize,
    Access,
}

fn refusal(body: &[u8]) -> Refusal {
    #[derive(Deserialize)]
    struct Refused {
        error: Details,
    }
    #[derive(Deserialize)]
    struct Details {
        #[serde(default)]
        errors: Vec<Reason>,
    }
    #[derive(Deserialize)]
    struct Reason {
        #[serde(default)]
        reason: Option<String>,
    }
    let reasons =
        serde_json::from_slice::<Refused>(body).map(|refused| refused.error.errors).unwrap_or_default();
    for reason in reasons.iter().filter_map(|reason| reason.reason.as_deref()) {
        match reason {
            "userRateLimitExceeded"
            | "rateLimitExceeded"
            | "dailyLimitExceeded"
            | "sharingRateLimitExceeded"
            | "quotaExceeded" => return Refusal::Limit,
            "exportSizeLimitExceeded" => return Refusal::ExportSize,
            _ => {}
        }
    }
    Refusal::Access
}

#[async_trait]
impl Provider for Drive {
    fn traits(&self) -> Traits {
        Traits {
            listing: Listing::Exhaustive,
            changes: Changes::Exact,
            deletions: Deletions::FromChanges,
            gone_after: None,
            search: Search::Text,
            every: EVERY,
        }
    }

    async fn check(&self, call: &Call) -> Result<Account, Fault> {
        #[derive(Deserialize)]
        struct About {
            #[serde(default)]
            user: Option<User>,
        }
        #[derive(Deserialize)]
        struct User {
            #[serde(rename = "emailAddress", default)]
            email: Option<String>,
        }
        self.start(call).await?;
        if let Some(folder) = &self.folder
            && !self.file(call, folder).await?.is_some_and(|file| file.is_folder())
        {
            return Err(Fault::Gone);
        }
        let about =
            self.get(call, &self.at(&["about"], &[("fields", "user(emailAddress)")]), MAX_LIST_BYTES).await;
        let name = match about {
            Ok(answer) => read::<About>(answer.body())?.user.and_then(|user| user.email),
            Err(Fault::Gone | Fault::Forbidden) => None,
            Err(fault) => return Err(fault),
        };
        let words = "Drive answers. Everything that the account sees there is shown to every member of the workspace.";
        Ok(Account::new(name.as_deref(), words))
    }

    async fn list(&self, call: &Call, from: Option<&Position>) -> Result<Page, Fault> {
        let place = match from {
            Some(from) => from.read(SHAPE)?,
            None => Place::Listing {
                start: self.start(call).await?,
                page: None,
                folders: self.folder.iter().cloned().collect(),
                partial: Vec::new(),
            },
        };
        self.page_of_listing(call, place).await
    }

    async fn changes(&self, call: &Call, from: &Position) -> Result<Page, Fault> {
        match from.read(SHAPE)? {
            Place::Changes { token } => self.page_of_changes(call, &token).await,
            Place::Listing { .. } => Err(Fault::PositionLost),
        }
    }

    async fn fetch(&self, call: &Call, id: &ExternalId, known: Option<&Version>) -> Result<Fetched, Fault> {
        if !is_id(id.as_str()) {
            return Ok(Fetched::Gone);
        }
        let Some(file) =
            self.chosen_file(call, id.as_str()).await?.filter(|file| !file.trashed && file.is_document())
        else {
            return Ok(Fetched::Gone);
        };
        if known.is_some() && known == file.version().as_ref() {
            return Ok(Fetched::Same);
        }
        match file.size().filter(|size| *size > MAX_FILE_BYTES as u64) {
            Some(size) => Ok(Fetched::TooLarge(size)),
            None => match self.bytes(call, &file).await {
                Err(Fault::TooLarge(bytes)) => Ok(Fetched::TooLarge(bytes)),
                Err(Fault::Gone) => Ok(Fetched::Gone),
                fetched => fetched,
            },
        }
    }

    async fn search(&self, call: &Call, query: &str, limit: usize) -> Result<Vec<Entry>, Fault> {
        #[derive(Deserialize)]
        struct Found<'a> {
            #[serde(borrow)]
            files: Items<'a>,
        }
        let words: String =
            query.chars().take(200).collect::<String>().replace('\\', "\\\\").replace('\'', "\\'");
        let query = format!("fullText contains '{words}' and trashed=false");
        let size = limit.clamp(1, 100).to_string();
        let answer = self.get(call, &self.listing(&query, &size, None), MAX_LIST_BYTES).await?;
        let found: Found<'_> = read(answer.body())?;
        let mut entries = Vec::new();
        for file in found.files.each::<File>().flatten().filter(|file| file.is_document() && !file.trashed) {
            if entries.len() < limit && self.is_in_scope(call, &file).await? {
                entries.extend(file.entry().ok());
            }
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests;
