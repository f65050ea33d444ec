//! A bucket on an S3-compatible server, the same one that svc-content's tests use.

#[path = "../../../svc-content/src/assets/objects/s3_server.rs"]
#[expect(dead_code, reason = "svc-content's own tests ask more of it")]
mod server;

/// A server with one bucket; it stops with its test's runtime.
#[derive(Debug)]
pub(crate) struct BucketServer(server::S3Server);

impl BucketServer {
    pub(crate) async fn start() -> Self {
        Self(server::S3Server::start().await)
    }

    /// The URL of a prefix in the bucket, as command options take it.
    pub(crate) fn place(&self, prefix: &str) -> String {
        format!("s3://{}/{prefix}?endpoint=http://{}&allow_http=true", server::BUCKET, self.0.address)
    }

    /// The credentials of the bucket.
    pub(crate) const CREDENTIALS: [(&str, &str); 2] =
        [("AWS_ACCESS_KEY_ID", server::ACCESS_KEY), ("AWS_SECRET_ACCESS_KEY", server::SECRET_KEY)];

    /// The keys of the objects under that prefix.
    pub(crate) fn names(&self, prefix: &str) -> Vec<String> {
        self.0.entries().into_iter().filter(|name| name.starts_with(prefix)).collect()
    }
}
