//! Issues and pull requests.

use std::fmt::Write as _;

use cairn_chassis::clock::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::rest::{MAX_BODY_BYTES, NO_ZONE, moment};
use crate::{Body, Entry, ExternalId, ItemFault, Version};

const MARKDOWN: &str = "text/markdown";

/// An issue or pull request; GitHub treats pull requests as issues.
#[derive(Debug, Deserialize)]
pub(super) struct Issue {
    pub(super) number: u64,
    title: String,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    state: Option<String>,
    #[serde(default)]
    user: Option<User>,
    #[serde(default)]
    labels: Vec<Label>,
    updated_at: String,
    html_url: String,
    /// Absent in responses without the count.
    #[serde(default)]
    pub(super) comments: Option<u64>,
    #[serde(default)]
    pull_request: Option<IgnoredAny>,
    #[serde(default)]
    repository_url: Option<String>,
}

#[derive(Debug, Deserialize)]
struct User {
    #[serde(default)]
    login: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Label {
    Named { name: Option<String> },
    Bare(String),
}

/// A comment on an issue or in a review.
#[derive(Debug, Deserialize)]
pub(super) struct Comment {
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    user: Option<User>,
    #[serde(default)]
    created_at: Option<String>,
    updated_at: String,
    /// The file of a review comment.
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    issue_url: Option<String>,
    #[serde(default)]
    pull_request_url: Option<String>,
}

impl Issue {
    pub(super) fn is_pull(&self) -> bool {
        self.pull_request.is_some()
    }

    /// The name of its repository, if the response has it.
    pub(super) fn repository(&self) -> Option<(&str, &str)> {
        let mut parts = self.repository_url.as_deref()?.trim_end_matches('/').rsplit('/');
        let name = parts.next()?;
        Some((parts.next()?, name))
    }

    pub(super) fn updated_at(&self) -> Option<Timestamp> {
        moment(&self.updated_at)
    }

    pub(super) fn version(&self, or_later: Option<Timestamp>) -> Version {
        match or_later.filter(|later| Some(*later) > self.updated_at()) {
            Some(later) => Version::new(later.to_rfc3339()),
            None => Version::new(self.updated_at.clone()),
        }
    }

    /// The entry. `later` is the time of a comment, which may be later than the issue's own time.
    pub(super) fn entry(&self, id: String, later: Option<Timestamp>) -> Result<Entry, ItemFault> {
        let title = format!("#{} {}", self.number, self.title);
        let id = ExternalId::new(id).map_err(|_| ItemFault::unusable_id(&title))?;
        let Some(updated_at) = self.updated_at() else { return Err(ItemFault::passing(id, &title, NO_ZONE)) };
        let mut entry = Entry::new(id, self.version(later), &title);
        entry.mime = Some(MARKDOWN.to_owned());
        entry.url = Some(self.html_url.clone());
        entry.updated_at = Some(later.map_or(updated_at, |later| later.max(updated_at)));
        // Review comments are not included in the count.
        if self.comments == Some(0) && !self.is_pull() {
            entry.body = Some(self.text(&[]).body(self, self.version(None)));
        }
        Ok(entry)
    }

    /// The text with comments.
    pub(super) fn text(&self, comments: &[Comment]) -> Text {
        let mut text = Text::default();
        let author = name(self.user.as_ref());
        let state = self.state.as_deref().unwrap_or("open");
        let kind = if self.is_pull() { "Pull request" } else { "Issue" };
        text.add(&format!("# {}\n\n{kind} #{} by {author}, {state}", one_line(&self.title), self.number));
        let labels: Vec<&str> = self.labels.iter().filter_map(Label::name).collect();
        if !labels.is_empty() {
            text.add(&format!(". Labels: {}", labels.join(", ")));
        }
        text.add(".\n");
        text.add_paragraph(self.body.as_deref().unwrap_or_default());
        for comment in comments {
            comment.add_to(&mut text);
        }
        text
    }
}

impl Label {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Named { name } => name.as_deref(),
            Self::Bare(name) => Some(name),
        }
    }
}

impl Comment {
    pub(super) fn updated_at(&self) -> Option<Timestamp> {
        moment(&self.updated_at)
    }

    /// The number of its issue or pull request.
    pub(super) fn number(&self) -> Option<u64> {
        let url = self.issue_url.as_deref().or(self.pull_request_url.as_deref())?;
        url.rsplit('/').next()?.parse().ok()
    }

    fn add_to(&self, text: &mut Text) {
        let at = self.created_at.as_deref().unwrap_or(&self.updated_at);
        let mut heading = format!("\n## Comment by {}, {}", name(self.user.as_ref()), one_line(at));
        if let Some(path) = &self.path {
            let _ = write!(heading, ", on {}", one_line(path));
        }
        text.add(&heading);
        text.add("\n");
        text.add_paragraph(self.body.as_deref().unwrap_or_default());
    }
}

fn name(user: Option<&User>) -> String {
    let login = user.and_then(|user| user.login.as_deref()).map(one_line);
    login.filter(|login| !login.is_empty()).unwrap_or_else(|| "somebody".to_owned())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text builder, bounded by the limit of a body.
#[derive(Debug, Default)]
pub(super) struct Text {
    text: String,
    is_too_large: bool,
}

impl Text {
    fn add(&mut self, part: &str) {
        if self.text.len().saturating_add(part.len()) > MAX_BODY_BYTES {
            self.is_too_large = true;
        } else {
            self.text.push_str(part);
        }
    }

    fn add_paragraph(&mut self, part: &str) {
        let part = part.trim();
        if !part.is_empty() {
            self.add("\n");
            self.add(part);
            self.add("\n");
        }
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    pub(super) fn body(self, issue: &Issue, version: Version) -> Body {
        let mut body = Body::new(self.text, MARKDOWN, version);
        body.title = Some(format!("#{} {}", issue.number, one_line(&issue.title)));
        body.url = Some(issue.html_url.clone());
        body
    }
}
