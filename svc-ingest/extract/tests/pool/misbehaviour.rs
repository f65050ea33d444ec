//! A reader that does what the name of its document says: all that a parser may do to its process.

use std::fs::File;
use std::io::Write as _;
use std::net::TcpListener;

use cairn_extract::{Failure, Format, Raw, Text};

/// Reads a document, or does what its name says.
pub(crate) fn misbehave(raw: &Raw) -> Result<Text, Failure> {
    match raw.name.as_deref() {
        Some("abort") => std::process::abort(),
        Some("exit") => std::process::exit(0),
        Some("panic") => panic!("no parser is perfect"),
        Some("recurse") => Ok(text(recurse(&[1; 256]).to_string())),
        Some("hoard") => hoard(),
        Some("sleep") => loop {
            std::thread::park();
        },
        Some("spin") => loop {
            std::hint::spin_loop();
        },
        Some("garbage") => write_forever(b"no head at all"),
        Some("endless head") => write_forever(&[0xFF; 1024]),
        Some("endless body") => {
            let head =
                br#"{"outcome":{"Ok":{"format":"text","title":null}},"length":99999999999,"worn":false}"#;
            let length = u32::try_from(head.len()).unwrap_or_default().to_le_bytes();
            write_forever(&[length.as_slice(), head].concat())
        }
        Some("pid") => Ok(text(std::process::id().to_string())),
        Some("open") => {
            let (file, socket) =
                (File::open("/proc/self/stat").is_ok(), TcpListener::bind("127.0.0.1:0").is_ok());
            Ok(text(format!("file: {file}, socket: {socket}")))
        }
        Some("environment") => {
            let mut names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
            names.sort_unstable();
            Ok(text(names.join(" ")))
        }
        _ => cairn_extract::read(raw),
    }
}

fn text(content: String) -> Text {
    Text { format: Format::Text, content, title: None }
}

fn recurse(above: &[u64]) -> u64 {
    let mut here = [0; 256];
    here.copy_from_slice(above);
    let first = std::hint::black_box(&mut here);
    if first.iter().sum::<u64>() == 0 { 0 } else { recurse(first) + first.iter().sum::<u64>() }
}

fn hoard() -> ! {
    let mut kept = Vec::new();
    loop {
        kept.push(std::hint::black_box(vec![1_u8; 16 * 1024 * 1024]));
    }
}

fn write_forever(bytes: &[u8]) -> ! {
    let mut output = std::io::stdout().lock();
    loop {
        if output.write_all(bytes).is_err() {
            std::process::exit(1);
        }
    }
}
