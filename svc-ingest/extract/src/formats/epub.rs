//! EPUB books: the chapters in reading order, each converted separately.

use std::collections::HashMap;

use crate::charset;
use crate::formats::archive::Archive;
use crate::formats::{html, xml};
use crate::markdown::Markdown;
use crate::model::{Failure, FailureKind, Format, Raw, Text};

const WHAT: &str = "EPUB";

pub(crate) fn read(raw: &Raw) -> Result<Text, Failure> {
    let mut archive = Archive::open(&raw.bytes)?;
    let package = package_name(&mut archive)?;
    let text = archive.text(&package)?.ok_or_else(|| Failure::broken(WHAT))?;
    let document = xml::parse(&text, WHAT)?;
    let locked = locked_parts(&mut archive)?;
    let folder = package.rsplit_once('/').map_or("", |(folder, _)| folder);

    let items: HashMap<&str, &str> = xml::all(document.root(), "item")
        .filter(|item| {
            xml::attribute(*item, "properties").is_none_or(|properties| !properties.contains("nav"))
        })
        .filter_map(|item| Some((xml::attribute(item, "id")?, xml::attribute(item, "href")?)))
        .collect();
    let mut out = Markdown::default();
    for reference in xml::all(document.root(), "itemref") {
        let Some(href) = xml::attribute(reference, "idref").and_then(|id| items.get(id)) else { continue };
        let name = part_name(folder, href);
        if locked.contains(&name) {
            return Err(Failure::new(
                FailureKind::Encrypted,
                "The book is encrypted: its chapters open with the reader it was sold for only.",
            ));
        }
        if let Some(bytes) = archive.bytes(&name)? {
            let chapter = charset::decode(&bytes, None, charset::named_in_markup(&bytes));
            out.block(html::part(&chapter).trim());
        }
        if out.is_full() {
            break;
        }
    }
    let title = xml::all(document.root(), "title").next().map(xml::text);
    Ok(Text { format: Format::Markdown, content: out.into_text(), title })
}

/// The package document.
fn package_name(archive: &mut Archive<'_>) -> Result<String, Failure> {
    let container = archive.text("META-INF/container.xml")?.ok_or_else(|| Failure::broken(WHAT))?;
    let document = xml::parse(&container, WHAT)?;
    let root =
        xml::all(document.root(), "rootfile").next().and_then(|root| xml::attribute(root, "full-path"));
    root.map(str::to_owned).ok_or_else(|| Failure::broken(WHAT))
}

/// Encrypted parts; fonts often are, even in books without DRM.
fn locked_parts(archive: &mut Archive<'_>) -> Result<Vec<String>, Failure> {
    let Some(text) = archive.text("META-INF/encryption.xml")? else { return Ok(Vec::new()) };
    let document = xml::parse(&text, WHAT)?;
    let parts = xml::all(document.root(), "CipherReference").filter_map(|part| xml::attribute(part, "URI"));
    Ok(parts.map(|part| part_name("", part)).collect())
}

/// Resolves a percent-encoded URL, relative to a folder, to the name of a part.
fn part_name(folder: &str, href: &str) -> String {
    let base = format!("epub:/{folder}{}", if folder.is_empty() { "" } else { "/" });
    let url = url::Url::parse(&base).and_then(|base| base.join(href));
    let path = url.map(|url| url.path().trim_start_matches('/').to_owned()).unwrap_or_default();
    percent_decoded(&path)
}

fn percent_decoded(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match hex.filter(|_| byte == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) => {
                bytes.push(decoded);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
