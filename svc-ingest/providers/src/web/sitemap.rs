//! Sitemaps (sitemaps.org): single files or an index, as XML or plain text, optionally gzipped.

use std::io::Read as _;
use std::sync::Arc;

use bytes::Bytes;
use cairn_chassis::clock::Timestamp;
use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use url::Url;

use super::address;
use super::listing::{Listed, Listing};
use super::site::Sites;
use crate::rest::moment;
use crate::xml::{self, Node};
use crate::{Call, Fault, Page, Partial, Position, Then};

const SHAPE: u16 = 1;
/// The limits of the protocol for one file.
const MAX_BYTES: usize = 50 * 1024 * 1024;
pub(super) const MAX_URLS: usize = 50_000;
/// Files of an index.
const MAX_FILES: usize = 1_000;
/// Documents per page of the listing.
const CHUNK: usize = 1_000;

/// A sitemap.
#[derive(Debug)]
pub(super) struct Sitemap {
    pub(super) url: Url,
    pub(super) most_pages: u32,
    files: Mutex<Option<Files>>,
    /// The last file and its number, as a cache.
    file: Mutex<Option<(u32, Arc<Vec<Listed>>)>>,
}

/// The files of a sitemap, in the order of its index.
#[derive(Debug, Clone)]
struct Files {
    urls: Arc<Vec<Url>>,
    /// A fingerprint of the list of files.
    key: String,
    is_cut: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct At {
    key: String,
    file: u32,
    offset: u32,
    /// Reported pages.
    told: u32,
    /// Files that could not be read.
    unread: u32,
}

/// The parsed content of a file.
#[derive(Debug)]
enum Content {
    Pages(Vec<Listed>),
    Files(Vec<Listed>),
}

impl Sitemap {
    pub(super) fn new(url: Url, most_pages: u32) -> Self {
        Self { url, most_pages, files: Mutex::new(None), file: Mutex::new(None) }
    }

    /// The next pages; an unreadable file of an index makes the listing partial.
    pub(super) async fn list(
        &self,
        sites: &Sites,
        call: &Call,
        listing: Listing,
        from: Option<&Position>,
    ) -> Result<Page, Fault> {
        let mut at: At = from.map(|from| from.read(SHAPE)).transpose()?.unwrap_or_default();
        let files = self.files(sites, call).await?;
        if from.is_some() && at.key != files.key {
            return Err(Fault::PositionLost);
        }
        at.key.clone_from(&files.key);
        let count = u32::try_from(files.urls.len()).unwrap_or(u32::MAX);
        if at.file >= count || at.told >= self.most_pages {
            return self.end(&files, &at, at.file < count);
        }
        let pages = match self.pages(sites, call, &files, at.file).await {
            Ok(pages) => pages,
            Err(fault) if count == 1 || matches!(fault, Fault::Waiting { .. } | Fault::Budget) => {
                return Err(fault);
            }
            Err(_) => {
                at.unread += 1;
                Arc::default()
            }
        };
        let offset = usize::try_from(at.offset).unwrap_or(usize::MAX);
        let room = usize::try_from(self.most_pages.saturating_sub(at.told)).unwrap_or(usize::MAX);
        let chunk: Vec<&Listed> = pages.iter().skip(offset).take(CHUNK.min(room)).collect();
        let taken = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
        let is_read = offset.saturating_add(chunk.len()) >= pages.len();
        (at.file, at.offset) = if is_read { (at.file + 1, 0) } else { (at.file, at.offset + taken) };
        at.told += taken;
        let then = Then::More(Position::new(SHAPE, &at)?);
        listing.page(chunk.into_iter(), then)
    }

    fn end(&self, files: &Files, at: &At, has_more: bool) -> Result<Page, Fault> {
        let mut partial = Vec::new();
        if at.unread > 0 {
            let reason = format!("files of the sitemap that could not be read: {}", at.unread);
            partial.push(Partial::everywhere(reason));
        }
        if has_more || files.is_cut {
            partial.push(Partial::everywhere("the sitemap has more pages than are read of it: see maxPages"));
        }
        let next = Position::new(SHAPE, &At::default())?;
        Page::new(Vec::new(), Vec::new(), Then::End { next, partial })
    }

