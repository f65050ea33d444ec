//! Zip archives, which Office files and books are: looked at before anything is unpacked, and counted while it is.

use crate::kind::{Kind, unsupported};
use crate::model::Failure;

/// The kind of file that an archive is.
pub(crate) fn kind_of(_bytes: &[u8]) -> Result<Kind, Failure> {
    Err(unsupported(Some("an archive")))
}
