//! Controls the fault injection library in a process: clock skew, and failing writes to files (`shim.c`).

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = include_str!("shim.c");

/// The error of a failing write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// ENOSPC: the disk is full.
    Full,
    /// EIO: the disk is broken.
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

/// The control file of one process.
#[derive(Debug)]
pub(crate) struct Orders {
    file: File,
    environment: [(String, String); 2],
}

impl Orders {
    /// No faults yet, in a file of that name.
    pub(crate) fn new(library: &Library, file: &Path) -> Self {
        std::fs::write(file, [0_u8; 16]).unwrap();
        let environment = [("LD_PRELOAD", &library.0), ("FAULT_ORDERS", &file.to_path_buf())]
            .map(|(name, path)| (name.to_owned(), path.display().to_string()));
        Self { file: File::options().write(true).open(file).unwrap(), environment }
    }

    /// The environment that loads the library into a process.
    pub(crate) fn environment(&self) -> impl Iterator<Item = (&str, &str)> {
        self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Shifts the wall clock relative to the true time.
    pub(crate) fn shift_clock(&self, millis: i64) {
        self.file.write_all_at(&millis.to_ne_bytes(), 0).unwrap();
    }

    /// Makes every write to a file fail from now on, or succeed again.
    pub(crate) fn refuse_writes(&self, refusal: Option<Refusal>) {
        let number = refusal.map_or(0, |refusal| i64::from(refusal.number()));
        self.file.write_all_at(&number.to_ne_bytes(), 8).unwrap();
    }
}
