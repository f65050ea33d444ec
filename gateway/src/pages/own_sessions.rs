//! The person's sessions.

use cairn_chassis::status::Problem;
use maud::{Markup, html};

use super::parts::{self, Tone};
use super::words;
use crate::answers::OwnSession;

/// Browsers by their mark in the user agent, most specific first: most user agents contain those of others, too.
const BROWSERS: [(&str, &str); 6] = [
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
];
const SYSTEMS: [(&str, &str); 6] = [
    ("Android", "Android"),
    ("iPhone", "an iPhone"),
    ("iPad", "an iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
];
const MAX_NAME_LENGTH: usize = 60;

/// The list with a button to end each session but the current one, which signing out ends.
pub(super) fn list(listed: &Result<Vec<OwnSession>, Problem>) -> Markup {
    let sessions = match listed {
        Ok(sessions) => sessions,
        Err(problem) => {
            return html! { p { (words::describe(problem)) " " a href="/account" { "Try again" } } };
        }
    };
    let rows = html! {
        @for session in sessions {
            tr {
                th scope="row" { bdi { (agent(&session.agent)) } @if session.current { " " (parts::badge(Tone::Ok, "This one")) } }
                td { (place(&session.place)) }
                td { (parts::time(&session.created_at)) }
                td { (parts::time_or(session.last_used_at.as_deref(), "not since")) }
                td { @if !session.current { (parts::action(&format!("/account/sessions/{}/end", session.id), "End", &agent(&session.agent), &[])) } }
            }
        }
    };
    parts::table("Where you are signed in", &["Opened with", "From", "Opened", "Last used", ""], &rows)
}

/// A short name from a user agent.
pub(super) fn agent(named: &str) -> String {
    let of = |known: &[(&str, &'static str)]| {
        known.iter().find(|(sign, _)| named.contains(sign)).map(|(_, name)| *name)
    };
    match (of(&BROWSERS), of(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        (None, _) if named.trim().is_empty() => "Something that did not name itself".to_owned(),
        (None, _) => named.chars().take(MAX_NAME_LENGTH).collect(),
    }
}

fn place(place: &str) -> String {
    match place {
        "loopback" => "This server's own machine".to_owned(),
        "private" => "A private network".to_owned(),
        "" => "Not known".to_owned(),
        network => format!("The network {network}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_named_by_what_it_says_of_itself() {
        let chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0 Safari/537.36";
        for (named, name) in [
            (chrome, "Chrome on Linux"),
            (&format!("{chrome} Edg/156.0"), "Edge on Linux"),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 14.1; rv:153.0) Gecko/20100101 Firefox/153.0",
                "Firefox on macOS",
            ),
            ("curl/8.9", "curl"),
            (" ", "Something that did not name itself"),
            ("<b>", "<b>"),
        ] {
            assert_eq!(agent(named), name);
        }
        assert_eq!(agent(&"é".repeat(200)).chars().count(), MAX_NAME_LENGTH);
    }
}
