//! The profiles file: replaced atomically, modified under a lock, and readable by its owner only.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::model::Profiles;

const FILE: &str = "profiles.json";
/// The lock file, which is never removed: a lock on a removed file excludes nobody.
const LOCK: &str = "profiles.lock";

/// The location of the file.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    folder: PathBuf,
}

impl Store {
    /// In the configuration folder (XDG Base Directory Specification): `$XDG_CONFIG_HOME/cairn`, else
    /// `~/.config/cairn`.
    pub(crate) fn open() -> anyhow::Result<Self> {
        let given = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        // The specification requires relative paths to be ignored.
        let settings = match given.filter(|path| path.is_absolute()) {
            Some(folder) => folder,
            None => match std::env::home_dir().filter(|path| path.is_absolute()) {
                Some(home) => home.join(".config"),
                None => {
                    bail!("there is no home folder to keep profiles in: set XDG_CONFIG_HOME, or give --token")
                }
            },
        };
        Ok(Self { folder: settings.join("cairn") })
    }

    /// The stored profiles; empty if there is no file.
    pub(crate) fn read(&self) -> anyhow::Result<Profiles> {
        let path = self.folder.join(FILE);
        let bytes = match fs_err::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Profiles::default()),
            read => read?,
        };
        // The error must not quote the file: it holds secrets.
        serde_json::from_slice(&bytes).map_err(|error| {
            anyhow::anyhow!(
                "{} cannot be understood (line {}): mend it, or remove it and log in again",
                path.display(),
                error.line()
            )
        })
    }

    /// Acquires the lock; waits while another process holds it.
    pub(crate) async fn lock(&self) -> anyhow::Result<Locked> {
        let store = self.clone();
        tokio::task::spawn_blocking(move || store.lock_now()).await?
    }

    fn lock_now(&self) -> anyhow::Result<Locked> {
        private_folder(&self.folder)?;
        let path = self.folder.join(LOCK);
        let mut options = fs_err::OpenOptions::new();
        let file: File = options.create(true).truncate(false).write(true).open(&path)?.into_parts().0;
        file.lock().with_context(|| format!("{} cannot be locked", path.display()))?;
        Ok(Locked { store: self.clone(), _lock: file })
    }

    #[cfg(test)]
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }
}

/// The held lock; released on drop.
#[derive(Debug)]
pub(crate) struct Locked {
    store: Store,
    _lock: File,
}

impl Locked {
    /// The stored profiles.
    pub(crate) fn read(&self) -> anyhow::Result<Profiles> {
        self.store.read()
    }

    /// Replaces the stored profiles atomically.
    pub(crate) fn write(&self, profiles: &Profiles) -> anyhow::Result<()> {
        // Created with mode 0600, which the replaced file then has, whatever the old one had.
        let mut file = tempfile::NamedTempFile::new_in(&self.store.folder)?;
        file.write_all(serde_json::to_string_pretty(profiles)?.as_bytes())?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(self.store.folder.join(FILE)).context("the profiles cannot be written")?;
        Ok(())
    }
}

/// Creates the folder, accessible by its owner only.
fn private_folder(folder: &Path) -> anyhow::Result<()> {
    // The umask is already set (`process::keep_files_private`).
    Ok(fs_err::create_dir_all(folder)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::model::tests::{granted, with_token};
    use super::*;

    #[tokio::test]
    async fn the_file_is_its_owners_whatever_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::in_folder(&folder.path().join("cairn"));
        assert_eq!(store.read().unwrap(), Profiles::default());
        let locked = store.lock().await.unwrap();
        let mut profiles = Profiles::default();
        profiles.profiles.insert("a".to_owned(), granted("https://a.example", 1));
        locked.write(&profiles).unwrap();
        let path = folder.path().join("cairn").join(FILE);
        let mode = || fs_err::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        locked.write(&profiles).unwrap();
        assert_eq!((mode(), store.read().unwrap()), (0o600, profiles));
    }

    #[tokio::test]
    async fn what_cannot_be_understood_is_told_without_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let text =
            r#"{"profiles": {"a": {"url": "u", "credential": {"kind": "token", "token": "cairn_secret"}}}"#;
        fs_err::write(folder.path().join(FILE), text).unwrap();
        let told = format!("{:#}", Store::in_folder(folder.path()).read().unwrap_err());
        assert!(told.contains("log in again") && !told.contains("secret"), "{told}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn changes_at_once_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::in_folder(folder.path());
        let changes = (0..20).map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                let locked = store.lock().await.unwrap();
                let mut profiles = locked.read().unwrap();
                profiles.profiles.insert(number.to_string(), with_token("https://a.example", "t"));
                locked.write(&profiles).unwrap();
            })
        });
        for change in changes.collect::<Vec<_>>() {
            change.await.unwrap();
        }
        assert_eq!(store.read().unwrap().profiles.len(), 20);
    }
}
