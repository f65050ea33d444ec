//! The components of pages: functions that return HTML, independent of the visitor.

mod chart;
mod dialog;
mod fields;
mod icons;
mod secret;
mod table;

use cairn_chassis::status::Problem;
use maud::{Markup, html};

use crate::pages::visitor::Here;
use crate::pages::words;

pub(crate) use self::chart::{Series, columns, lines, shares};
pub(crate) use self::dialog::{dialog, opens};
pub(crate) use self::fields::{Choice, Field, choices, summary};
pub(crate) use self::icons::{Icon, icon};
pub(crate) use self::secret::{copy, copy_link, secret, snippet};
pub(crate) use self::table::{MARK, Pages, pages, table};

/// The severity of a badge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Ok,
    Warn,
    Wrong,
}

/// A badge with a word about a state.
pub(crate) fn badge(tone: Tone, word: &str) -> Markup {
    let class = match tone {
        Tone::Plain => "badge",
        Tone::Ok => "badge ok",
        Tone::Warn => "badge warn",
        Tone::Wrong => "badge wrong",
    };
    html! { span class=(class) { (word) } }
}

/// The empty state of a list: what belongs here, and how to create the first.
pub(crate) fn empty(sentence: &str, action: &Markup) -> Markup {
    html! { div.empty { h2 { (sentence) } (action) } }
}

/// The placeholder of a failed part: the rest of the page is unaffected. `again` is the page's URL.
pub(crate) fn failed(problem: &Problem, again: &str) -> Markup {
    html! { p { (words::describe(problem)) " " a href=(again) { "Try again" } } }
}

/// The breadcrumbs.
pub(crate) fn crumbs(above: &[(String, String)], title: &str) -> Markup {
    html! {
        @if !above.is_empty() {
            nav.crumbs aria-label="Breadcrumb" {
                ol {
                    @for (title, address) in above { li { a href=(address) { bdi { (title) } } } }
                    li { span aria-current="page" { bdi { (title) } } }
                }
            }
        }
    }
}

/// A usage meter; it warns from 80 % on.
pub(crate) fn meter(label: &str, used: u64, limit: Option<u64>, written: impl Fn(u64) -> String) -> Markup {
    let Some(limit) = limit else {
        return html! { (written(used)) " " span.quiet { "(no limit)" } };
    };
    let is_tight = u128::from(used) * 5 >= u128::from(limit) * 4;
    html! {
        meter aria-label=(label) value=(used) max=(limit) high=(limit / 5 * 4) { }
        " " (written(used)) " of " (written(limit))
        @if used >= limit { " " (badge(Tone::Wrong, "Full")) } @else if is_tight { " " (badge(Tone::Warn, "Nearly full")) }
    }
}

/// A time (RFC 3339) in UTC, which a module converts to the reader's time zone.
pub(crate) fn time(at: &str) -> Markup {
    let written = at.get(..16).map(|minute| minute.replace('T', " "));
    html! { time datetime=(at) { (written.as_deref().unwrap_or(at)) @if written.is_some() { " UTC" } } }
}

/// The same for an optional time.
pub(crate) fn time_or(at: Option<&str>, without: &str) -> Markup {
    html! { @if let Some(at) = at { (time(at)) } @else { span.quiet { (without) } } }
}

/// A form with a single button; `about` completes its accessible name without the row around it.
pub(crate) fn action(address: &str, label: &str, about: &str, fields: &[(&str, &str)]) -> Markup {
    html! {
        form.inline method="post" action=(address) {
            @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
            button type="submit" { (label) @if !about.is_empty() { span.sr { " " bdi { (about) } } } }
        }
    }
}

/// The note that the visitor's role does not allow something, and who could change that.
pub(crate) fn not_in_role(here: &Here) -> Markup {
    html! {
        p.quiet {
            "Your role here is " (here.role.as_str()) ". "
            a href={ "/w/" (here.id) "/members" } { "An owner of the workspace" } " can give you another."
        }
    }
}

/// The note to every member that questions are logged, for how long, and who sees them; empty while they are not.
pub(crate) fn question_log(days: Option<u32>) -> Markup {
    let Some(days) = days else { return html! {} };
    html! {
        p.hint {
            "The question log is on: what is asked here is kept for " (words::count(u64::from(days), "day", "days"))
            ", with what was answered. Members see all of it, viewers their own."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_wrote_is_text() {
        let hostile = "<script>alert(1)</script>\" onload=\"x";
        let all = [
            badge(Tone::Ok, hostile),
            empty(hostile, &html! {}),
            crumbs(&[(hostile.to_owned(), "/x".to_owned())], hostile),
            time(hostile),
            action("/x", hostile, hostile, &[("name", hostile)]),
        ];
        for markup in all {
            let html = markup.into_string();
            assert!(!html.contains("<script") && !html.contains("\" onload"), "{html}");
        }
    }

    #[test]
    fn a_meter_warns_in_words() {
        let of = |used, limit| meter("Files", used, limit, words::grouped).into_string();
        assert!(of(79, Some(100)).contains("79 of 100") && !of(79, Some(100)).contains("badge"));
        assert!(of(80, Some(100)).contains("Nearly full"));
        assert!(of(100, Some(100)).contains("Full"));
        assert!(of(5, None).contains("no limit"));
    }

    #[test]
    fn a_time_is_told_to_programs_and_to_people() {
        let html = time("2026-11-23T14:05:09Z").into_string();
        assert_eq!(html, "<time datetime=\"2026-11-23T14:05:09Z\">2026-11-23 14:05 UTC</time>");
    }
}
