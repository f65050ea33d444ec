//! RSS, Atom and JSON feeds, as lists of pages. The content of entries is ignored in favor of the pages.

use bytes::Bytes;
use cairn_chassis::clock::Timestamp;
use http::header;
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;
use url::Url;

use super::charset;
use super::listing::Listed;
use super::site::Sites;
use crate::rest::{Items, moment, read as read_json};
use crate::xml::{self, Node};
use crate::{Call, Fault, ItemFault};

const MAX_BYTES: usize = 16 * 1024 * 1024;
const MAX_ENTRIES: usize = 5_000;
/// Bytes of a timestamp.
const MAX_TIME_BYTES: usize = 64;

/// The pages that a feed links to, usually the latest first, and faults for entries without a link.
#[derive(Debug, Default)]
pub(super) struct Feed {
    pub(super) pages: Vec<Listed>,
    pub(super) faults: Vec<ItemFault>,
}

impl Feed {
    /// Fetches a feed.
    pub(super) async fn get(sites: &Sites, call: &Call, url: &Url) -> Result<Self, Fault> {
        let (answer, from) = sites.get(call, url, MAX_BYTES).await?;
        let sent = answer.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let sent = sent.map(str::to_owned);
        let read = tokio::task::spawn_blocking(move || Self::read(answer.body(), sent.as_deref(), &from));
        read.await.map_err(|_| Fault::Unavailable)?
    }

    fn read(body: &Bytes, mime: Option<&str>, from: &Url) -> Result<Self, Fault> {
        let text = charset::decode(body, mime);
        let mut feed = match text.trim_start().starts_with('{') {
            true => Self::of_json(&text, from)?,
            false => Self::of_xml(&text, from)?,
        };
        feed.pages.truncate(MAX_ENTRIES);
        feed.faults.truncate(MAX_ENTRIES);
        Ok(feed)
    }

    fn of_json(text: &str, from: &Url) -> Result<Self, Fault> {
        #[derive(Deserialize)]
        struct Document<'a> {
            version: String,
            #[serde(borrow)]
            items: Items<'a>,
        }
        #[derive(Deserialize)]
        struct Item {
            #[serde(default)]
            id: Option<String>,
            #[serde(default)]
            url: Option<String>,
            #[serde(default)]
            title: Option<String>,
            #[serde(default)]
            date_modified: Option<String>,
            #[serde(default)]
            date_published: Option<String>,
        }
        let document: Document<'_> = read_json(text.as_bytes())?;
        if !document.version.contains("jsonfeed.org") {
            return Err(Fault::broken("there is something else than a feed at the address"));
        }
        let mut feed = Self::default();
        for item in document.items.each::<Item>() {
            match item {
                Err(fault) => feed.faults.push(fault),
                Ok(item) => feed.add(
                    from,
                    Entry {
                        link: item.url,
                        id: item.id,
                        title: item.title.unwrap_or_default(),
                        updated: item.date_modified.as_deref().and_then(time_of),
                        published: item.date_published.as_deref().and_then(time_of),
                    },
                ),
            }
        }
        Ok(feed)
    }

    fn of_xml(text: &str, from: &Url) -> Result<Self, Fault> {
        let mut reading = Reading {
            from,
            depth: 0,
            entry: None,
            link: Link::default(),
            feed: Self::default(),
            is_feed: false,
        };
        xml::read(text.as_bytes(), |node| reading.take(&node))?;
        if !reading.is_feed {
            return Err(Fault::broken("there is something else than a feed at the address"));
        }
        Ok(reading.feed)
    }

    fn add(&mut self, from: &Url, entry: Entry) {
        // An id is often the URL, but not always.
        let id = entry.id.filter(|id| id.starts_with("http://") || id.starts_with("https://"));
        let address = entry.link.filter(|link| !link.trim().is_empty()).or(id);
        match address.and_then(|address| Listed::new(from, &address)) {
            Some(listed) => {
                let updated_at = entry.updated.or(entry.published);
                self.pages.push(Listed { title: entry.title, updated_at, ..listed });
            }
            None => self.faults.push(ItemFault {
                reason: "the entry of the feed names no page".into(),
                ..ItemFault::unusable_id(&entry.title)
            }),
        }
    }
}

