//! Embeds the usage guides (`guides/<name>/SKILL.md` and the files beside it), with the digest of each file.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{Outcome, sorted};

/// The main file of a guide; a folder without one is no guide.
const MAIN_FILE: &str = "SKILL.md";
/// The limits of the skills extension.
const MAX_FILES: usize = 512;
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Writes `guides.rs`.
pub(crate) fn write(target: &Path) -> Outcome<()> {
    println!("cargo:rerun-if-changed=guides");
    let mut code = String::from("static GUIDES: &[Guide] = &[\n");
    for folder in sorted(Path::new("guides"))? {
        if folder.join(MAIN_FILE).is_file() {
            let guide = guide(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            code.push_str(&guide);
        }
    }
    code.push_str("];\n");
    Ok(fs::write(target.join("guides.rs"), code)?)
}

/// A guide as an entry of the generated list.
fn guide(folder: &Path) -> Outcome<String> {
    let name = folder.file_name().and_then(|name| name.to_str()).ok_or("its name is no text")?;
    let main = fs::read_to_string(folder.join(MAIN_FILE))?;
    let (front_matter, body_at) = front_matter(&main)?;
    let field = |field: &str| front_matter.get(field).and_then(Value::as_str).unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if field("name") != name || !name.bytes().all(is_plain) || name.len() > 64 {
        return Err("its name must be the folder's: small letters, digits and hyphens, 64 at most".into());
    }
    if !(1..=1024).contains(&field("description").len()) {
        return Err("its description must have 1 to 1024 bytes".into());
    }
    let mut code = format!(
        "Guide {{ name: {name:?}, description: {:?}, front_matter: {:?}, body_at: {body_at}, files: &[\n",
        field("description"),
        front_matter.to_string(),
    );
    let files = files(folder)?;
    let size = files.iter().map(|file| file.text.len()).sum::<usize>();
    if files.len() > MAX_FILES || size > MAX_BYTES {
        return Err(format!("a skill has {MAX_FILES} files and {MAX_BYTES} bytes at most").into());
    }
    for file in files {
        let path = file.path.strip_prefix(folder)?.to_str().ok_or("a file's name is no text")?;
        let (whole, digest) = (file.path.canonicalize()?, digest(file.text.as_bytes()));
        writeln!(code, "GuideFile {{ path: {path:?}, text: include_str!({whole:?}), digest: {digest:?} }},")?;
    }
    code.push_str("] },\n");
    Ok(code)
}

/// The YAML front matter between two lines of hyphens, and the offset of the text after it.
fn front_matter(main: &str) -> Outcome<(Value, usize)> {
    let wanted = "SKILL.md must begin with `---`, YAML with name and description, and `---`";
    let inside = main.strip_prefix("---\n").ok_or(wanted)?;
    let (yaml, body) = inside.split_once("\n---\n").ok_or(wanted)?;
    let read: Value = serde_norway::from_str(yaml)?;
    let body = body.trim_start_matches('\n');
    if read.is_object() { Ok((read, main.len() - body.len())) } else { Err(wanted.into()) }
}

struct File {
    path: PathBuf,
    text: String,
}

/// The main file, then the others by path.
fn files(folder: &Path) -> Outcome<Vec<File>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in sorted(&folder)? {
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(File { text: fs::read_to_string(&path)?, path });
            }
        }
    }
    let main = folder.join(MAIN_FILE);
    found.sort_by(|one, other| (one.path != main, &one.path).cmp(&(other.path != main, &other.path)));
    Ok(found)
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}
