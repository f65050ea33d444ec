//! The gRPC servers: decode, authorize, call, encode.

pub(crate) mod activity;
pub(crate) mod assets;
pub(crate) mod batch;
pub(crate) mod changes;
pub(crate) mod databases;
pub(crate) mod documents;
pub(crate) mod files;
mod filters;
pub(crate) mod folders;
mod lifecycle;
pub(crate) mod locations;
pub(crate) mod memories;
pub(crate) mod names;
pub(crate) mod overview;
pub(crate) mod records;
mod storage;
pub(crate) mod trash;
pub(crate) mod tree;
pub(crate) mod usage;
pub(crate) mod versions;

use cairn_chassis::call::Call;
use cairn_chassis::identity::{Permission, Verifier};
use cairn_chassis::status::Problem;
use cairn_chassis::wording;
use cairn_proto::content::v1 as proto;
use tonic::metadata::MetadataMap;

use crate::model::Author;
use crate::scope::Caller;

async fn authorize(
    verifier: &Verifier,
    metadata: &MetadataMap,
    permission: Permission,
) -> Result<Caller, Problem> {
    let caller: Caller = verifier.authorize(metadata, permission).await?;
    Ok(Caller { call: Some(Call::from_metadata(metadata)), ..caller })
}

/// Only services may choose the ids of new items, so that they can find out after a failure whether an item was
/// created.
async fn choosing_ids(
    verifier: &Verifier,
    metadata: &MetadataMap,
    new_id: Option<&str>,
) -> Result<(), Problem> {
    if new_id.is_none() {
        return Ok(());
    }
    verifier.authenticate(metadata).await?.require_service()
}

/// A parsed update mask.
struct Mask {
    named: Vec<String>,
    /// The violations for names that are no field.
    unknown: Vec<String>,
}

impl Mask {
    /// Parses a mask with these fields. Error messages name the top-level ones.
    fn read(mask: Option<prost_types::FieldMask>, fields: &[&str]) -> Self {
        let paths = mask.map(|mask| mask.paths).unwrap_or_default();
        let (named, unknown): (Vec<String>, Vec<String>) =
            paths.into_iter().partition(|path| fields.contains(&path.as_str()));
        let outer: Vec<&str> = fields.iter().copied().filter(|field| !field.contains('.')).collect();
        let outer = wording::and(&outer);
        let unknown =
            unknown.into_iter().map(|path| format!("'{path}' cannot be updated; {outer} can")).collect();
        Self { named, unknown }
    }

    fn names(&self, field: &str) -> bool {
        self.named.iter().any(|named| named == field)
    }
}

fn author(author: Author) -> proto::Author {
    proto::Author { kind: author.kind, id: author.id, name: author.name }
}

/// The patch of a request: the fields that may be updated, with the same names in both; each is present when the mask
/// names it. This is the only place that defines them.
macro_rules! patch {
    ($request:ident => $patch:ident { $($field:ident $(: $decode:expr)?),+ $(,)? }) => {{
        let mask = $crate::rpc::Mask::read($request.update_mask, &[$(stringify!($field)),+]);
        let mut patch = $patch { unknown_fields: mask.unknown, ..$patch::default() };
        $(if mask.named.iter().any(|named| named == stringify!($field)) {
            patch.$field = Some($crate::rpc::patch!(@ $request.$field $(, $decode)?));
        })+
        patch
    }};
    (@ $value:expr) => { $value };
    (@ $value:expr, $decode:expr) => { $value.into_iter().map($decode).collect() };
}
use patch;