    /// The pages of the first file, for searches.
    pub(super) async fn first(&self, sites: &Sites, call: &Call) -> Result<Arc<Vec<Listed>>, Fault> {
        let files = self.files(sites, call).await?;
        self.pages(sites, call, &files, 0).await
    }

    async fn files(&self, sites: &Sites, call: &Call) -> Result<Files, Fault> {
        let mut known = self.files.lock().await;
        if let Some(files) = known.as_ref() {
            return Ok(files.clone());
        }
        let (urls, is_cut) = match self.read(sites, call, &self.url).await? {
            Content::Pages(pages) => {
                *self.file.lock().await = Some((0, Arc::new(pages)));
                (vec![self.url.clone()], false)
            }
            Content::Files(files) => {
                let of_site = files.into_iter().map(|file| file.url);
                let mut urls: Vec<Url> =
                    of_site.filter(|url| address::is_same_site(&self.url, url)).collect();
                let is_cut = urls.len() > MAX_FILES;
                urls.truncate(MAX_FILES);
                (urls, is_cut)
            }
        };
        let mut hasher = blake3::Hasher::new();
        urls.iter().for_each(|url| {
            hasher.update(url.as_str().as_bytes()).update(b"\n");
        });
        let files = Files { urls: Arc::new(urls), key: hasher.finalize().to_hex().to_string(), is_cut };
        *known = Some(files.clone());
        Ok(files)
    }

    async fn pages(
        &self,
        sites: &Sites,
        call: &Call,
        files: &Files,
        file: u32,
    ) -> Result<Arc<Vec<Listed>>, Fault> {
        let mut last = self.file.lock().await;
        if let Some((_, pages)) = last.as_ref().filter(|(number, _)| *number == file) {
            return Ok(Arc::clone(pages));
        }
        let url =
            usize::try_from(file).ok().and_then(|file| files.urls.get(file)).ok_or(Fault::PositionLost)?;
        let pages = match self.read(sites, call, url).await? {
            Content::Pages(pages) => Arc::new(pages),
            Content::Files(_) => return Err(Fault::broken("an index of sitemaps leads to another index")),
        };
        *last = Some((file, Arc::clone(&pages)));
        Ok(pages)
    }

    async fn read(&self, sites: &Sites, call: &Call, url: &Url) -> Result<Content, Fault> {
        let (answer, from) = sites.get(call, url, MAX_BYTES).await?;
        let source = self.url.clone();
        // Decompressing and parsing 50 MB would block the async runtime.
        let read = tokio::task::spawn_blocking(move || content(answer.body(), &from, &source));
        read.await.map_err(|_| Fault::Unavailable)?
    }
}

/// Parses a file; keeps only pages of the source's own site, the latest first.
fn content(body: &Bytes, from: &Url, source: &Url) -> Result<Content, Fault> {
    let unpacked = unpacked(body)?;
    let mut content = match unpacked.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'h' | b'H') => Content::Pages(lines(&unpacked, from)),
        _ => elements(&unpacked, from)?,
    };
    if let Content::Pages(pages) = &mut content {
        pages.retain(|page| address::is_same_site(source, &page.url));
        pages.sort_by_key(|page| std::cmp::Reverse(page.updated_at));
    }
    Ok(content)
}

/// Decompresses gzip, which is detected by its magic number.
fn unpacked(body: &Bytes) -> Result<Bytes, Fault> {
    if !body.starts_with(&[0x1f, 0x8b]) {
        return Ok(body.clone());
    }
    let mut unpacked = Vec::new();
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
    let read = MultiGzDecoder::new(body.as_ref()).take(most.saturating_add(1)).read_to_end(&mut unpacked);
    read.map_err(|_| Fault::broken("the sitemap cannot be unpacked"))?;
    if unpacked.len() > MAX_BYTES {
        return Err(Fault::TooLarge(most));
    }
    Ok(unpacked.into())
}

fn lines(text: &[u8], from: &Url) -> Vec<Listed> {
    let text = String::from_utf8_lossy(text);
    let addresses = text.lines().filter(|line| Url::parse(line.trim()).is_ok());
    addresses.filter_map(|line| Listed::new(from, line)).take(MAX_URLS + 1).collect()
}

