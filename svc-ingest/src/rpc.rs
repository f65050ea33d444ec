//! The generated servers: decode, authorize, call, encode.

pub(crate) mod documents;
pub(crate) mod sources;

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
