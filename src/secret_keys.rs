//! The keyring of stored secrets: from the environment, or from `<data>/secret.key`.

use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::sealing::Keyring;
use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;

use crate::cli::SecretKeyOptions;

/// The file's name in the data folder.
pub(crate) const FILE_NAME: &str = "secret.key";
const OWNER_ONLY: u32 = 0o600;
const OTHERS: u32 = 0o077;

/// The keyring in the options.
pub(crate) fn given(options: &SecretKeyOptions) -> anyhow::Result<Option<Keyring>> {
    let text = options.secret_key.as_deref().filter(|text| !text.trim().is_empty());
    text.map(Keyring::parse).transpose().context("CAIRN_SECRET_KEY cannot be used")
}

/// The keyring in the options, else that of the file in the folder, if it exists.
pub(crate) fn find(options: &SecretKeyOptions, data: &Path) -> anyhow::Result<Option<Keyring>> {
    match given(options)? {
        Some(ring) => Ok(Some(ring)),
        None => read(data),
    }
}

/// Like [`find`], but creates the file if there is none.
pub(crate) fn establish(options: &SecretKeyOptions, data: &Path) -> anyhow::Result<Keyring> {
    if let Some(ring) = find(options, data)? {
        return Ok(ring);
    }
    let ring = Keyring::generate(&OsEntropy);
    write(data, &ring)?;
    Ok(ring)
}

fn read(data: &Path) -> anyhow::Result<Option<Keyring>> {
    let path = data.join(FILE_NAME);
    let text = match fs::read_to_string(&path) {
        Ok(text) => zeroize::Zeroizing::new(text),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if fs::metadata(&path)?.permissions().mode() & OTHERS != 0 {
        tracing::warn!(path = %path.display(), "other users of this machine may read the secret key: chmod 600");
    }
    let ring = Keyring::parse(&text);
    ring.map(Some).with_context(|| format!("{} cannot be used; restore it from a backup", path.display()))
}

/// Replaces the file atomically.
pub(crate) fn write(data: &Path, ring: &Keyring) -> anyhow::Result<()> {
    let path = data.join(FILE_NAME);
    write_file(&path, ring).with_context(|| format!("{} cannot be written", path.display()))
}

fn write_file(path: &Path, ring: &Keyring) -> io::Result<()> {
    let unfinished = path.with_extension("key.new");
    let mut file =
        fs::OpenOptions::new().create(true).truncate(true).write(true).mode(OWNER_ONLY).open(&unfinished)?;
    file.write_all(ring.to_text().as_bytes())?;
    file.sync_all()?;
    fs::rename(unfinished, path)?;
    // The file's directory entry must be durable before anything is sealed with the key.
    path.parent().map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(secret_key: Option<&str>) -> SecretKeyOptions {
        SecretKeyOptions { secret_key: secret_key.map(ToOwned::to_owned) }
    }

    #[test]
    fn the_file_is_made_once_and_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        assert!(find(&options(None), folder.path()).unwrap().is_none());
        let made = establish(&options(None), folder.path()).unwrap();
        let mode = fs::metadata(folder.path().join(FILE_NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, OWNER_ONLY);
        assert_eq!(establish(&options(Some(" ")), folder.path()).unwrap().ids(), made.ids());
    }

    #[test]
    fn what_is_given_comes_first_and_a_damaged_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE_NAME), "secret").unwrap();
        let refusal = format!("{:#}", establish(&options(None), folder.path()).unwrap_err());
        assert!(refusal.contains(FILE_NAME) && refusal.contains("backup"), "{refusal}");
        let key = "ab".repeat(32);
        assert!(establish(&options(Some(&key)), folder.path()).is_ok());
        let refusal = format!("{:#}", given(&options(Some("s3cret"))).unwrap_err());
        assert!(refusal.contains("CAIRN_SECRET_KEY") && !refusal.contains("s3cret"), "{refusal}");
    }
}
