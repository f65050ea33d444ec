//! The frame of console pages: skip link, navigation, heading, title, headers, and the notice of the last form.

use axum::response::Response;
use cairn_proto::domain::Permission;
use http::{StatusCode, header};
use maud::{Markup, html};

use super::document::{self, Document};
use super::notice::Notice;
use super::palette;
use super::parts::{self, Icon, icon};
use super::viewer;
use super::visitor::{Here, Visitor};

/// An entry of the navigation.
pub(crate) struct Entry {
    title: &'static str,
    /// Relative to `/w/{id}`.
    pub(crate) path: &'static str,
    icon: Icon,
    /// The key after `g`.
    key: &'static str,
    /// Whether a separator precedes it.
    begins: bool,
    /// Whether it is for owners and admins only.
    manages: bool,
}

impl Entry {
    pub(crate) const fn title(&self) -> &'static str {
        self.title
    }
}

const fn entry(title: &'static str, path: &'static str, icon: Icon, key: &'static str) -> Entry {
    Entry { title, path, icon, key, begins: false, manages: false }
}

const fn of_managers(title: &'static str, path: &'static str, icon: Icon, key: &'static str) -> Entry {
    Entry { manages: true, ..entry(title, path, icon, key) }
}

const fn after_line(title: &'static str, path: &'static str, icon: Icon, key: &'static str) -> Entry {
    Entry { begins: true, ..entry(title, path, icon, key) }
}

/// All entries.
pub(crate) const NAVIGATION: &[Entry] = &[
    entry("Overview", "", Icon::Home, "o"),
    entry("Search", "/search", Icon::Glass, "s"),
    entry("Files", "/files", Icon::File, "f"),
    entry("Databases", "/databases", Icon::Table, "d"),
    entry("Memories", "/memories", Icon::Stack, "m"),
    entry("Documents", "/documents", Icon::Page, "e"),
    entry("Sources", "/sources", Icon::Inbox, "r"),
    entry("Sync", "/sync", Icon::Turn, "y"),
    entry("Import", "/import", Icon::Tray, "i"),
    entry("Activity", "/activity", Icon::Clock, "a"),
    entry("Questions", "/questions", Icon::Bubble, "q"),
    of_managers("Analytics", "/analytics", Icon::Bars, "n"),
    entry("Trash", "/trash", Icon::Trash, "t"),
    after_line("Connect", "/connect", Icon::Plug, "c"),
    entry("Tokens", "/tokens", Icon::Key, "k"),
    entry("Apps", "/apps", Icon::Grid, "p"),
    of_managers("Webhooks", "/webhooks", Icon::Hook, "w"),
    after_line("Members", "/members", Icon::Person, "u"),
    entry("Health", "/health", Icon::Pulse, "h"),
    entry("Settings", "/settings", Icon::Gear, ","),
];

/// A page to be shown.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    title: &'a str,
    heading: Option<Markup>,
    status: StatusCode,
    is_error: bool,
    crumbs: Vec<(String, String)>,
    aside: Option<Markup>,
    is_live: bool,
}

impl<'a> Page<'a> {
    pub(crate) const fn new(title: &'a str) -> Self {
        Self {
            title,
            heading: None,
            status: StatusCode::OK,
            is_error: false,
            crumbs: Vec::new(),
            aside: None,
            is_live: false,
        }
    }

    /// Markup in the `h1` instead of the title.
    pub(crate) fn heading(self, heading: Markup) -> Self {
        Self { heading: Some(heading), ..self }
    }

    /// The breadcrumbs: titles and URLs, from the top.
    pub(crate) fn crumbs(self, crumbs: Vec<(String, String)>) -> Self {
        Self { crumbs, ..self }
    }

    /// The page's own buttons beside the heading.
    pub(crate) fn actions(self, actions: Markup) -> Self {
        Self { aside: Some(actions), ..self }
    }

    /// Enables live updates: elements with `data-live`, which lists kinds of events, are re-fetched when one
    /// arrives. Not after a rejected form, whose URL cannot be fetched again.
    pub(crate) fn live(self) -> Self {
        Self { is_live: true, ..self }
    }

    /// Marks a rejected form.
    pub(crate) fn failed(self) -> Self {
        self.with_error(StatusCode::BAD_REQUEST)
    }

    /// Sets an error status.
    pub(crate) fn with_error(self, status: StatusCode) -> Self {
        Self { status, is_error: true, ..self }
    }

    /// Renders the page; its body starts with `h2`.
    pub(crate) fn show(self, visitor: &Visitor, body: &Markup) -> Response {
        let here = visitor.here_if_any();
        let title = self.full_title(here);
        let whole = html! {
            a.skip href="#main" { "Skip to content" }
            header {
                a.brand href="/" { "Cairn" }
                (palette::button(here))
                button.menu type="button" popovertarget="menu" { (icon(Icon::Menu)) "Menu" }
                nav #menu popover aria-label="Main" { (navigation(visitor, here)) }
            }
            main #main tabindex="-1" data-events=[here.filter(|_| self.is_live && !self.is_error).map(|here| format!("/w/{}/events", here.id))] {
                (parts::crumbs(&self.crumbs, self.title))
                div.top {
                    h1 { @if let Some(heading) = &self.heading { (heading) } @else { (self.title) } }
                    @if let Some(aside) = &self.aside { div.buttons { (aside) } }
                }
                (toast(visitor, here))
                (viewer::note(visitor))
                (body)
            }
            (palette::dialog(here))
            (keys(visitor))
        };
        let document =
            Document { title: &title, class: "console", modules: &document::MODULES, look: visitor.look };
        let mut response = document.around(self.status_for(visitor), &whole);
        document::guard(&mut response);
        let cookies = [visitor.last_cookie(), visitor.notice.as_ref().and_then(|_| Notice::no_cookie())];
        for cookie in cookies.into_iter().flatten() {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        response
    }

