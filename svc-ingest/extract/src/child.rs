//! The child's side: reads documents from standard input, one after another, and writes their text to standard output.

use std::io::{self, Read, Write};
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use crate::frame::{Reply, Request};
use crate::limits;
use crate::model::{Failure, FailureKind, MAX_FILE_BYTES, Raw, Text};
use crate::read::read;

/// Stack of the reading thread: parsers recurse into nested input.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// The hidden subcommand that starts the binary as a child.
pub const CHILD_COMMAND: &str = "extract-child";

/// Runs the hidden subcommand: reads documents until standard input is closed. Exits at once when its parent does, also while it reads.
pub fn child_main() -> ExitCode {
    serve(read)
}

/// [`child_main`] with another reader, for tests of misbehaving ones.
pub fn serve(reader: fn(&Raw) -> Result<Text, Failure>) -> ExitCode {
    // Panic messages may contain parts of documents.
    panic::set_hook(Box::new(|_| {}));
    if cairn_child::confine(limits::MAX_MEMORY_BYTES).is_err() {
        return ExitCode::FAILURE;
    }
    let (documents, received) = mpsc::channel();
    let worker = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || answer_all(&received, reader));
    if worker.is_err() {
        return ExitCode::FAILURE;
    }
    let mut input = io::stdin().lock();
    // The input ends when the parent exits or closes it. Returning from main kills the reading thread.
    while let Ok(raw) = receive(&mut input) {
        if documents.send(raw).is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn receive(input: &mut impl Read) -> io::Result<Raw> {
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let length = cairn_child::head_length(length).ok_or(io::ErrorKind::InvalidData)?;
    let mut head = vec![0; length];
    input.read_exact(&mut head)?;
    let request: Request = serde_json::from_slice(&head)?;
    if request.length > MAX_FILE_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; request.length];
    input.read_exact(&mut bytes)?;
    Ok(request.with(bytes))
}

fn answer_all(documents: &Receiver<Raw>, reader: fn(&Raw) -> Result<Text, Failure>) {
    while let Ok(raw) = documents.recv() {
        if cairn_child::allow_cpu(limits::MAX_CPU).is_err() || answer(&raw, reader).is_err() {
            std::process::exit(1);
        }
    }
}

fn answer(raw: &Raw, reader: fn(&Raw) -> Result<Text, Failure>) -> io::Result<()> {
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| reader(raw)));
    let worn = outcome.is_err();
    let outcome = outcome.unwrap_or_else(|_| Err(gave_up()));
    let (reply, body) = Reply::of(outcome, worn);
    let mut output = io::stdout().lock();
    output.write_all(&cairn_child::encode(&reply)?)?;
    output.write_all(body.as_bytes())?;
    output.flush()
}

/// The failure when a reader panicked or a child crashed.
pub(crate) fn gave_up() -> Failure {
    Failure::new(
        FailureKind::Exhausted,
        "The file could not be read: it is damaged, or needs more memory than one document may have.",
    )
}
