//! SQLite as seen after a crash, on a disk that keeps only what was synced, or more.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use cairn_chassis::sql::{Config, Db, Migration};
use cairn_chassis::testing::simulation::World;
use tempfile::TempDir;

/// A folder in memory, if available: the simulation decides what the disk loses, and a real one is slow.
const IN_MEMORY: &str = "/dev/shm";
/// The header of a write-ahead log. It differs after a reset of the log.
const HEADER_BYTES: usize = 32;

/// The database of a succession of processes.
#[derive(Debug)]
pub(crate) struct Storage {
    folder: TempDir,
    /// The number of crashes. Each process has its own files.
    lost: u32,
    /// The state of the log at the last acknowledgement.
    kept: Log,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Log {
    header: Vec<u8>,
    length: u64,
}

impl Storage {
    pub(crate) fn new() -> Self {
        let in_memory = Path::new(IN_MEMORY).is_dir();
        let folder = if in_memory { TempDir::new_in(IN_MEMORY) } else { TempDir::new() };
        Self { folder: folder.unwrap(), lost: 0, kept: Log { header: Vec::new(), length: 0 } }
    }

    /// Opens the database as a service would.
    pub(crate) async fn open(&mut self, migrations: &[Migration]) -> Db {
        let path = self.database();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let config = Config::sqlite(path).with_connections(2);
        let db = Db::open(&config, "simulation", migrations).await.unwrap();
        self.keep();
        db
    }

    /// An acknowledgement: everything written by now must persist.
    pub(crate) fn keep(&mut self) {
        self.kept = self.log();
    }

    /// Crashes the process at this moment, and discards a random part of what it wrote since [`Self::keep`]. Nothing
    /// may be written concurrently; transactions may be open. The next [`Self::open`] finds the rest.
    pub(crate) fn lose_power(&mut self, world: &mut World) {
        let (before, log) = (self.database(), self.log());
        self.lost += 1;
        let after = self.database();
        fs::create_dir_all(after.parent().unwrap()).unwrap();
        fs::copy(&before, &after).unwrap();
        let mut bytes = fs::read(log_of(&before)).unwrap_or_default();
        // The contents of a log that was reset were all persisted, and so were the pages checkpointed from it.
        if log.header == self.kept.header && log.length > self.kept.length {
            let left = world.between(self.kept.length, log.length);
            world.note(format_args!("power is lost: {left} of {} bytes are left", log.length));
            bytes.truncate(usize::try_from(left).unwrap());
        } else {
            world.note("power is lost, and nothing with it");
        }
        fs::write(log_of(&after), bytes).unwrap();
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join(self.lost.to_string()).join("simulation.db")
    }

    fn log(&self) -> Log {
        let path = log_of(&self.database());
        let length = fs::metadata(&path).map_or(0, |found| found.len());
        let mut header = vec![0; HEADER_BYTES];
        let is_whole = File::open(&path).and_then(|mut file| file.read_exact(&mut header)).is_ok();
        if !is_whole {
            header.clear();
        }
        Log { header, length }
    }
}

fn log_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}
