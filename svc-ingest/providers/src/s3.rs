//! Buckets of S3-compatible object stores, with path-style URLs (`endpoint/bucket/key`) and signature version 4.
//!
//! A listing is exhaustive, and continues after the last key instead of a continuation token, which would expire. Only the source's
//! credentials are used, never the server's own role.

mod listing;
mod sign;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cairn_proto::domain::SourceMode;
use http::{Request, Response, StatusCode, header};
use serde::{Deserialize, Serialize};
use url::Url;

use self::listing::Object;
use self::sign::{Keys, encoded};
use crate::connect::Draft;
use crate::{
    Account, Body, Call, Changes, Deletions, Entry, ExternalId, Fault, Fetched, Item, ItemFault, Listing,
    MAX_BODY_BYTES, Page, Position, Provider, Search, Then, Traits, Version, mime,
};

/// The default first.
pub(crate) const MODES: &[SourceMode] = &[SourceMode::Indexed, SourceMode::Catalog];

/// Parses the settings `bucket`, `prefix`, `region` and `endpoint`.
pub(crate) fn make(draft: &mut Draft<'_>) -> Option<Box<dyn Provider>> {
    Bucket::make(draft)
}

const POSITION_VERSION: u16 = 1;
const MAX_LISTING_BYTES: usize = 8 * 1024 * 1024;
/// The wait after `SlowDown` without a `Retry-After`.
const SLOW_DOWN: Duration = Duration::from_secs(5);

/// A bucket, or the keys in it with a prefix.
#[derive(Debug)]
struct Bucket {
    /// `endpoint/bucket`, without a trailing slash.
    base: String,
    prefix: String,
    keys: Keys,
}

#[derive(Serialize, Deserialize)]
struct At {
    after: Option<String>,
}

impl Bucket {
    fn make(draft: &mut Draft<'_>) -> Option<Box<dyn Provider>> {
        let settings = &mut draft.settings;
        let bucket = settings.required_text("bucket", "give the name of a bucket");
        let prefix = settings.text("prefix").unwrap_or_default();
        let region = settings.text("region").unwrap_or_else(|| "us-east-1".to_owned());
        let is_region = region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !is_region {
            settings.refuse("region", "invalid_value", "must be the name of a region such as eu-central-1");
        }
        let had_endpoint = settings.value("endpoint").is_some();
        let endpoint = settings.address("endpoint", draft.reach.guard());
        if endpoint.as_ref().is_some_and(|url| url.query().is_some()) {
            settings.refuse("endpoint", "invalid_url", "may have no query");
        }
        let amazon = || Url::parse(&format!("https://s3.{region}.amazonaws.com/")).ok();
        let endpoint = if had_endpoint { endpoint } else { amazon() };
        let is_bucket = |name: &String| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
            (3..=255).contains(&name.len()) && name.bytes().all(is_plain) && !name.contains("..")
        };
        if bucket.as_ref().is_some_and(|name| !is_bucket(name)) {
            settings.refuse("bucket", "invalid_value", "must be the name of a bucket, without its address");
        }
        let credentials = &mut draft.credentials;
        let id = credentials.required_secret("accessKeyId", "give the id of an access key");
        let key = credentials.required_secret("secretAccessKey", "give the secret of the access key");
        let session = credentials.secret("sessionToken");
        let bucket = bucket.filter(is_bucket)?;
        let base = format!("{}/{bucket}", endpoint?.as_str().trim_end_matches('/'));
        Some(Box::new(Self { base, prefix, keys: Keys { id: id?, key: key?, session, region } }))
    }

    async fn page(&self, call: &Call, after: Option<&str>, most: u32) -> Result<listing::Answer, Fault> {
        let most = most.to_string();
        let mut query = vec![("encoding-type", "url"), ("list-type", "2"), ("max-keys", most.as_str())];
        if !self.prefix.is_empty() {
            query.push(("prefix", &self.prefix));
        }
        if let Some(after) = after {
            query.push(("start-after", after));
        }
        let query: Vec<String> =
            query.iter().map(|(name, value)| format!("{name}={}", encoded(value, false))).collect();
        let url = format!("{}?{}", self.base, query.join("&"));
        let answer = self.ask(call, &url, None, MAX_LISTING_BYTES).await?;
        judge(call, &answer).await?;
        listing::read(answer.body())
    }

    async fn ask(
        &self,
        call: &Call,
        url: &str,
        known: Option<&str>,
        most: usize,
    ) -> Result<Response<Bytes>, Fault> {
        let mut request = Request::get(url);
        if let Some(known) = known {
            request = request.header(header::IF_NONE_MATCH, known);
        }
        let mut request = request.body(Bytes::new()).map_err(|_| Fault::Address)?;
        self.keys.sign(&mut request, call.now())?;
        // A signature is valid for one host, so redirects cannot be followed.
        call.exchange_once(request, most).await
    }

    fn url(&self, key: &str) -> String {
        format!("{}/{}", self.base, encoded(key, true))
    }

    fn entry(&self, object: &Object) -> Result<Entry, ItemFault> {
        let id = ExternalId::new(object.key.as_str()).map_err(|_| ItemFault::unusable_id(&object.key))?;
        let version = version(&object.etag, object.size);
        let mut entry = Entry::new(id, version, object.key.rsplit('/').next().unwrap_or_default());
        entry.mime = Some(mime::of_name(&object.key).to_owned());
        entry.size = Some(object.size);
        entry.path = Some(object.key.clone());
        entry.url = Some(self.url(&object.key));
        entry.updated_at = object.modified;
        if !is_plain(&object.key) {
            return Err(ItemFault::lasting(
                &entry,
                "its key has a part . or .., so that it cannot be asked for",
            ));
        }
        if object.is_archived {
            return Err(ItemFault::lasting(&entry, "it is archived: restore it to have it read"));
        }
        Ok(entry)
    }
}

