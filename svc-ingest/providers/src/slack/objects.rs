//! Slack's representation of search results, messages and their markup.

use cairn_chassis::clock::Timestamp;
use serde::Deserialize;
use url::Url;

use crate::{Entry, ExternalId, Version};

/// Characters of a message that become its title.
const TITLE_CHARS: usize = 80;
const MAX_ADDRESS_BYTES: usize = 2_000;

/// A search result, with the fields of both searches.
#[derive(Deserialize)]
pub(super) struct Hit {
    #[serde(default)]
    channel_id: Option<String>,
    #[serde(default)]
    channel_name: Option<String>,
    #[serde(default)]
    channel: Option<Channel>,
    #[serde(alias = "message_ts")]
    ts: String,
    #[serde(default)]
    thread_ts: Option<String>,
    #[serde(alias = "content", default)]
    text: Option<String>,
    #[serde(default)]
    permalink: Option<String>,
}

/// The fields of a channel that tell its type.
#[derive(Deserialize)]
pub(super) struct Channel {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    is_private: bool,
    #[serde(default)]
    is_mpim: bool,
    #[serde(default)]
    is_im: bool,
}

/// A message of a thread.
#[derive(Deserialize)]
pub(super) struct Message {
    ts: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    username: Option<String>,
}

impl Channel {
    /// Its type, as in the setting `channelTypes`.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self { is_im: true, .. } => "im",
            Self { is_mpim: true, .. } => "mpim",
            Self { is_private: true, .. } => "private_channel",
            Self { .. } => "public_channel",
        }
    }
}

impl Hit {
    /// The type of the channel, as the older search cannot filter by it.
    pub(super) fn channel_type(&self) -> &'static str {
        self.channel.as_ref().map_or("public_channel", Channel::kind)
    }

    /// The entry: the thread of the message.
    pub(super) fn entry(&self, id: ExternalId) -> Entry {
        let text = plain(self.text.as_deref().unwrap_or_default());
        let nested = || self.channel.as_ref().and_then(|channel| channel.name.as_deref());
        let channel = self.channel_name.as_deref().or_else(nested);
        let start: String =
            text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(TITLE_CHARS).collect();
        let title = channel.map_or(start.clone(), |channel| format!("#{channel}: {start}"));
        let mut entry = Entry::new(id, Version::of_bytes(text.as_bytes()), &title);
        entry.mime = Some("text/markdown".to_owned());
        entry.url = address(self.permalink.as_deref());
        entry.updated_at = moment_of(&self.ts);
        entry
    }

    /// The timestamp of the thread's first message, from a field or from the permalink of a reply.
    fn thread(&self) -> String {
        let of_link = || {
            let url = Url::parse(self.permalink.as_deref()?).ok()?;
            url.query_pairs().find(|(name, _)| name == "thread_ts").map(|(_, ts)| ts.into_owned())
        };
        self.thread_ts.clone().or_else(of_link).filter(|ts| is_ts(ts)).unwrap_or_else(|| self.ts.clone())
    }
}

/// The id of a document: channel and thread.
pub(super) fn message_id(hit: &Hit) -> Option<ExternalId> {
    let nested = || hit.channel.as_ref().and_then(|channel| channel.id.as_deref());
    let channel = hit.channel_id.as_deref().or_else(nested)?;
    let id = format!("{channel}__{}", hit.thread());
    place_of(&id)?;
    ExternalId::new(id).ok()
}

/// A URL from Slack, if it is a web URL.
pub(super) fn address(text: Option<&str>) -> Option<String> {
    let text = text.filter(|text| text.len() <= MAX_ADDRESS_BYTES)?;
    let url = Url::parse(text).ok()?;
    matches!(url.scheme(), "http" | "https").then(|| text.to_owned())
}

/// Parses an id into channel and thread.
pub(super) fn place_of(id: &str) -> Option<(&str, &str)> {
    let (channel, ts) = id.split_once("__")?;
    let is_channel =
        (1..=40).contains(&channel.len()) && channel.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_channel && is_ts(ts)).then_some((channel, ts))
}

fn is_ts(text: &str) -> bool {
    (1..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// The time of a message: seconds since the epoch, with a sequence number as fraction.
fn moment_of(ts: &str) -> Option<Timestamp> {
    ts.split('.').next()?.parse().ok().map(Timestamp::from_seconds)
}

impl Message {
    pub(super) fn add_to(&self, text: &mut String) {
        let said = plain(self.text.as_deref().unwrap_or_default());
        if said.trim().is_empty() {
            return;
        }
        let author = self.username.as_deref().or(self.user.as_deref()).unwrap_or("somebody");
        let author = author.split_whitespace().collect::<Vec<_>>().join(" ");
        let at = moment_of(&self.ts).map(Timestamp::to_rfc3339).unwrap_or_default();
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("**{author}**, {at}:\n\n{}\n", said.trim()));
    }
}

/// Converts Slack's markup to Markdown: links, mentions and channels become names, entities become characters.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('<') {
        out.push_str(before);
        let Some((inside, after)) = behind.split_once('>') else {
            rest = behind;
            break;
        };
        let (target, label) =
            inside.split_once('|').map_or((inside, None), |(target, label)| (target, Some(label)));
        match (target.strip_prefix(['@', '#', '!']), label) {
            (Some(_), Some(label)) => {
                out.push_str(&format!("{}{label}", target.get(..1).unwrap_or_default()))
            }
            (Some(_), None) => out.push_str(target),
            (None, Some(label)) => out.push_str(&format!("[{label}]({target})")),
            (None, None) => out.push_str(target),
        }
        rest = after;
    }
    out.push_str(rest);
    out.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_markdown() {
        assert_eq!(
            plain("see <https://a.example|the plan> by <@U1> in <#C1|general> &amp; <!here>"),
            "see [the plan](https://a.example) by @U1 in #general & !here"
        );
        assert_eq!(plain("a <https://a.example> b &lt;c&gt;"), "a https://a.example b <c>");
        for odd in ["<", "<>", "a < b", "<@", "<|x>", "<é|ü>", "<@é>"] {
            let _ = plain(odd);
        }
    }

    #[test]
    fn an_id_is_a_channel_and_a_thread() {
        assert_eq!(place_of("C1__1763640000.000100"), Some(("C1", "1763640000.000100")));
        for odd in ["", "C1", "C1__", "C 1__1.0", "C1__1.0&x=1", "../__1"] {
            assert_eq!(place_of(odd), None, "{odd}");
        }
        let reply: Hit = serde_json::from_str(r#"{"channel_id": "C1", "message_ts": "2.0", "permalink": "https://a.slack.com/archives/C1/p2?thread_ts=1.0&cid=C1"}"#).unwrap();
        assert_eq!(message_id(&reply).unwrap().as_str(), "C1__1.0");
    }
}
