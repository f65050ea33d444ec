//! One reader for each kind of file.

pub(crate) mod archive;
pub(crate) mod html;
