//! Buckets of S3-compatible stores. Their URLs are always parsed; opening one requires the feature `s3`.

#[cfg(not(feature = "s3"))]
mod left_out;
#[cfg(feature = "s3")]
mod open;

use std::fmt;

use object_store::path::Path as Key;
use url::Url;

use super::UnknownLocation;

/// A bucket, or a prefix of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    name: String,
    /// The key prefix of all objects; empty for none.
    prefix: Key,
    /// The endpoint; AWS when absent.
    endpoint: Option<Url>,
    region: Option<String>,
    allow_http: bool,
}

impl Bucket {
    /// Parses `s3://bucket/prefix?endpoint=…&region=…&allow_http=true`.
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
}

impl fmt::Display for Bucket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "s3://{}/{}", self.name, self.prefix)
    }
}

/// URLs are logged and shown, so they must not contain secrets.
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