/// An entry being parsed.
#[derive(Debug, Default)]
struct Entry {
    link: Option<String>,
    id: Option<String>,
    title: String,
    updated: Option<Timestamp>,
    published: Option<Timestamp>,
}

/// An Atom link, or an RSS guid, which may be a link.
#[derive(Debug, Default)]
struct Link {
    href: Option<String>,
    is_another: bool,
}

/// A feed parser.
struct Reading<'a> {
    from: &'a Url,
    depth: usize,
    /// The open entry, and its depth: only its direct children belong to it.
    entry: Option<(usize, Entry)>,
    link: Link,
    feed: Feed,
    is_feed: bool,
}

impl Reading<'_> {
    fn take(&mut self, node: &Node<'_>) {
        match node {
            Node::Open(name) => {
                self.depth += 1;
                self.is_feed |= self.depth == 1 && matches!(*name, "rss" | "RDF" | "feed");
                self.link = Link::default();
                if self.entry.is_none() && matches!(*name, "item" | "entry") {
                    self.entry = Some((self.depth, Entry::default()));
                }
            }
            Node::Attribute("href", value) => self.link.href = Some((*value).to_owned()),
            Node::Attribute("rel", value) => self.link.is_another = *value != "alternate",
            Node::Attribute("isPermaLink", value) => self.link.is_another = *value == "false",
            Node::Attribute(..) => {}
            Node::Close(name, text) => {
                self.close(name, text);
                self.depth = self.depth.saturating_sub(1);
            }
        }
    }

    fn close(&mut self, name: &str, text: &str) {
        let Some((depth, entry)) = &mut self.entry else { return };
        if self.depth == *depth {
            let entry = std::mem::take(entry);
            self.entry = None;
            self.feed.add(self.from, entry);
            return;
        }
        if self.depth != *depth + 1 {
            return;
        }
        let link = std::mem::take(&mut self.link);
        match name {
            "link" if link.is_another || entry.link.is_some() => {}
            "link" => {
                entry.link = link.href.or_else(|| Some(text.to_owned()).filter(|text| !text.is_empty()))
            }
            "guid" if link.is_another => {}
            "guid" | "id" => entry.id = Some(text.to_owned()),
            "title" if entry.title.is_empty() => text.clone_into(&mut entry.title),
            "updated" | "modified" => entry.updated = time_of(text),
            "pubDate" | "published" | "date" => entry.published = time_of(text),
            _ => {}
        }
    }
}

