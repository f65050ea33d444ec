//! Opens a bucket.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::outbound;
use futures::stream::TryStreamExt as _;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, Error, ObjectStore, RetryConfig};

use super::Bucket;

/// The read timeout: a request without a byte from the store for this long has failed. There is no total timeout: a
/// request lasts as long as a slow reader takes.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const RETRIES: usize = 5;
/// No retry starts later than this.
const RETRY_LIMIT: Duration = Duration::from_secs(30);

/// The variables that may be replaced by a file, named in the variable with the suffix `_FILE`.
const SECRETS: [&str; 3] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];
const FILE: &str = "_FILE";

/// The settings from the environment variables that the AWS tools use. An empty variable counts as unset.
fn settings(variables: impl Iterator<Item = (OsString, OsString)>) -> Result<AmazonS3Builder, Error> {
    let mut settings = AmazonS3Builder::new();
    for (name, value) in variables {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
        if !name.starts_with("AWS_") || value.trim().is_empty() {
            continue;
        }
        let (name, value) = match name.strip_suffix(FILE).filter(|secret| SECRETS.contains(secret)) {
            Some(secret) => (secret, secret_in(name, value)?),
            None => (name, value.to_owned()),
        };
        if let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
            settings = settings.with_config(key, value);
        }
    }
    Ok(settings)
}

fn secret_in(variable: &str, file: &str) -> Result<String, Error> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Error::Generic { store: "S3", source: format!("{variable}: {error}").into() })?;
    Ok(text.trim().to_owned())
}

impl Bucket {
    /// Opens the bucket with the credentials of the environment, as the AWS tools do.
    pub(in crate::assets::objects) async fn open(&self) -> Result<Arc<dyn ObjectStore>, Error> {
        self.open_with(settings(std::env::vars_os())?).await
    }

    /// Opens the bucket and sends one request, so that a wrong configuration fails at the start and not at the first
    /// upload.
    pub(in crate::assets::objects) async fn open_with(
        &self,
        settings: AmazonS3Builder,
    ) -> Result<Arc<dyn ObjectStore>, Error> {
        // The HTTP client uses the crypto provider of the process.
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
            // Not every store supports bulk deletes.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<AmazonS3Builder, Error> {
        settings(variables.iter().map(|(name, value)| (name.into(), value.into())))
    }

    #[test]
    fn credentials_may_stand_in_files_and_nothing_is_not_set() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "s3cret\n").unwrap();
        let path = file.display().to_string();
        let settings = read(&[
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY_FILE", &path),
            ("AWS_REGION", ""),
            ("PATH", "/bin"),
        ])
        .unwrap();
        let value = |key: AmazonS3ConfigKey| settings.get_config_value(&key);
        assert_eq!(value(AmazonS3ConfigKey::AccessKeyId).as_deref(), Some("id"));
        assert_eq!(value(AmazonS3ConfigKey::SecretAccessKey).as_deref(), Some("s3cret"));
        assert_eq!(value(AmazonS3ConfigKey::Region), None);
        let refusal = read(&[("AWS_ACCESS_KEY_ID_FILE", "/nowhere/id")]).err().unwrap().to_string();
        assert!(refusal.contains("AWS_ACCESS_KEY_ID_FILE"), "{refusal}");
    }
}