#[async_trait]
impl Provider for Bucket {
    fn traits(&self) -> Traits {
        Traits {
            listing: Listing::Exhaustive,
            changes: Changes::None,
            deletions: Deletions::FromListing,
            gone_after: None,
            search: Search::None,
            every: Duration::from_secs(60 * 60),
        }
    }

    async fn check(&self, call: &Call) -> Result<Account, Fault> {
        self.page(call, None, 1).await?;
        Ok(Account::new(None, "the bucket can be listed"))
    }

    async fn list(&self, call: &Call, from: Option<&Position>) -> Result<Page, Fault> {
        let at = from.map(|from| from.read::<At>(POSITION_VERSION)).transpose()?;
        let after = at.and_then(|at| at.after);
        let answer = self.page(call, after.as_deref(), 1_000).await?;
        let (mut items, mut faults) = (Vec::new(), Vec::new());
        // Consoles create folders as empty objects.
        for object in answer.objects.iter().filter(|object| !(object.key.ends_with('/') && object.size == 0))
        {
            match self.entry(object) {
                Ok(entry) => items.push(Item::from(entry)),
                Err(fault) => faults.push(fault),
            }
        }
        let last = answer.objects.last().map(|object| object.key.clone());
        let then = if answer.is_truncated {
            // A store that repeats keys would loop forever.
            let last = last.filter(|last| after.as_ref().is_none_or(|after| last > after));
            let after = last.ok_or(Fault::broken("the listing of the bucket does not go on"))?;
            Then::More(Position::new(POSITION_VERSION, &At { after: Some(after) })?)
        } else {
            let next = Position::new(POSITION_VERSION, &At { after: None })?;
            Then::End { next, partial: Vec::new() }
        };
        Page::new(items, faults, then)
    }

    async fn fetch(&self, call: &Call, id: &ExternalId, known: Option<&Version>) -> Result<Fetched, Fault> {
        let key = id.as_str();
        if !is_plain(key) || !key.starts_with(&self.prefix) {
            return Ok(Fetched::Gone);
        }
        let known = known.and_then(|known| known.as_str().rsplit_once(' ')).map(|(etag, _)| etag);
        let answer = match self.ask(call, &self.url(key), known, MAX_BODY_BYTES).await {
            Err(Fault::TooLarge(most)) => return Ok(Fetched::TooLarge(most)),
            other => other?,
        };
        match judge(call, &answer).await {
            Err(Fault::Gone) => return Ok(Fetched::Gone),
            other => other?,
        }
        if answer.status() == StatusCode::NOT_MODIFIED {
            return Ok(Fetched::Same);
        }
        let text =
            |name| answer.headers().get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
        let size = u64::try_from(answer.body().len()).unwrap_or(u64::MAX);
        let version = match text(header::ETAG) {
            Some(etag) => version(etag, size),
            None => Version::of_bytes(answer.body()),
        };
        let sent = text(header::CONTENT_TYPE).filter(|sent| !sent.ends_with("/octet-stream"));
        let mime = sent.unwrap_or_else(|| mime::of_name(key)).to_owned();
        let mut body = Body::new(answer.body().clone(), mime, version);
        body.url = Some(self.url(key));
        Ok(Fetched::Body(body))
    }
}

fn version(etag: &str, size: u64) -> Version {
    Version::new(format!("{etag} {size}"))
}

/// Whether a URL can address the key: URL parsers resolve `.` and `..`, even when escaped.
fn is_plain(key: &str) -> bool {
    !key.split('/').any(|part| matches!(part, "." | ".."))
}

/// Maps an error response to a fault; S3's body says more than its status.
async fn judge(call: &Call, answer: &Response<Bytes>) -> Result<(), Fault> {
    let status = answer.status();
    if status.is_success() || status == StatusCode::NOT_MODIFIED {
        return Ok(());
    }
    let code = listing::error_code(answer.body());
    match (status.as_u16(), code.as_deref().unwrap_or_default()) {
        (_, "SlowDown" | "RequestLimitExceeded" | "ServiceUnavailable") => {
            Err(call.hold_for(SLOW_DOWN).await)
        }
        (
            400 | 403,
            "InvalidAccessKeyId"
            | "SignatureDoesNotMatch"
            | "ExpiredToken"
            | "InvalidToken"
            | "AuthorizationHeaderMalformed"
            | "TokenRefreshRequired",
        )
        | (401, _) => Err(Fault::Credentials),
        (403, "RequestTimeTooSkewed") => {
            Err(Fault::broken("the clocks of the object store and of this server differ"))
        }
        (403, "InvalidObjectState") => {
            Err(Fault::broken("the object is archived: restore it to have it read"))
        }
        (301 | 307 | 308, _) => {
            Err(Fault::broken("the bucket is in another region: set `region` and `endpoint`"))
        }
        (404, "NoSuchBucket") => Err(Fault::broken("there is no such bucket")),
        _ => crate::call::judge(status),
    }
}

#[cfg(test)]
mod tests;
