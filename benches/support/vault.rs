//! Archives of Obsidian vaults.

use std::fs;
use std::io::{Cursor, Write as _};
use std::path::Path;

use anyhow::{Context as _, ensure};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::corpus::{self, Numbers};
use super::markdown;

/// Links and notes of a real vault; generated vaults have the same ratio.
const LINKS: usize = 42_000;
const NOTES: usize = 6_700;
const NOTES_AN_AREA: usize = 100;
/// The size of the text of a note, before its links.
const TEXT_BYTES: usize = 1_800;
const TOPICS: usize = 40;
/// Notes of the vault with attachments.
const FEW_NOTES: usize = 100;
const ATTACHMENT_BYTES: usize = 4 * 1024 * 1024;

/// An archive with its counts.
#[derive(Debug)]
pub(crate) struct Vault {
    pub(crate) archive: Vec<u8>,
    pub(crate) notes: usize,
    pub(crate) attachments: usize,
    /// The uncompressed size of its notes.
    pub(crate) bytes: usize,
    /// The number of links, all of which resolve; `None` if unknown.
    pub(crate) links: Option<usize>,
}

impl Vault {
    /// Notes of about 2 kB in folders, with front matter, tags, and links of four kinds to any of the others.
    pub(crate) fn generated(notes: usize) -> anyhow::Result<Self> {
        let (notes, links) = generate(notes)?;
        Self::packed(&notes, 0, Some(links))
    }

    /// A hundred such notes, and incompressible attachments of 4 MiB.
    pub(crate) fn with_attachments(count: usize) -> anyhow::Result<Self> {
        let (notes, links) = generate(FEW_NOTES)?;
        Self::packed(&notes, count, Some(links))
    }

    /// The Markdown files of a folder.
    pub(crate) fn of_folder(folder: &Path) -> anyhow::Result<Self> {
        let mut notes = Vec::new();
        for path in markdown::files(folder)? {
            let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let name = path.strip_prefix(folder)?.to_string_lossy().into_owned();
            notes.push((name, String::from_utf8_lossy(&text).into_owned()));
        }
        Self::packed(&notes, 0, None)
    }

    fn packed(notes: &[(String, String)], attachments: usize, links: Option<usize>) -> anyhow::Result<Self> {
        ensure!(!notes.is_empty(), "a vault needs a note");
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        writer.start_file("Vault/.obsidian/app.json", SimpleFileOptions::default())?;
        writer.write_all(b"{}")?;
        for (path, text) in notes {
            writer.start_file(format!("Vault/{path}"), SimpleFileOptions::default())?;
            writer.write_all(text.as_bytes())?;
        }
        let mut numbers = Numbers(attachments as u64);
        for number in 0..attachments {
            let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
            writer.start_file(format!("Vault/files/{number}.bin"), stored)?;
            let noise: Vec<u8> =
                (0..ATTACHMENT_BYTES / 8).flat_map(|_| numbers.below(u64::MAX).to_le_bytes()).collect();
            writer.write_all(&noise)?;
        }
        let archive = writer.finish()?.into_inner();
        let bytes = notes.iter().map(|(_, text)| text.len()).sum();
        Ok(Self { archive, notes: notes.len(), attachments, bytes, links })
    }
}

/// The paths and texts of notes, and the total number of their links.
fn generate(notes: usize) -> anyhow::Result<(Vec<(String, String)>, usize)> {
    let documents = corpus::documents(None, 0..notes)?;
    let mut numbers = Numbers(notes as u64);
    let notes: Vec<(String, String)> = documents
        .iter()
        .enumerate()
        .map(|(number, document)| {
            let text = document.text.get(..TEXT_BYTES).unwrap_or(&document.text);
            (path(number), note(number, text, documents.len(), &mut numbers))
        })
        .collect();
    let links = links_before(notes.len());
    Ok((notes, links))
}

/// A word that only this generated note has.
pub(crate) fn word(number: usize) -> String {
    format!("zqnote{number}x")
}

fn path(number: usize) -> String {
    format!("Area {}/Note {number}.md", number / NOTES_AN_AREA)
}

/// The number of links in all notes before that one.
const fn links_before(number: usize) -> usize {
    number * LINKS / NOTES
}

fn note(number: usize, text: &str, notes: usize, numbers: &mut Numbers) -> String {
    let (area, topic) = (number / NOTES_AN_AREA, number % TOPICS);
    let mut note =
        format!("---\ntags: [note, area-{area}]\n---\n{text}\n\n{} #topic-{topic}\n\n", word(number));
    for place in links_before(number)..links_before(number + 1) {
        let target = numbers.below(notes as u64) as usize;
        note.push_str(&format!("- See {} for more of it.\n", link(place, target)));
    }
    note
}

fn link(place: usize, target: usize) -> String {
    let area = target / NOTES_AN_AREA;
    match place % 4 {
        0 => format!("[[Note {target}]]"),
        1 => format!("[[Area {area}/Note {target}|what was said there]]"),
        2 => format!("[[Note {target}#Where it began]]"),
        _ => format!("[what came of it](../Area%20{area}/Note%20{target}.md)"),
    }
}
