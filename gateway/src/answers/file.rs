//! HTTP metadata of a file's text.

use cairn_proto::content::v1::File;
use cairn_proto::domain::FileType;
/// The Content-Type of a file's text.
pub(crate) fn content_type(file: &File) -> &'static str {
    match FileType::from_number(file.file_type).unwrap_or_default() {
        FileType::Markdown => "text/markdown; charset=utf-8",
        FileType::Json => "application/json; charset=utf-8",
        FileType::Yaml => "text/yaml; charset=utf-8",
        FileType::Text => "text/plain; charset=utf-8",
    }
}
