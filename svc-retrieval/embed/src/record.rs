//! The record of a model's files: the source and the SHA-256 of each.

use std::io::{self, Read as _, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::transformer::{OPTIONAL_FILES, REQUIRED_FILES};

pub(super) const RECORD_FILE: &str = "download.json";
const BUFFER_BYTES: usize = 1 << 20;

/// The record of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileRecord {
    /// Its source: a URL, or a local path.
    pub(super) url: String,
    pub(super) sha256: String,
    pub(super) bytes: u64,
}

impl FileRecord {
    /// The name of the file within a model.
    fn file(&self) -> Option<&'static str> {
        // `1_Pooling/config.json` ends like `config.json`, so the longer names come first.
        let mut files = OPTIONAL_FILES.into_iter().chain(REQUIRED_FILES);
        files.find(|file| self.url.ends_with(&format!("/{file}")))
    }
}

/// Writes a file and computes its record.
pub(super) struct FileWriter {
    file: fs_err::File,
    hasher: Sha256,
    bytes: u64,
}

impl FileWriter {
    /// Creates the file and its parent folders.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent)?;
        }
        Ok(Self { file: fs_err::File::create(path)?, hasher: Sha256::new(), bytes: 0 })
    }

    /// Appends a part; returns the bytes so far.
    pub(super) fn write(&mut self, part: &[u8]) -> io::Result<u64> {
        self.hasher.update(part);
        self.bytes += u64::try_from(part.len()).unwrap_or(0);
        self.file.write_all(part)?;
        Ok(self.bytes)
    }

    /// Syncs the file to disk.
    pub(super) fn finish(self, url: String) -> io::Result<FileRecord> {
        self.file.sync_all()?;
        Ok(FileRecord { url, sha256: hex::encode(self.hasher.finalize()), bytes: self.bytes })
    }
}

/// Writes the record of a folder.
pub(super) fn write(folder: &Path, records: &[FileRecord]) -> io::Result<()> {
    let mut file = fs_err::File::create(folder.join(RECORD_FILE))?;
    file.write_all(&serde_json::to_vec_pretty(records)?)?;
    file.sync_all()
}

/// The files of a folder that differ from its record; none where there is no record, as in a folder that was copied by hand.
pub(super) fn changed(folder: &Path) -> io::Result<Vec<&'static str>> {
    let written = match fs_err::read(folder.join(RECORD_FILE)) {
        Ok(written) => written,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let Ok(records) = serde_json::from_slice::<Vec<FileRecord>>(&written) else {
        return Ok(vec![RECORD_FILE]);
    };
    let mut changed = Vec::new();
    for (record, file) in records.iter().filter_map(|record| Some((record, record.file()?))) {
        match sha256_of(&folder.join(file)) {
            Ok(sha256) if sha256 == record.sha256 => {}
            Ok(_) => changed.push(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => changed.push(file),
            Err(error) => return Err(error),
        }
    }
    Ok(changed)
}

fn sha256_of(path: &Path) -> io::Result<String> {
    let mut file = fs_err::File::open(path)?;
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; BUFFER_BYTES]);
    loop {
        let read = file.read(&mut buffer)?;
        let Some(part) = buffer.get(..read).filter(|part| !part.is_empty()) else { break };
        hasher.update(part);
    }
    Ok(hex::encode(hasher.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(folder: &Path, url: &str, file: &str, content: &[u8]) -> FileRecord {
        let mut writer = FileWriter::create(&folder.join(file)).unwrap();
        writer.write(content).unwrap();
        writer.finish(url.to_owned()).unwrap()
    }

    #[test]
    fn a_file_that_is_not_what_came_is_told() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(changed(folder.path()).unwrap(), [""; 0], "there is no record");
        let hub = "https://hub.example/owner/tiny/resolve/main";
        let files =
            ["config.json", "1_Pooling/config.json", "sentence_bert_config.json", "model.safetensors"];
        let records =
            files.map(|file| recorded(folder.path(), &format!("{hub}/{file}"), file, file.as_bytes()));
        write(folder.path(), &records).unwrap();
        assert_eq!(changed(folder.path()).unwrap(), [""; 0]);
        fs_err::write(folder.path().join("1_Pooling/config.json"), "{}").unwrap();
        fs_err::remove_file(folder.path().join("model.safetensors")).unwrap();
        assert_eq!(changed(folder.path()).unwrap(), ["1_Pooling/config.json", "model.safetensors"]);
        fs_err::write(folder.path().join(RECORD_FILE), "[").unwrap();
        assert_eq!(changed(folder.path()).unwrap(), [RECORD_FILE]);
    }
}
