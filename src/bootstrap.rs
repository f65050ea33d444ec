//! `cairn bootstrap show`: the credentials of the first account of `cairn up`, for environments where nothing else can
//! read a file.

use std::io::Write as _;

use anyhow::Context as _;

use crate::bootstrap_file::{self, BootstrapFile};
use crate::cli::ShowBootstrapOptions;

pub(crate) fn show(options: &ShowBootstrapOptions) -> anyhow::Result<()> {
    let file = BootstrapFile::read(&options.data).with_context(|| {
        format!(
            "{} is not there or cannot be read; it is made at the first start of `cairn up`, and whoever has removed it \
             signs in with the account of that start",
            options.data.join(bootstrap_file::FILE_NAME).display()
        )
    })?;
    let mut out = std::io::stdout().lock();
    if options.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&file)?)?;
        return Ok(out.flush()?);
    }
    let BootstrapFile { base_url, email, password, workspace_id, token } = &file;
    writeln!(out, "Address      {base_url}\nSign in as   {email}\nPassword     {password}")?;
    writeln!(out, "API token    {token}\nWorkspace    {workspace_id}")?;
    Ok(out.flush()?)
}