/// Parses RFC 3339 or RFC 2822. `None` without a time zone, which is not guessed.
fn time_of(text: &str) -> Option<Timestamp> {
    if text.len() > MAX_TIME_BYTES {
        return None;
    }
    moment(text).or_else(|| {
        let time = OffsetDateTime::parse(text, &Rfc2822).ok()?;
        Some(Timestamp::from_seconds(time.unix_timestamp()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(String, String, Option<String>)>, Fault> {
        let from = Url::parse("https://example.com/blog/feed.xml").unwrap();
        let feed = Feed::read(&Bytes::copy_from_slice(text.as_bytes()), None, &from)?;
        let faults = feed.faults.into_iter().map(|fault| ("fault".to_owned(), fault.title, None));
        let pages = feed
            .pages
            .into_iter()
            .map(|page| (page.url.into(), page.title, page.updated_at.map(Timestamp::to_rfc3339)));
        Ok(pages.chain(faults).collect())
    }

    fn row(url: &str, title: &str, time: Option<&str>) -> (String, String, Option<String>) {
        (url.to_owned(), title.to_owned(), time.map(str::to_owned))
    }

    #[test]
    fn rss_names_pages_by_link_or_by_id() {
        let feed = r#"<?xml version="1.0"?><rss version="2.0" xmlns:media="m" xmlns:atom="a"><channel><title>Blog</title>
            <link>https://example.com/</link><atom:link href="https://example.com/feed.xml" rel="self"/>
            <item><title>One &amp; two</title><link>https://example.com/1?utm_source=rss</link>
                <pubDate>Fri, 20 Nov 2026 12:00:00 GMT</pubDate><media:content><media:title>Picture</media:title></media:content>
                <guid isPermaLink="false">1</guid></item>
            <item><title>Two</title><guid>https://example.com/2</guid><pubDate>Fri, 20 Nov 2026 12:00:00 +0200</pubDate></item>
            <item><title>Three</title><link>/3</link><pubDate>20 November 2026, 12:00</pubDate></item>
            <item><title>Four</title><guid isPermaLink="false">https://example.com/4</guid></item>
            <item><title>Five</title><link>mailto:a@example.com</link></item></channel></rss>"#;
        assert_eq!(
            read(feed).unwrap(),
            [
                row("https://example.com/1", "One & two", Some("2026-11-20T12:00:00.000Z")),
                row("https://example.com/2", "Two", Some("2026-11-20T10:00:00.000Z")),
                row("https://example.com/3", "Three", None),
                row("fault", "Four", None),
                row("fault", "Five", None),
            ]
        );
    }

    #[test]
    fn atom_rdf_and_json_name_pages_too() {
        let atom = r#"<feed xmlns="http://www.w3.org/2005/Atom"><link href="https://example.com/"/><entry>
            <link rel="edit" href="/edit/1"/><link href="1"/><link rel="alternate" href="/other"/><id>urn:1</id>
            <title type="html">A</title><updated>2026-11-20T12:00:00+01:00</updated><published>2026-11-01T00:00:00Z</published>
            <source><title>Elsewhere</title><link href="https://other.example/"/></source>
            <content type="xhtml"><div><title>No</title><a href="x">y</a></div></content></entry></feed>"#;
        let wanted = [row("https://example.com/blog/1", "A", Some("2026-11-20T11:00:00.000Z"))];
        assert_eq!(read(atom).unwrap(), wanted);
        let rdf = r#"<rdf:RDF xmlns:rdf="r" xmlns:dc="d"><channel><title>x</title></channel><item rdf:about="x"><title>A</title>
            <link>https://example.com/1</link><dc:date>2026-11-20T12:00:00Z</dc:date></item></rdf:RDF>"#;
        assert_eq!(read(rdf).unwrap(), [row("https://example.com/1", "A", Some("2026-11-20T12:00:00.000Z"))]);
        let json = r#"{"version": "https://jsonfeed.org/version/1.1", "items": [
            {"id": "1", "url": "https://example.com/1", "title": "A", "date_published": "2026-11-20T12:00:00Z"},
            {"id": "https://example.com/2"}, {"id": "3"}, 7]}"#;
        let found = read(json).unwrap();
        assert_eq!(found[0], row("https://example.com/1", "A", Some("2026-11-20T12:00:00.000Z")));
        assert_eq!((found[1].0.as_str(), found.len()), ("https://example.com/2", 4));
    }

    #[test]
    fn what_is_no_feed_is_refused() {
        let entities = r#"<!DOCTYPE rss [<!ENTITY x SYSTEM "file:///etc/passwd">]><rss><channel><item><title>&x;</title></item></channel></rss>"#;
        for odd in [
            "",
            "<html><body>",
            "<!DOCTYPE html><html><body><p>Sign in</p></body></html>",
            "{}",
            "{\"items\":[]}",
            entities,
        ] {
            assert!(matches!(read(odd), Err(Fault::Broken(_))), "{odd}");
        }
        // A client of feeds fell over this one.
        let long = format!(
            "<rss xmlns:i='i'><channel><item><link>https://example.com/1</link><i:duration>{}</i:duration><pubDate>{}</pubDate></item></channel></rss>",
            "9".repeat(40),
            "9".repeat(4_000)
        );
        assert_eq!(read(&long).unwrap().len(), 1);
    }
}
