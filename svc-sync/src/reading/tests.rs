//! Archives that are read in this process, and children that do not do what they should.

use std::fs::File;
use std::io::Write as _;
use std::time::Duration;

use bytes::Bytes;
use cairn_child::Program;
use cairn_proto::domain::ImportProvider;
use tempfile::TempDir;
use tokio::net::unix::pipe::Receiver;

use super::child::answer;
use super::{Failure, Query, Reader, Scratch, Source};

/// Answers as a child does, on a thread.
pub(super) fn answering(file: File, place: u64) -> Receiver {
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::thread::spawn(move || {
        // Whoever asked may be gone by now.
        let _is_heard = answer(file, place, &mut writer).and_then(|()| writer.flush());
    });
    Receiver::from_owned_fd(reader.into()).unwrap()
}

/// A child that does what a shell is told.
pub(crate) fn scripted(script: &str, silence: Duration) -> Reader {
    let program = Program { path: "/bin/sh".into(), arguments: vec!["-c".into(), script.into()] };
    Reader::of_program(program, silence)
}

async fn failure(reader: &Reader) -> Failure {
    let folder = TempDir::new().unwrap();
    let mut scratch = Scratch::new(folder.path().to_owned()).await.unwrap();
    scratch.push(Bytes::from_static(b"PK")).await.unwrap();
    scratch.close_volume();
    let source = Source {
        provider: ImportProvider::ObsidianZip,
        file_name: "Vault.zip".into(),
        folders: 9,
        asset_bytes: 9,
    };
    let mut answers = match scratch.ask(reader, &source, Query::Plan).await {
        Ok(answers) => answers,
        Err(failure) => return failure,
    };
    loop {
        match answers.next().await {
            Ok(told) => assert!(told.is_some(), "the child has told all"),
            Err(failure) => return failure,
        }
    }
}

#[tokio::test]
async fn a_child_that_hangs_ends_or_babbles_is_given_up() {
    let long = Duration::from_secs(600);
    let head = r#"{"Items":{"length":5}}"#;
    let told = format!("printf '\\{:03o}\\000\\000\\000%sabc' '{head}'", head.len());
    for (script, silence) in [
        ("exec sleep 600", Duration::from_millis(50)),
        ("kill -9 $$", long),
        ("exit 0", long),
        // A head that is too long, one that is no JSON, and one that is cut.
        (r"printf '\377\377\377\377'; exec sleep 600", long),
        (r"printf '\003\000\000\000abc'; exec sleep 600", long),
        (r"printf '\100\000\000\000{'", long),
        // What begins well, and does not go on.
        (&told, long),
    ] {
        assert_eq!(failure(&scripted(script, silence)).await, Failure::Lost, "{script}");
    }
    let program = Program { path: "/nowhere/cairn".into(), arguments: Vec::new() };
    assert_eq!(failure(&Reader::of_program(program, long)).await, Failure::Unavailable);
}