    /// Scripts get 200 even for errors: browsers log a failed fetch as an error of the page, and the form itself
    /// shows what is wrong.
    fn status_for(&self, visitor: &Visitor) -> StatusCode {
        if visitor.takes_part && self.status.is_client_error() { StatusCode::OK } else { self.status }
    }

    fn full_title(&self, here: Option<&Here>) -> String {
        let error = if self.is_error { "Error: " } else { "" };
        match here {
            Some(here) => format!("{error}{} – {}", self.title, here.name),
            None => format!("{error}{}", self.title),
        }
    }
}

/// The entries visible to the visitor; without a workspace, none for managers.
pub(super) fn entries(visitor: &Visitor) -> impl Iterator<Item = &'static Entry> {
    let manages = visitor.manages();
    NAVIGATION.iter().filter(move |entry| manages || !entry.manages)
}

fn navigation(visitor: &Visitor, here: Option<&Here>) -> Markup {
    let path = visitor.address.split('?').next().unwrap_or_default();
    html! {
        @if let Some(here) = here {
            details.switch {
                summary { bdi { (here.name) } }
                ul {
                    @for other in visitor.workspaces.iter().filter(|one| one.id != here.id.to_string()).take(20) {
                        li { a href={ "/w/" (other.id) } { bdi { (other.name) } } }
                    }
                    li { a href="/workspaces" { "All workspaces" } }
                }
            }
            ul {
                @for entry in entries(visitor) {
                    @let address = format!("/w/{}{}", here.id, entry.path);
                    li class=[entry.begins.then_some("line")] {
                        a href=(address) data-go=(entry.key) aria-current=[is_current(entry, &address, path)] {
                            (icon(entry.icon)) (entry.title)
                        }
                    }
                }
            }
        }
        ul {
            li class=[here.map(|_| "line")] { a href="/workspaces" aria-current=[(path == "/workspaces").then_some("page")] { (icon(Icon::Grid)) "Workspaces" } }
            li { a href="/account" aria-current=[(path == "/account").then_some("page")] { (icon(Icon::Person)) "Account" } }
            li { a href="/docs/guides" { (icon(Icon::Book)) "Guides" } }
        }
        // The account page has it among the sessions.
        @if path != "/account" { form.leave method="post" action="/sign-out" { button.link type="submit" { "Sign out" } } }
    }
}

fn is_current(entry: &Entry, address: &str, path: &str) -> Option<&'static str> {
    if path == address {
        return Some("page");
    }
    let is_below =
        !entry.path.is_empty() && path.strip_prefix(address).is_some_and(|rest| rest.starts_with('/'));
    is_below.then_some("true")
}

/// The toast of the last form, with Undo for soft deletions.
fn toast(visitor: &Visitor, here: Option<&Here>) -> Markup {
    let Some(notice) = &visitor.notice else { return html! {} };
    html! {
        output.toast {
            span { (notice.sentence()) }
            @if let (Notice::Changed(changed), Some(here)) = (notice, here) {
                @if visitor.may_undo() {
                    form.inline method="post" action={ "/w/" (here.id) "/activity/undo" } {
                        input type="hidden" name="write" value=(changed.write());
                        input type="hidden" name="back" value=(visitor.address);
                        button type="submit" { "Undo" }
                    }
                }
            }
            @if let (Notice::Trashed(items), Some(here)) = (notice, here) {
                @if visitor.may(Permission::Write) {
                    form.inline method="post" action={ "/w/" (here.id) "/trash/restore" } {
                        @for (kind, id) in items { input type="hidden" name="item" value={ (kind.as_str()) ":" (id) }; }
                        input type="hidden" name="back" value=(visitor.address);
                        button type="submit" { "Undo" }
                    }
                }
            }
        }
    }
}

/// The list of keyboard shortcuts; `?` opens it.
fn keys(visitor: &Visitor) -> Markup {
    html! {
        dialog #keys aria-labelledby="keys-title" closedby="any" {
            h2 #keys-title { "Keys" }
            dl.facts {
                dt { kbd { "g" } " then a letter" }
                dd {
                    @for (at, entry) in entries(visitor).enumerate() {
                        @if at > 0 { ", " }
                        kbd { (entry.key) } " " (entry.title)
                    }
                }
                dt { kbd { "j" } " " kbd { "k" } } dd { "Next and previous row" }
                dt { kbd { "[" } " " kbd { "]" } } dd { "Previous and next page" }
                dt { kbd { "x" } } dd { "Select the row; a click with Shift takes those between" }
                dt { kbd { "n" } " " kbd { "e" } " " kbd { "m" } } dd { "New, edit, move" }
                dt { kbd { "#" } " " kbd { "r" } } dd { "Move the selected to trash, restore them" }
                dt { kbd { "y" } } dd { "Copy the link to what is shown" }
                dt { kbd { "t" } } dd { "How a result was found" }
                dt { kbd { "u" } } dd { "Undo what the list of activity says" }
                dt { kbd { "/" } } dd { "Find" }
                dt { kbd { "Ctrl" } " " kbd { "Enter" } } dd { "Send the form that is written in; " kbd { "Ctrl" } " " kbd { "S" } " in the editor" }
                dt { kbd { "Ctrl" } " " kbd { "K" } } dd { "Go to a page, file, record, memory" }
            }
            p.hint { "They can be switched off in your account." }
            form method="dialog" { button { "Close" } }
        }
    }
}
