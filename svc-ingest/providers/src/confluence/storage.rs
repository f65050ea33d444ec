//! Converts Confluence's storage format to HTML.
//!
//! It is XHTML with custom elements for macros, links and pictures, which are replaced by their content. The rest is plain HTML.

/// Macros with a rich-text body.
const TRANSPARENT: [&str; 12] = [
    "info", "note", "tip", "warning", "panel", "expand", "excerpt", "section", "column", "details", "quote",
    "div",
];
const CDATA: &str = "<![CDATA[";
const CDATA_END: &str = "]]>";
/// The nesting depth of macros; deeper ones are reduced to their text.
const MAX_DEPTH: usize = 100;

/// An open element.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Open {
    Code {
        language: String,
    },
    Transparent,
    /// A macro without text of its own.
    Dropped,
}

/// Converts a page to HTML.
pub(super) fn html(storage: &str) -> String {
    Reader { rest: storage, out: String::with_capacity(storage.len()), open: Vec::new() }.read()
}

struct Reader<'a> {
    rest: &'a str,
    out: String,
    open: Vec<Open>,
}

impl<'a> Reader<'a> {
    fn read(mut self) -> String {
        while let Some(at) = self.rest.find('<') {
            let (text, tag) = self.rest.split_at(at);
            self.text(text);
            self.rest = tag;
            if let Some(inside) = tag.strip_prefix(CDATA) {
                let (text, behind) = inside.split_once(CDATA_END).unwrap_or((inside, ""));
                self.text(&escaped(text));
                self.rest = behind;
                continue;
            }
            let Some((tag, behind)) = tag.split_once('>') else {
                // Truncated within a tag.
                self.rest = "";
                break;
            };
            self.rest = behind;
            self.tag(tag.trim_start_matches('<'));
        }
        let rest = self.rest;
        self.text(rest);
        self.out
    }

    fn text(&mut self, text: &str) {
        if !self.open.contains(&Open::Dropped) {
            self.out.push_str(text);
        }
    }

    fn tag(&mut self, tag: &str) {
        let (is_end, tag) = tag.strip_prefix('/').map_or((false, tag), |tag| (true, tag));
        let is_empty = tag.ends_with('/');
        let name =
            tag.split(|letter: char| letter.is_whitespace() || letter == '/').next().unwrap_or_default();
        match name {
            "ac:structured-macro" | "ac:macro" if is_end => self.close(),
            "ac:structured-macro" | "ac:macro" if !is_empty => {
                self.open(attribute(tag, "ac:name").unwrap_or_default())
            }
            "ac:parameter" if !is_end && !is_empty => self.parameter(tag),
            // The text of a link is its body, else the page's title.
            "ri:page" if !is_end => self.text_of(attribute(tag, "ri:content-title")),
            "ri:attachment" if !is_end => self.text_of(attribute(tag, "ri:filename")),
            "ac:image" if !is_end && !is_empty => self.skip_to("</ac:image>"),
            "ac:task-list" => self.text(if is_end { "</ul>" } else { "<ul>" }),
            "ac:task" => self.text(if is_end { "</li>" } else { "<li>" }),
            "ac:task-id" | "ac:task-status" | "ac:task-uuid" | "ac:placeholder" if !is_end && !is_empty => {
                self.skip_to(&format!("</{name}>"));
            }
            _ if name.starts_with("ac:") || name.starts_with("ri:") || name.starts_with("at:") => {}
            _ => {
                let slash = if is_end { "/" } else { "" };
                self.text(&format!("<{slash}{tag}>"));
            }
        }
    }

    fn text_of(&mut self, attribute: Option<&str>) {
        // The attribute is already escaped.
        self.text(attribute.unwrap_or_default());
        self.text(" ");
    }

    fn open(&mut self, name: &str) {
        let open = match name {
            "code" | "noformat" => Open::Code { language: String::new() },
            name if TRANSPARENT.contains(&name) => Open::Transparent,
            _ => Open::Dropped,
        };
        if self.open.len() >= MAX_DEPTH {
            return;
        }
        if matches!(open, Open::Code { .. }) {
            self.text("<pre><code>");
        }
        if open == Open::Transparent {
            self.text("<blockquote>");
        }
        self.open.push(open);
    }

