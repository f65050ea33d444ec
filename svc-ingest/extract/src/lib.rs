//! Extracts text from files.
//!
//! Everything but plain text is parsed in a child process: a malicious HTML, PDF or Office file can make its parser overflow the stack,
//! loop, or allocate all memory, and nothing inside a process contains that. An [`Extractor`] is a pool of children of the same binary,
//! each with limits of memory, CPU time, open files and wall time. A crash fails only the document that the child was reading.
//!
//! The text is what is stored and cited: HTML and files become Markdown, and plain text is unchanged.

mod charset;
mod child;
mod clean;
mod formats;
mod frame;
mod kind;
mod limits;
mod markdown;
mod model;
mod pool;
mod process;
mod prose;
mod read;

pub use self::child::{CHILD_COMMAND, child_main, serve};
pub use self::clean::{seen as visible, title as visible_title};
pub use self::kind::Kind;
pub use self::model::{Failure, FailureKind, Format, MAX_FILE_BYTES, MAX_TEXT_BYTES, Raw, Text};
pub use self::pool::{Extractor, Settings};
pub use self::read::read;
