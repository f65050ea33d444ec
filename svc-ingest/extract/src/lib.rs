//! Text out of files.
//!
//! Whatever is not text already is read in a child process: parsers of HTML, PDF and Office files overflow the stack, loop
//! and ask for all memory when a file is made for that, and nothing inside a process contains those. An [`Extractor`] keeps
//! a few children of the same binary, each with limits of memory, CPU time, open files and wall time; what happens to one
//! is the failure of the document that it was reading, and of nothing else.
//!
//! The text is what is retained and cited: Markdown of HTML and files, other text as it is.

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
pub use self::model::{Failure, FailureKind, Format, MOST_FILE_BYTES, MOST_TEXT_BYTES, Raw, Text};
pub use self::pool::{Extractor, Settings};
pub use self::read::read;
