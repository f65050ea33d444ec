//! One reader for each kind of file.

pub(crate) mod archive;
pub(crate) mod docx;
pub(crate) mod epub;
pub(crate) mod html;
pub(crate) mod mail;
pub(crate) mod notebook;
mod office;
pub(crate) mod opendocument;
pub(crate) mod pdf;
pub(crate) mod pptx;
pub(crate) mod rtf;
pub(crate) mod sheets;
pub(crate) mod table;
mod xml;

#[cfg(test)]
pub(crate) mod testing;
