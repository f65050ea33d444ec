//! `cairn completions` and `cairn man`.

use std::io::Write as _;

use anyhow::{Context as _, anyhow};
use clap::CommandFactory as _;
use clap_mangen::Man;

use crate::cli::{Cli, CompletionsOptions, ManOptions};

const NAME: &str = "cairn";

pub(crate) fn completions(options: &CompletionsOptions) -> anyhow::Result<()> {
    // Rendered into memory first: the generator panics on a broken pipe.
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), NAME, &mut script);
    written(&script)
}

pub(crate) fn manual(options: &ManOptions) -> anyhow::Result<()> {
    match &options.out {
        Some(folder) => {
            fs_err::create_dir_all(folder)?;
            clap_mangen::generate_to(Cli::command(), folder).context("the pages cannot be written")
        }
        None => written(&page(&options.command)?),
    }
}

/// The manual page of a command, given by the words after `cairn`.
fn page(words: &[String]) -> anyhow::Result<Vec<u8>> {
    let mut command = Cli::command();
    // Sets the full names of subcommands.
    command.build();
    for word in words {
        let found = command.find_subcommand(word).cloned();
        command = found.ok_or_else(|| anyhow!("there is no command `{NAME} {}`", words.join(" ")))?;
    }
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    Ok(page)
}

fn written(text: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text)?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;
    use clap_complete::Shell;

    use super::*;

    fn text(words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        String::from_utf8(page(&words).unwrap()).unwrap()
    }

    #[test]
    fn a_page_is_of_the_command_that_is_named() {
        assert!(text(&[]).contains(".TH cairn 1"));
        let sync = text(&["sync"]);
        assert!(
            sync.contains(".TH cairn-sync 1") && sync.contains("prune") && sync.contains("Examples:"),
            "{sync}"
        );
        assert!(text(&["secrets", "rotate"]).contains(".TH cairn-secrets-rotate 1"));
        assert!(page(&["nothing".to_owned()]).is_err());
    }

    #[test]
    fn all_pages_and_all_shells_are_made() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("man1");
        manual(&ManOptions { command: Vec::new(), out: Some(out.clone()) }).unwrap();
        assert!(out.join("cairn.1").exists() && out.join("cairn-plan-set.1").exists());
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), NAME, &mut script);
            let script = String::from_utf8(script).unwrap();
            assert!(script.contains("dry-run") && script.contains("ingest"), "{shell}");
        }
    }
}
