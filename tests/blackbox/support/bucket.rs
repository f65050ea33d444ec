//! A bucket of a store that speaks S3, as the tests of svc-content have it.

#[path = "../../../svc-content/src/assets/objects/s3_server.rs"]
#[expect(dead_code, reason = "svc-content's own tests ask more of it")]
mod server;

/// A store with one bucket; it ends with the runtime of its test.
#[derive(Debug)]
pub(crate) struct BucketServer(server::S3Server);

impl BucketServer {
    pub(crate) async fn start() -> Self {
        Self(server::S3Server::start().await)
    }

    /// A part of the bucket, as options name it.
    pub(crate) fn place(&self, prefix: &str) -> String {
        format!("s3://{}/{prefix}?endpoint=http://{}&allow_http=true", server::BUCKET, self.0.address)
    }

    /// What opens it.
    pub(crate) const CREDENTIALS: [(&str, &str); 2] =
        [("AWS_ACCESS_KEY_ID", server::ACCESS_KEY), ("AWS_SECRET_ACCESS_KEY", server::SECRET_KEY)];

    /// The names of its objects below that prefix.
    pub(crate) fn names(&self, prefix: &str) -> Vec<String> {
        self.0.entries().into_iter().filter(|name| name.starts_with(prefix)).collect()
    }
}
