//! Opens a bucket.

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::outbound;
use futures::stream::TryStreamExt as _;
use object_store::aws::AmazonS3Builder;
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, Error, ObjectStore, RetryConfig};

use super::Bucket;

/// Without a byte from the store for this time, a request has failed. One request has no other limit: it lasts as long
/// as a slow reader takes.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const RETRIES: usize = 5;
/// No retry begins later than that.
const RETRY_LIMIT: Duration = Duration::from_secs(30);

impl Bucket {
    /// Opens the bucket with the credentials that the environment has, as for the tools of AWS.
    pub(in crate::assets::objects) async fn open(&self) -> Result<Arc<dyn ObjectStore>, Error> {
        self.open_with(AmazonS3Builder::from_env()).await
    }

    /// Opens the bucket, and asks it once: what is set wrongly is said at the start, not at the first upload.
    pub(in crate::assets::objects) async fn open_with(
        &self,
        settings: AmazonS3Builder,
    ) -> Result<Arc<dyn ObjectStore>, Error> {
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
