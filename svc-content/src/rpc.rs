//! The generated servers: decode, authorize, call, encode.

pub(crate) mod assets;
pub(crate) mod batch;
pub(crate) mod databases;
pub(crate) mod documents;
pub(crate) mod files;
pub(crate) mod folders;
mod lifecycle;
pub(crate) mod memories;
pub(crate) mod overview;
pub(crate) mod records;
pub(crate) mod trash;
pub(crate) mod tree;
pub(crate) mod usage;
pub(crate) mod versions;

use cairn_chassis::identity::{Permission, Verifier};
use cairn_chassis::status::Problem;
use tonic::metadata::MetadataMap;

use crate::scope::Caller;

async fn authorize(
    verifier: &Verifier,
    metadata: &MetadataMap,
    permission: Permission,
) -> Result<Caller, Problem> {
    let identity = verifier.authenticate(metadata).await?;
    identity.require(permission)?;
    Caller::try_from(identity)
}

/// Splits an update mask into the fields that are known and the names that are not.
fn split_mask<'a>(mask: Option<&'a prost_types::FieldMask>, known: &[&str]) -> (Vec<&'a str>, Vec<String>) {
    let paths = mask.map(|mask| mask.paths.as_slice()).unwrap_or_default();
    let (fields, unknown): (Vec<&str>, Vec<&str>) =
        paths.iter().map(String::as_str).partition(|path| known.contains(path));
    (fields, unknown.into_iter().map(str::to_owned).collect())
}
