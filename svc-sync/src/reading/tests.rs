//! Archives that are read in this process.

use std::fs::File;
use std::io::Write as _;

use tokio::net::unix::pipe::Receiver;

use super::child::answer;

/// Answers as a child does, on a thread.
pub(super) fn answering(file: File, place: u64) -> Receiver {
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::thread::spawn(move || {
        // Whoever asked may be gone by now.
        let _is_heard = answer(file, place, &mut writer).and_then(|()| writer.flush());
    });
    Receiver::from_owned_fd(reader.into()).unwrap()
}
