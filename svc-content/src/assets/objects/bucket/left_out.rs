//! The stub for opening a bucket in a binary without the feature `s3`.

use std::sync::Arc;

use object_store::{Error, ObjectStore};

use super::Bucket;

impl Bucket {
    /// Fails: the binary lacks the feature.
    #[expect(clippy::unused_async, reason = "as with the feature")]
    pub(in crate::assets::objects) async fn open(&self) -> Result<Arc<dyn ObjectStore>, Error> {
        let source = format!("assets are kept in {self}, and this binary was built without the feature `s3`");
        Err(Error::Generic { store: "S3", source: source.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_bucket_is_refused_at_the_start() {
        let refused = Bucket::from_url("s3://assets").unwrap().open().await.unwrap_err();
        assert!(refused.to_string().contains("without the feature `s3`"), "{refused}");
    }
}
