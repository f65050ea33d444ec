//! The record of what earlier pulls wrote into a directory.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write as _};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use super::place::Place;

const FILE: &str = "pull.json";

/// A file that a pull wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PulledFile {
    /// The item: its kind and its id.
    pub(super) key: String,
    /// The hash in the workspace.
    pub(super) remote: String,
    /// The hash of the local file.
    pub(super) local: String,
}

/// All files, by path relative to the directory, with `/` as the separator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct State {
    /// The workspace that the files are from.
    pub(super) workspace_id: String,
    pub(super) items: BTreeMap<String, PulledFile>,
}

impl State {
    /// Reads the record of a directory; fails if it belongs to another workspace.
    pub(super) fn read(place: &Place, workspace_id: &str) -> anyhow::Result<Self> {
        let path = place.own(FILE);
        let bytes = match fs_err::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Self { workspace_id: workspace_id.to_owned(), ..Self::default() });
            }
            read => read?,
        };
        let state: Self = serde_json::from_slice(&bytes).with_context(|| {
            format!("{} cannot be understood: pull into another directory", path.display())
        })?;
        if state.workspace_id != workspace_id {
            bail!("this directory was pulled from another workspace: pull into another directory");
        }
        Ok(state)
    }

    pub(super) fn write(&self, place: &Place) -> anyhow::Result<()> {
        let mut file = place.scratch()?;
        serde_json::to_writer(&mut file, self)?;
        file.flush()?;
        file.persist(place.own(FILE)).context("what was pulled cannot be noted")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_knows_its_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::open(folder.path()).unwrap();
        let mut state = State::read(&place, "w").unwrap();
        state
            .items
            .insert("files/a".into(), PulledFile { key: "k".into(), remote: "r".into(), local: "l".into() });
        state.write(&place).unwrap();
        assert_eq!(State::read(&place, "w").unwrap(), state);
        assert!(State::read(&place, "other").is_err());
    }
}
