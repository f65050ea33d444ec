//! Backlinks: files whose texts link to a file, by its name in double brackets or by its path or URL in a Markdown
//! link. They are found with `grep`, so false positives are possible; each is shown with its line.

use std::time::Duration;

use cairn_chassis::status::Problem;
use form_urlencoded::byte_serialize;
use maud::{Markup, html};
use serde_json::json;
use tokio::time::timeout;

use super::address;
use crate::answers::{File, ScriptAnswer};
use crate::operations::Context;
use crate::operations::browse::{self, ExecuteScript};
use crate::pages::{form, parts as part, search};

/// A time limit for the page: a workspace may hold a lot of text.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The limit of a script.
const MAX_SCRIPT_BYTES: usize = 16_384;

/// Finds the backlinks.
pub(super) async fn to(context: &Context, file: &File) -> Result<ScriptAnswer, Problem> {
    let input = form::input::<ExecuteScript>(json!({"script": script(file)}))?;
    let late =
        |_| Problem::unavailable("the texts of this workspace were not looked through in time", TIMEOUT);
    timeout(TIMEOUT, browse::execute(context, input)).await.map_err(late)?
}

/// The script that finds linking lines, one per file.
fn script(file: &File) -> String {
    let stem = file.name.rsplit_once('.').map_or(file.name.as_str(), |(stem, _)| stem);
    let plain =
        [stem, &file.name].into_iter().flat_map(|name| ["]]", "|", "#"].map(|end| format!("[[{name}{end}")));
    let encoded = byte_serialize(file.name.as_bytes()).collect::<String>().replace('+', "%20");
    let by_path = [&file.name, &encoded]
        .into_iter()
        .flat_map(|name| ["](", "/"].map(|start| format!("{start}{name})")));
    let mut script = format!("grep -rniF -m 1 -e {}", quoted(&address(&file.id)));
    for pattern in plain.chain(by_path) {
        let more = format!(" -e {}", quoted(&pattern));
        // A name may be so long that not all spellings fit.
        if script.len() + more.len() < MAX_SCRIPT_BYTES - 16 {
            script.push_str(&more);
        }
    }
    script.push_str(" /files");
    script
}

/// Quotes a text as a single shell word. Names contain no line breaks.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace(char::is_control, " ").replace('\'', r"'\''"))
}

pub(super) fn show(found: &Result<ScriptAnswer, Problem>, file: &str, again: &str) -> Markup {
    let answer = match found {
        Ok(answer) => answer,
        Err(problem) => return part::failed(problem, again),
    };
    let linking: Vec<_> = answer.citations.iter().filter(|citation| citation.id != file).collect();
    // grep exits with failure when nothing is found; any other failure is reported.
    let is_cut = answer.truncated || answer.uncited.is_some() || (answer.failed && !answer.output.is_empty());
    html! {
        @if linking.is_empty() && !is_cut { p.quiet { "No other file links to it." } }
        ul { @for citation in linking { li { (search::chip(citation, None, None)) } } }
        @if is_cut { p.quiet { "There may be others: not all texts were looked through." } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_looked_for_as_they_are_written() {
        let file = |name: &str| File { id: "1".to_owned(), name: name.to_owned(), ..File::default() };
        let script = script(&file("it's how.md"));
        for part in [
            "-e '/file/1'",
            r"-e '[[it'\''s how]]'",
            r"-e '[[it'\''s how.md|'",
            r"-e '](it'\''s how.md)'",
            "-e '/it%27s%20how.md)'",
        ] {
            assert!(script.contains(part), "{part}: {script}");
        }
        assert!(script.ends_with(" /files"), "{script}");
        assert!(super::script(&file(&"𐍈'".repeat(3_000))).len() <= MAX_SCRIPT_BYTES);
    }
}
