//! What a library in a process is told to do to it: shift its clock, and refuse what it writes to files (`shim.c`).

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = include_str!("shim.c");

/// Why a disk refuses a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// ENOSPC: it is full.
    Full,
    /// EIO: it is broken.
    Broken,
}

impl Refusal {
    fn number(self) -> i32 {
        match self {
            Self::Full => libc::ENOSPC,
            Self::Broken => libc::EIO,
        }
    }
}

/// The library, built for this run.
#[derive(Debug, Clone)]
pub(crate) struct Library(PathBuf);

impl Library {
    /// Builds it in that folder, or says why this machine cannot.
    pub(crate) fn build(folder: &Path) -> Result<Self, String> {
        if !cfg!(all(target_os = "linux", target_env = "gnu")) {
            return Err("clocks and disks are only meddled with on Linux with glibc".to_owned());
        }
        let (source, library) = (folder.join("shim.c"), folder.join("shim.so"));
        std::fs::write(&source, SOURCE).map_err(|error| error.to_string())?;
        let compiler =
            Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).output();
        let built = compiler.map_err(|error| format!("no C compiler for the library: {error}"))?;
        if !built.status.success() {
            return Err(format!("the library does not compile: {}", String::from_utf8_lossy(&built.stderr)));
        }
        Ok(Self(library))
    }
}

/// The orders for one process, whichever is started with them.
#[derive(Debug)]
pub(crate) struct Orders {
    file: File,
    environment: [(String, String); 2],
}

impl Orders {
    /// None yet, in a file of that name.
    pub(crate) fn new(library: &Library, file: &Path) -> Self {
        std::fs::write(file, [0_u8; 16]).unwrap();
        let environment = [("LD_PRELOAD", &library.0), ("FAULT_ORDERS", &file.to_path_buf())]
            .map(|(name, path)| (name.to_owned(), path.display().to_string()));
        Self { file: File::options().write(true).open(file).unwrap(), environment }
    }

    /// What a process is started with that follows them.
    pub(crate) fn environment(&self) -> impl Iterator<Item = (&str, &str)> {
        self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Has the clock on its wall jump so far from the true time.
    pub(crate) fn shift_clock(&self, millis: i64) {
        self.file.write_all_at(&millis.to_ne_bytes(), 0).unwrap();
    }

    /// Has every write to a file fail from now on, or none.
    pub(crate) fn refuse_writes(&self, refusal: Option<Refusal>) {
        let number = refusal.map_or(0, |refusal| i64::from(refusal.number()));
        self.file.write_all_at(&number.to_ne_bytes(), 8).unwrap();
    }
}
