//! The style sheet, modules and icon of the console's pages: under content-hashed names, so that browsers can cache
//! them for ever, and precompressed.
//!
//! The files of `style/` are bundled as `app.css`, those of `modules/` as `app.js`, each in a block of its own: a
//! page loads one of each. Every other file in the folder is an asset by itself.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

use crate::{Outcome, sorted};

const FOLDER: &str = "src/pages/assets";
const HASH_DIGITS: usize = 12;
const BROTLI_QUALITY: u32 = 11;
const BROTLI_WINDOW: u32 = 22;
const BUFFER_BYTES: usize = 4096;

/// Writes `assets.rs`, and the files it includes.
pub(crate) fn write(target: &Path) -> Outcome<()> {
    println!("cargo:rerun-if-changed={FOLDER}");
    let folder = Path::new(FOLDER);
    let mut assets = vec![
        ("app.css".to_owned(), style(&folder.join("style"))?),
        ("app.js".to_owned(), modules(&folder.join("modules"))?),
    ];
    for file in sorted(folder)?.into_iter().filter(|path| path.is_file()) {
        let name = file.file_name().and_then(|name| name.to_str()).ok_or("its name is no text")?.to_owned();
        assets.push((name, fs::read(&file)?));
    }
    let (mut names, mut all) = (String::new(), String::from("static ASSETS: &[Asset] = &[\n"));
    for (name, bytes) in assets {
        let (stem, ending) = name.split_once('.').ok_or("its name has no ending")?;
        let hash: String = hex::encode(Sha256::digest(&bytes)).chars().take(HASH_DIGITS).collect();
        let address = format!("/console/{stem}-{hash}.{ending}");
        let constant = name.replace(['.', '-'], "_").to_uppercase();
        writeln!(names, "pub(crate) const {constant}: &str = {address:?};")?;
        let [plain, gzip, brotli] = [("", bytes.clone()), (".gz", gzip(&bytes)?), (".br", brotli(&bytes)?)]
            .map(|(ending, bytes)| (target.join(format!("{name}{ending}")), bytes));
        for (path, bytes) in [&plain, &gzip, &brotli] {
            fs::write(path, bytes)?;
        }
        let kind = kind(ending)?;
        writeln!(
            all,
            "Asset {{ address: {address:?}, kind: {kind:?}, plain: include_bytes!({:?}), gzip: include_bytes!({:?}), \
             brotli: include_bytes!({:?}) }},",
            plain.0, gzip.0, brotli.0,
        )?;
    }
    all.push_str("];\n");
    Ok(fs::write(target.join("assets.rs"), names + &all)?)
}

fn style(folder: &Path) -> Outcome<Vec<u8>> {
    let mut style = String::new();
    for file in sorted(folder)? {
        style.push_str(&fs::read_to_string(file)?);
    }
    Ok(style.into_bytes())
}

/// Each module is wrapped in a block that isolates its declarations. Modules import nothing: they communicate by
/// events of the document.
fn modules(folder: &Path) -> Outcome<Vec<u8>> {
    let mut script = String::new();
    for file in sorted(folder)? {
        writeln!(script, "{{\n{}}}", fs::read_to_string(file)?)?;
    }
    Ok(script.into_bytes())
}

fn kind(ending: &str) -> Outcome<&'static str> {
    match ending {
        "css" => Ok("text/css; charset=utf-8"),
        "js" => Ok("text/javascript; charset=utf-8"),
        "svg" => Ok("image/svg+xml"),
        "json" => Ok("application/speculationrules+json"),
        other => Err(format!("an asset cannot be a .{other}").into()),
    }
}

fn gzip(bytes: &[u8]) -> Outcome<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

fn brotli(bytes: &[u8]) -> Outcome<Vec<u8>> {
    let mut compressed = Vec::new();
    let mut encoder =
        brotli::CompressorWriter::new(&mut compressed, BUFFER_BYTES, BROTLI_QUALITY, BROTLI_WINDOW);
    encoder.write_all(bytes)?;
    encoder.flush()?;
    drop(encoder);
    Ok(compressed)
}
