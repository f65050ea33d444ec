//! On what terms an input is taken: which permission it needs, and how large it may be. They stand beside the input, so
//! that both are judged before anybody looks at what the input says. The services judge the permission again.

use cairn_chassis::identity::Permission;

/// Whatever is a handful of fields that a person fills in.
pub(crate) const FORM_BYTES: usize = 16 * 1024;
/// Searches, scripts, databases and records: JSON that a program puts together.
const ORDINARY_BYTES: usize = 1024 * 1024;
/// A file: 5 MB of text, escaped by the most wasteful client.
const FILE_BYTES: usize = 16 * 1024 * 1024;

/// What an input asks of its caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// `None` where a service knows alone who may.
    pub(crate) permission: Option<Permission>,
    /// As JSON.
    pub(crate) most_bytes: usize,
}

impl Terms {
    /// The service judges who may.
    pub(crate) const ORDINARY: Self = Self { permission: None, most_bytes: ORDINARY_BYTES };
    /// A form, from people who may not have signed in yet.
    pub(crate) const FORM: Self = Self { permission: None, most_bytes: FORM_BYTES };
    /// For whoever may read.
    pub(crate) const READ: Self = Self { permission: Some(Permission::Read), ..Self::ORDINARY };
    /// For whoever may write.
    pub(crate) const WRITE: Self = Self { permission: Some(Permission::Write), ..Self::ORDINARY };
    /// For whoever may delete.
    pub(crate) const DELETE: Self = Self { permission: Some(Permission::Delete), ..Self::ORDINARY };
    /// For whoever may write, with the text of a file.
    pub(crate) const WRITE_FILE: Self = Self { most_bytes: FILE_BYTES, ..Self::WRITE };
}