    fn close(&mut self) {
        match self.open.pop() {
            Some(Open::Code { .. }) => self.text("</code></pre>"),
            Some(Open::Transparent) => self.text("</blockquote>"),
            Some(Open::Dropped) | None => {}
        }
    }

    /// A macro parameter: only the language of code and the title of a panel are output.
    fn parameter(&mut self, tag: &str) {
        let (value, behind) = self.rest.split_once("</ac:parameter>").unwrap_or((self.rest, ""));
        self.rest = behind;
        let value = value.trim();
        if value.contains('<') {
            return;
        }
        match (attribute(tag, "ac:name"), self.open.last_mut()) {
            (Some("language"), Some(Open::Code { language })) if is_word(value) => {
                value.clone_into(language);
                let begun = "<pre><code>";
                if self.out.ends_with(begun) {
                    self.out.truncate(self.out.len() - begun.len());
                    self.out.push_str(&format!("<pre><code class=\"language-{value}\">"));
                }
            }
            (Some("title"), Some(Open::Transparent)) => {
                self.text(&format!("<p><strong>{value}</strong></p>"))
            }
            _ => {}
        }
    }

    fn skip_to(&mut self, end: &str) {
        self.rest = self.rest.split_once(end).map_or("", |(_, behind)| behind);
    }
}

fn is_word(text: &str) -> bool {
    (1..=40).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'#' | b'-' | b'_'))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The raw value of an attribute.
fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let (_, behind) = tag.split_once(&format!("{name}=\""))?;
    behind.split_once('"').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_become_what_they_stand_for() {
        let code = r#"<ac:structured-macro ac:name="code" ac:schema-version="1"><ac:parameter ac:name="language">rust</ac:parameter><ac:plain-text-body><![CDATA[if a < b { x }]]></ac:plain-text-body></ac:structured-macro>"#;
        assert_eq!(html(code), "<pre><code class=\"language-rust\">if a &lt; b { x }</code></pre>");
        let info = r#"<p>Hi</p><ac:structured-macro ac:name="info"><ac:parameter ac:name="title">Note</ac:parameter><ac:rich-text-body><p>Careful</p></ac:rich-text-body></ac:structured-macro>"#;
        assert_eq!(
            html(info),
            "<p>Hi</p><blockquote><p><strong>Note</strong></p><p>Careful</p></blockquote>"
        );
        let toc = r#"a<ac:structured-macro ac:name="toc"><ac:parameter ac:name="maxLevel">3</ac:parameter></ac:structured-macro>b"#;
        assert_eq!(html(toc), "ab");
        assert_eq!(html(r#"a<ac:structured-macro ac:name="toc" />b"#), "ab");
    }

    #[test]
    fn links_tasks_and_pictures() {
        let link = r#"<ac:link><ri:page ri:content-title="Launch &amp; plan" /></ac:link>"#;
        assert_eq!(html(link), "Launch &amp; plan ");
        let image = r#"a<ac:image ac:width="3"><ri:attachment ri:filename="x.png" /></ac:image>b"#;
        assert_eq!(html(image), "ab");
        let tasks = "<ac:task-list><ac:task><ac:task-id>7</ac:task-id><ac:task-status>incomplete</ac:task-status><ac:task-body>Do it</ac:task-body></ac:task></ac:task-list>";
        assert_eq!(html(tasks), "<ul><li>Do it</li></ul>");
    }

    #[test]
    fn what_is_broken_ends_where_it_breaks() {
        for odd in [
            "<",
            "<ac:structured-macro",
            "a<![CDATA[b",
            "<ac:image><ri:page",
            "</ac:structured-macro></p>",
            "ü<é>",
            "",
        ] {
            let _ = html(odd);
        }
        assert_eq!(html("a<![CDATA[b<c"), "ab&lt;c");
        let deep = "<ac:structured-macro ac:name=\"info\">".repeat(10_000);
        assert_eq!(html(&deep).matches("<blockquote>").count(), MAX_DEPTH);
    }
}
