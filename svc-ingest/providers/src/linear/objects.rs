//! Linear's representation of issues, documents and comments.

use cairn_chassis::clock::Timestamp;
use serde::Deserialize;

use crate::rest::{Items, NO_ZONE, moment};
use crate::{Body, Entry, ExternalId, Item, ItemFault, Version};

const MARKDOWN: &str = "text/markdown";

/// A page of a connection.
#[derive(Deserialize)]
pub(super) struct Listed<'a> {
    #[serde(borrow)]
    pub(super) nodes: Items<'a>,
    #[serde(rename = "pageInfo", default)]
    page: PageInfo,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageInfo {
    #[serde(default)]
    has_next_page: bool,
    #[serde(default)]
    end_cursor: Option<String>,
}

impl PageInfo {
    pub(super) fn next(&self) -> Option<String> {
        self.end_cursor.clone().filter(|_| self.has_next_page)
    }
}

impl Listed<'_> {
    pub(super) fn next(&self) -> Option<String> {
        self.page.next()
    }
}

/// An issue or a document.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Node {
    pub(super) id: String,
    #[serde(default)]
    identifier: Option<String>,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    updated_at: Option<String>,
    #[serde(default)]
    trashed: Option<bool>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    state: Option<Named>,
    #[serde(default)]
    creator: Option<Named>,
    #[serde(default)]
    labels: Option<Labels>,
}

#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    name: Option<String>,
}

#[derive(Deserialize)]
struct Labels {
    #[serde(default)]
    nodes: Vec<Named>,
}

/// A comment; with its issue when listed separately.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Comment {
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    created_at: Option<String>,
    #[serde(default)]
    updated_at: Option<String>,
    #[serde(default)]
    user: Option<Named>,
    #[serde(default)]
    pub(super) issue: Option<Node>,
}

impl Comment {
    pub(super) fn updated_at(&self) -> Option<Timestamp> {
        moment(self.updated_at.as_deref()?)
    }

    pub(super) fn add_to(&self, text: &mut String) {
        let at = self.created_at.as_deref().or(self.updated_at.as_deref()).unwrap_or_default();
        text.push_str(&format!("\n## Comment by {}, {}\n\n", name(self.user.as_ref()), one_line(at)));
        text.push_str(self.body.as_deref().unwrap_or_default().trim());
        text.push('\n');
    }
}

impl Node {
    pub(super) fn updated_at(&self) -> Option<Timestamp> {
        moment(self.updated_at.as_deref()?)
    }

    pub(super) fn is_in_trash(&self) -> bool {
        self.trashed == Some(true)
    }

    /// The title for people: key and title.
    pub(super) fn title(&self) -> String {
        let title = one_line(self.title.as_deref().unwrap_or_default());
        match &self.identifier {
            Some(key) => format!("{} {title}", one_line(key)),
            None => title,
        }
    }

    /// The version: the time of the item or of its latest comment.
    pub(super) fn version(&self, or_later: Option<Timestamp>) -> Option<Version> {
        let own = self.updated_at()?;
        Some(match or_later.filter(|later| *later > own) {
            Some(later) => Version::new(later.to_rfc3339()),
            None => Version::new(own.to_rfc3339()),
        })
    }

    /// The entry in a page.
    pub(super) fn item(&self, later: Option<Timestamp>) -> Result<Item, ItemFault> {
        let id = ExternalId::new(self.id.clone()).map_err(|_| ItemFault::unusable_id(&self.title()))?;
        if self.is_in_trash() {
            return Ok(Item::Gone(id));
        }
        self.entry(later).map(Item::from)
    }

    pub(super) fn entry(&self, later: Option<Timestamp>) -> Result<Entry, ItemFault> {
        let title = self.title();
        let id = ExternalId::new(self.id.clone()).map_err(|_| ItemFault::unusable_id(&title))?;
        let Some(version) = self.version(later) else { return Err(ItemFault::passing(id, &title, NO_ZONE)) };
        let mut entry = Entry::new(id, version, &title);
        entry.mime = Some(MARKDOWN.to_owned());
        entry.url.clone_from(&self.url);
        entry.updated_at = self.updated_at().max(later);
        Ok(entry)
    }

    /// A body from the text in the response.
    pub(super) fn document_body(&self) -> Option<Body> {
        let content = self.content.as_deref().unwrap_or_default().trim();
        self.body(format!("# {}\n\n{content}\n", self.title()), None)
    }

    /// The text of an issue without its comments.
    pub(super) fn issue_text(&self) -> String {
        let state = name(self.state.as_ref());
        let mut text = format!("# {}\n\nIssue by {}, {state}", self.title(), name(self.creator.as_ref()));
        let labels =
            self.labels.iter().flat_map(|labels| &labels.nodes).filter_map(|label| label.name.as_deref());
        let labels: Vec<String> = labels.map(one_line).collect();
        if !labels.is_empty() {
            text.push_str(&format!(". Labels: {}", labels.join(", ")));
        }
        text.push_str(".\n");
        let description = self.description.as_deref().unwrap_or_default().trim();
        if !description.is_empty() {
            text.push_str(&format!("\n{description}\n"));
        }
        text
    }

    pub(super) fn body(&self, text: String, later: Option<Timestamp>) -> Option<Body> {
        let mut body = Body::new(text, MARKDOWN, self.version(later)?);
        body.title = Some(self.title());
        body.url.clone_from(&self.url);
        Some(body)
    }
}

fn name(named: Option<&Named>) -> String {
    let name = named.and_then(|named| named.name.as_deref()).map(one_line);
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
