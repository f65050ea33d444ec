//! The icons, drawn by us: 16 px, lines of 1.5 px. What has one has a text too.

use maud::{Markup, html};

/// What an icon stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Icon {
    Book,
    File,
    Glass,
    Gear,
    Grid,
    Home,
    Key,
    Menu,
    Person,
    Plug,
    Pulse,
    Trash,
}

/// The icon; who cannot see it misses nothing.
pub(crate) fn icon(icon: Icon) -> Markup {
    let path = match icon {
        Icon::Book => {
            "M8 4C6.5 2.8 4.5 2.5 2 2.5v10c2.5 0 4.5.3 6 1.5 1.5-1.2 3.5-1.5 6-1.5v-10c-2.5 0-4.5.3-6 1.5zM8 4v10"
        }
        Icon::Gear => {
            "M8 5.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5zM8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M3.4 12.6l1.4-1.4M11.2 4.8l1.4-1.4"
        }
        Icon::File => "M3.5 1.5h6l3 3v10h-9zM9.5 1.5v3h3",
        Icon::Glass => "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.5 10.5l3.5 3.5",
        Icon::Grid => "M2.5 2.5h4.5v4.5h-4.5zM9 2.5h4.5v4.5h-4.5zM2.5 9h4.5v4.5h-4.5zM9 9h4.5v4.5h-4.5z",
        Icon::Home => "M2 7.5 8 2.5l6 5M4 6.5v7h8v-7",
        Icon::Key => "M10.5 2.5a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM8.5 7.5l-6 6M4.5 11.5l1.5 1.5",
        Icon::Menu => "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
        Icon::Person => "M8 2.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5zM3 13.5c.5-2.5 2.5-4 5-4s4.5 1.5 5 4",
        Icon::Plug => "M5.5 2v3.5M10.5 2v3.5M4 5.5h8v2a4 4 0 0 1-8 0zM8 11.5v3",
        Icon::Pulse => "M1.5 8.5h3l2-5 3 9 2-4h3",
        Icon::Trash => "M2.5 4.5h11M6 4.5v-2h4v2M4 4.5l.5 9h7l.5-9M6.7 7v4M9.3 7v4",
    };
    html! { svg.icon viewBox="0 0 16 16" aria-hidden="true" { path d=(path) {} } }
}
