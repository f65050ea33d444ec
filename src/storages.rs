//! Locates the tables of services, for commands that read them from outside.

use std::path::Path;

use anyhow::Context as _;
use cairn_chassis::sql::Config;

use crate::cli::Role;

/// The error if there are none.
pub(crate) const NONE_HERE: &str =
    "no Cairn data here; name its folder with --data or its database with --database";

/// The database, or the SQLite files of `cairn up` and of `cairn serve`.
pub(crate) fn of(role: Role, data: &Path, database: Option<&str>) -> anyhow::Result<Vec<Config>> {
    if let Some(url) = database {
        return Ok(vec![
            Config::from_url(url).context("the database cannot be used; see --database in --help")?,
        ]);
    }
    let of_serve = of_up(role, &data.join(role.name()));
    Ok(of_up(role, data).into_iter().chain(of_serve).collect())
}

/// The SQLite file of a service of `cairn up` in that folder, if it exists.
pub(crate) fn of_up(role: Role, folder: &Path) -> Option<Config> {
    let path = folder.join(format!("{}.db", role.name()));
    Path::exists(&path).then(|| Config::sqlite(path))
}
