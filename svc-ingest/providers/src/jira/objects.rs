//! Jira's representation of issues and comments.

use cairn_chassis::clock::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::adf;
use crate::rest::{NO_ZONE, moment};
use crate::{Body, Entry, ExternalId, ItemFault, Version};

const MARKDOWN: &str = "text/markdown";

/// An issue.
#[derive(Deserialize)]
pub(super) struct Issue<'a> {
    pub(super) id: String,
    pub(super) key: String,
    #[serde(borrow)]
    fields: Fields<'a>,
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(default)]
    summary: Option<String>,
    #[serde(default)]
    updated: Option<String>,
    #[serde(borrow, default)]
    description: Option<&'a RawValue>,
    #[serde(borrow, default)]
    comment: Option<Comments<'a>>,
    #[serde(default)]
    status: Option<Named>,
    #[serde(default)]
    labels: Vec<String>,
}

/// The comments of an issue, all or only the first.
#[derive(Deserialize)]
pub(super) struct Comments<'a> {
    #[serde(borrow, default)]
    pub(super) comments: Vec<Comment<'a>>,
    #[serde(default)]
    total: Option<usize>,
}

#[derive(Deserialize)]
pub(super) struct Comment<'a> {
    #[serde(default)]
    author: Option<Named>,
    #[serde(borrow, default)]
    body: Option<&'a RawValue>,
    #[serde(default)]
    created: Option<String>,
}

#[derive(Deserialize)]
struct Named {
    #[serde(rename = "displayName", alias = "name", default)]
    name: Option<String>,
}

impl Comments<'_> {
    pub(super) fn is_whole(&self) -> bool {
        self.has_all(self.comments.len())
    }

    /// Whether that many are all of them.
    pub(super) fn has_all(&self, count: usize) -> bool {
        self.total.is_none_or(|total| count >= total)
    }
}

impl Comment<'_> {
    pub(super) fn add_to(&self, text: &mut String) {
        let author = self.author.as_ref().and_then(|author| author.name.as_deref()).unwrap_or("somebody");
        let at = self.created.as_deref().unwrap_or_default();
        text.push_str(&format!(
            "\n## Comment by {}, {}\n\n{}\n",
            one_line(author),
            one_line(at),
            rich(self.body)
        ));
    }
}

impl<'a> Issue<'a> {
    pub(super) fn updated_at(&self) -> Option<Timestamp> {
        moment(self.fields.updated.as_deref()?)
    }

    pub(super) fn version(&self) -> Option<Version> {
        Some(Version::new(self.updated_at()?.to_rfc3339()))
    }

    fn title(&self) -> String {
        format!("{} {}", self.key, one_line(self.fields.summary.as_deref().unwrap_or_default()))
    }

    pub(super) fn comments(&self) -> Option<&Comments<'a>> {
        self.fields.comment.as_ref()
    }

    /// The entry; `address` is the URL for people.
    pub(super) fn entry(&self, address: Option<String>) -> Result<Entry, ItemFault> {
        let title = self.title();
        let id = ExternalId::new(self.id.clone()).map_err(|_| ItemFault::unusable_id(&title))?;
        let Some(version) = self.version() else { return Err(ItemFault::passing(id, &title, NO_ZONE)) };
        let mut entry = Entry::new(id, version, &title);
        entry.mime = Some(MARKDOWN.to_owned());
        entry.url = address;
        entry.updated_at = self.updated_at();
        Ok(entry)
    }

    /// The text before the comments.
    pub(super) fn text(&self) -> String {
        let status =
            self.fields.status.as_ref().and_then(|status| status.name.as_deref()).unwrap_or("unknown");
        let mut text = format!("# {}\n\nStatus: {}", self.title(), one_line(status));
        if !self.fields.labels.is_empty() {
            text.push_str(&format!(". Labels: {}", one_line(&self.fields.labels.join(", "))));
        }
        text.push_str(".\n");
        let description = rich(self.fields.description);
        if !description.is_empty() {
            text.push_str(&format!("\n{description}\n"));
        }
        text
    }

    /// The body, if the response includes all of it.
    pub(super) fn whole_body(&self, address: Option<String>) -> Option<Body> {
        let comments = self.comments().filter(|comments| comments.is_whole())?;
        let mut text = self.text();
        comments.comments.iter().for_each(|comment| comment.add_to(&mut text));
        self.body(text, address)
    }

    pub(super) fn body(&self, text: String, address: Option<String>) -> Option<Body> {
        let mut body = Body::new(text, MARKDOWN, self.version()?);
        body.title = Some(self.title());
        body.url = address;
        Some(body)
    }
}

/// Rich text: Atlassian Document Format, or plain text from servers without it.
fn rich(value: Option<&RawValue>) -> String {
    let Some(value) = value else { return String::new() };
    if let Ok(node) = serde_json::from_str::<adf::Node>(value.get()) {
        return node.markdown();
    }
    serde_json::from_str::<String>(value.get()).unwrap_or_default().trim().to_owned()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
