//! Buckets of stores that speak S3.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::outbound;
use futures::stream::TryStreamExt as _;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path as Key;
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, Error, ObjectStore, RetryConfig};
use url::Url;

use super::UnknownLocation;

/// Without a byte from the store for this time, a request has failed. One request has no other limit: it lasts as long
/// as a slow reader takes.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const RETRIES: usize = 5;
/// No retry begins later than that.
const RETRY_LIMIT: Duration = Duration::from_secs(30);

/// A bucket, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    name: String,
    /// What the names of all objects begin with; empty for none.
    prefix: Key,
    /// The store; AWS itself when absent.
    endpoint: Option<Url>,
    region: Option<String>,
    allow_http: bool,
}

impl Bucket {
    /// Reads `s3://bucket/prefix?endpoint=…&region=…&allow_http=true`.
    pub(super) fn from_url(text: &str) -> Result<Self, UnknownLocation> {
        let url = Url::parse(text).map_err(|_| UnknownLocation::BUCKET)?;
        refuse_secrets(&url)?;
        let name = url.host_str().filter(|name| is_bucket_name(name)).ok_or(UnknownLocation::BUCKET)?;
        let prefix = Key::from_url_path(url.path()).map_err(|_| UnknownLocation::BUCKET)?;
        let mut bucket =
            Self { name: name.to_owned(), prefix, endpoint: None, region: None, allow_http: false };
        for (key, value) in url.query_pairs() {
            match &*key {
                "endpoint" => bucket.endpoint = Some(endpoint(&value)?),
                "region" if is_region(&value) => bucket.region = Some(value.into_owned()),
                "allow_http" if matches!(&*value, "true" | "false") => bucket.allow_http = value == "true",
                _ => return Err(UnknownLocation::PARAMETER),
            }
        }
        match &bucket.endpoint {
            Some(endpoint) if endpoint.scheme() == "http" && !bucket.allow_http => Err(UnknownLocation::HTTP),
            _ => Ok(bucket),
        }
    }

    /// Opens the bucket with the credentials that the environment has, as for the tools of AWS.
    pub(super) async fn open(&self) -> Result<Arc<dyn ObjectStore>, Error> {
        self.open_with(AmazonS3Builder::from_env()).await
    }

    /// Opens the bucket, and asks it once: what is set wrongly is said at the start, not at the first upload.
    pub(super) async fn open_with(&self, settings: AmazonS3Builder) -> Result<Arc<dyn ObjectStore>, Error> {
        // The engine's HTTP client takes the one of the process.
        outbound::install_crypto();
        let client = ClientOptions::new()
            .with_timeout_disabled()
            .with_read_timeout(SILENCE_LIMIT)
            .with_connect_timeout(CONNECT_LIMIT);
        let retry =
            RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_LIMIT, ..RetryConfig::default() };
        let mut settings = settings
            .with_client_options(client)
            .with_allow_http(self.allow_http)
            .with_retry(retry)
            .with_bucket_name(&self.name)
            // Not every store has the request that deletes many.
            .with_disable_bulk_delete(true);
        if let Some(region) = &self.region {
            settings = settings.with_region(region);
        }
        if let Some(endpoint) = &self.endpoint {
            settings = settings.with_endpoint(endpoint.as_str()).with_virtual_hosted_style_request(false);
        }
        let engine = PrefixStore::new(settings.build()?, self.prefix.clone());
        engine.list(None).try_next().await?;
        Ok(Arc::new(engine))
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "s3://{}/{}", self.name, self.prefix)
    }
}

/// Where nobody looks for a secret there must be none.
fn refuse_secrets(url: &Url) -> Result<(), UnknownLocation> {
    if url.username().is_empty() && url.password().is_none() && url.fragment().is_none() {
        return Ok(());
    }
    Err(UnknownLocation::SECRET)
}

fn endpoint(text: &str) -> Result<Url, UnknownLocation> {
    let url = Url::parse(text).map_err(|_| UnknownLocation::ENDPOINT)?;
    refuse_secrets(&url)?;
    let is_usable = matches!(url.scheme(), "https" | "http") && url.host().is_some() && url.query().is_none();
    if is_usable { Ok(url) } else { Err(UnknownLocation::ENDPOINT) }
}

fn is_bucket_name(name: &str) -> bool {
    (3..=63).contains(&name.len())
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'))
}

fn is_region(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_has_a_prefix_and_a_store() {
        let plain = Bucket::from_url("s3://assets").unwrap();
        assert_eq!((plain.name.as_str(), plain.endpoint.as_ref(), plain.allow_http), ("assets", None, false));
        assert_eq!(plain.to_string(), "s3://assets/");
        let text = "s3://my.assets/a/b%20c/?endpoint=https://minio.example:9000&region=eu-west-1";
        let full = Bucket::from_url(text).unwrap();
        assert_eq!(full.to_string(), "s3://my.assets/a/b c");
        assert_eq!(full.endpoint.unwrap().as_str(), "https://minio.example:9000/");
        assert_eq!(full.region.unwrap(), "eu-west-1");
        assert!(Bucket::from_url("s3://assets?endpoint=http%3A%2F%2Fminio:9000&allow_http=true").is_ok());
    }

    #[test]
    fn what_is_wrong_is_said_and_not_repeated() {
        for (text, about) in [
            ("s3:", "bucket"),
            ("s3:///x", "bucket"),
            ("s3://A_B", "bucket"),
            ("s3://ab", "bucket"),
            ("s3://key:s3cret@assets", "AWS_SECRET_ACCESS_KEY"),
            ("s3://assets?endpoint=https://key:s3cret@minio", "AWS_SECRET_ACCESS_KEY"),
            ("s3://assets?secret_access_key=s3cret", "parameter"),
            ("s3://assets?region=", "parameter"),
            ("s3://assets?allow_http=maybe", "parameter"),
            ("s3://assets?endpoint=minio", "endpoint"),
            ("s3://assets?endpoint=ftp://minio", "endpoint"),
            ("s3://assets?endpoint=http://minio:9000", "allow_http"),
            ("s3://assets?endpoint=http://minio:9000&allow_http=false", "allow_http"),
        ] {
            let refusal = Bucket::from_url(text).unwrap_err().to_string();
            assert!(refusal.contains(about) && !refusal.contains("s3cret"), "{text}: {refusal}");
        }
    }
}
