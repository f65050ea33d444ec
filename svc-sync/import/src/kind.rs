//! What a file becomes, by the extension of its name.

/// What an entry becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Markdown, in which links are replaced and tags are found.
    Markdown,
    /// JSON: also a canvas.
    Json,
    /// YAML: also a base.
    Yaml,
    /// Plain text.
    Text,
    /// Everything else: an attachment of this media type.
    Asset(&'static str),
}

impl Kind {
    /// The media type of an attachment.
    #[must_use]
    pub fn media_type(self) -> Option<&'static str> {
        match self {
            Self::Asset(media_type) => Some(media_type),
            Self::Markdown | Self::Json | Self::Yaml | Self::Text => None,
        }
    }

    /// The kind of a file by its name.
    #[must_use]
    pub fn of(name: &str) -> Self {
        match extension(name).as_str() {
            "md" | "markdown" => Self::Markdown,
            "canvas" | "json" => Self::Json,
            "base" | "yaml" | "yml" => Self::Yaml,
            "txt" | "csv" => Self::Text,
            _ => Self::Asset(media_type(name)),
        }
    }
}

/// What follows the last dot of a name, in lower case.
pub(crate) fn extension(name: &str) -> String {
    name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default()
}

/// The media type by the extension.
fn media_type(name: &str) -> &'static str {
    mime_guess::from_ext(&extension(name)).first_raw().unwrap_or("application/octet-stream")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_go_by_extension() {
        for (name, kind) in [
            ("a.md", Kind::Markdown),
            ("a.MARKDOWN", Kind::Markdown),
            ("board.canvas", Kind::Json),
            ("a.json", Kind::Json),
            ("a.base", Kind::Yaml),
            ("a.yaml", Kind::Yaml),
            ("a.yml", Kind::Yaml),
            ("a.txt", Kind::Text),
            ("a.csv", Kind::Text),
            ("a.png", Kind::Asset("image/png")),
            ("a.b.PDF", Kind::Asset("application/pdf")),
            ("LICENSE", Kind::Asset("application/octet-stream")),
        ] {
            assert_eq!(Kind::of(name), kind, "{name}");
        }
    }
}