fn elements(document: &[u8], from: &Url) -> Result<Content, Fault> {
    let (mut pages, mut depth, mut is_index) = (Vec::new(), 0_usize, None);
    let (mut url, mut modified) = (None, None::<Timestamp>);
    xml::read(document, |node| match node {
        Node::Open(name) => {
            depth += 1;
            match (depth, name) {
                (1, "urlset") => is_index = Some(false),
                (1, "sitemapindex") => is_index = Some(true),
                (2, _) => (url, modified) = (None, None),
                _ => {}
            }
        }
        Node::Attribute(..) => {}
        Node::Close(name, text) => {
            match (depth, name) {
                // Extensions for images and languages are nested deeper.
                (3, "loc") => url = Listed::new(from, text),
                (3, "lastmod") => modified = moment(text),
                (2, "url" | "sitemap") if pages.len() <= MAX_URLS => {
                    pages.extend(url.take().map(|listed| Listed { updated_at: modified, ..listed }));
                }
                _ => {}
            }
            depth = depth.saturating_sub(1);
        }
    })?;
    match is_index {
        Some(true) => Ok(Content::Files(pages)),
        Some(false) => Ok(Content::Pages(pages)),
        None => Err(Fault::broken("there is something else than a sitemap at the address")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn source() -> Url {
        Url::parse("https://example.com/sitemap.xml").unwrap()
    }

    fn read(document: &[u8]) -> Result<Vec<String>, Fault> {
        match content(&Bytes::copy_from_slice(document), &source(), &source())? {
            Content::Pages(pages) => Ok(pages.into_iter().map(|page| page.url.into()).collect()),
            Content::Files(files) => {
                Ok(files.into_iter().map(|file| format!("index {}", file.url)).collect())
            }
        }
    }

    #[test]
    fn pages_of_the_site_are_told_the_latest_first() {
        let document =
            "<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:i='x'>
            <url><loc>https://example.com/a</loc><lastmod>2026-11-20</lastmod></url>
            <url><loc> https://example.com/b?x=1&amp;y=2 </loc><lastmod>2026-11-20T12:00:00Z</lastmod>
                <i:image><i:loc>https://example.com/image.png</i:loc></i:image></url>
            <url><loc>https://example.com/c</loc><lastmod>2026-11-21T12:00:00+01:00</lastmod></url>
            <url><loc>https://other.example/d</loc></url><url><loc></loc></url><url/>
            <url><loc>javascript:alert(1)</loc></url></urlset>";
        let found = read(document.as_bytes()).unwrap();
        let wanted = ["https://example.com/b?x=1&y=2", "https://example.com/a", "https://example.com/c"];
        // A date without time is not a timestamp, and sorts last.
        assert_eq!(found, [wanted[2], wanted[0], wanted[1]]);
    }

    #[test]
    fn an_index_lines_and_packed_files_are_read() {
        let index = "<sitemapindex><sitemap><loc>https://example.com/1.xml.gz</loc></sitemap></sitemapindex>";
        assert_eq!(read(index.as_bytes()).unwrap(), ["index https://example.com/1.xml.gz"]);
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(b"<urlset><url><loc>https://example.com/a</loc></url></urlset>").unwrap();
        assert_eq!(read(&packed.finish().unwrap()).unwrap(), ["https://example.com/a"]);
        assert_eq!(read(b"https://example.com/a\r\n\r\nhttps://example.com/b\nhelp\n").unwrap().len(), 2);
    }

    #[test]
    fn what_is_no_sitemap_is_refused() {
        let bomb = "<!DOCTYPE urlset [<!ENTITY a \"aaaa\">]><urlset><url><loc>https://example.com/&a;</loc></url></urlset>";
        for odd in ["<html><body><p>Not found", "", "{}", "<rss></rss>", "<urlset><url>", bomb] {
            assert!(matches!(read(odd.as_bytes()), Err(Fault::Broken(_))), "{odd}");
        }
        assert!(read(&[0x1f, 0x8b, 1, 2, 3]).is_err());
        let mut bomb = GzEncoder::new(Vec::new(), Compression::fast());
        bomb.write_all(&vec![b' '; MAX_BYTES + 1]).unwrap();
        assert_eq!(read(&bomb.finish().unwrap()), Err(Fault::TooLarge(MAX_BYTES as u64)));
    }
}
