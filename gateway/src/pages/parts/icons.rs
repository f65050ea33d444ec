//! Our own icons: 16 px, 1.5 px strokes. An icon always accompanies a text.

use maud::{Markup, html};

/// The meaning of an icon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Icon {
    Bars,
    Book,
    Bubble,
    Clock,
    File,
    Gear,
    Glass,
    Grid,
    Home,
    Hook,
    Inbox,
    Key,
    Menu,
    Page,
    Person,
    Plug,
    Pulse,
    Stack,
    Table,
    Trash,
    Tray,
    Turn,
}

/// The icon, hidden from assistive technology.
pub(crate) fn icon(icon: Icon) -> Markup {
    let path = match icon {
        Icon::Bars => "M3.5 13.5v-4M8 13.5v-11M12.5 13.5v-7",
        Icon::Book => {
            "M8 4C6.5 2.8 4.5 2.5 2 2.5v10c2.5 0 4.5.3 6 1.5 1.5-1.2 3.5-1.5 6-1.5v-10c-2.5 0-4.5.3-6 1.5zM8 4v10"
        }
        Icon::Clock => "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM8 5v3.5l2 1.5",
        Icon::Bubble => "M2.5 2.5h11v8h-6l-3 3v-3h-2zM5.5 5.5h5M5.5 7.5h3",
        Icon::Gear => {
            "M8 5.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5zM8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M3.4 12.6l1.4-1.4M11.2 4.8l1.4-1.4"
        }
        Icon::File => "M3.5 1.5h6l3 3v10h-9zM9.5 1.5v3h3",
        Icon::Glass => "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.5 10.5l3.5 3.5",
        Icon::Grid => "M2.5 2.5h4.5v4.5h-4.5zM9 2.5h4.5v4.5h-4.5zM2.5 9h4.5v4.5h-4.5zM9 9h4.5v4.5h-4.5z",
        Icon::Home => "M2 7.5 8 2.5l6 5M4 6.5v7h8v-7",
        Icon::Hook => "M6.5 2.5v7.5a3 3 0 0 0 6 0V8l-2 2",
        Icon::Inbox => "M2 9.5v4h12v-4M2 9.5h3.5l1 2h3l1-2H14M8 1.5v6M5.5 5l2.5 2.5L10.5 5",
        Icon::Tray => "M8 2v7M5 6.5 8 9.5l3-3M2.5 9.5v4h11v-4",
        Icon::Key => "M10.5 2.5a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM8.5 7.5l-6 6M4.5 11.5l1.5 1.5",
        Icon::Menu => "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
        Icon::Page => "M5.5 1.5h5l3 3v7h-8zM10.5 1.5v3h3M5.5 4.5h-3v10h8v-3",
        Icon::Person => "M8 2.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5zM3 13.5c.5-2.5 2.5-4 5-4s4.5 1.5 5 4",
        Icon::Plug => "M5.5 2v3.5M10.5 2v3.5M4 5.5h8v2a4 4 0 0 1-8 0zM8 11.5v3",
        Icon::Pulse => "M1.5 8.5h3l2-5 3 9 2-4h3",
        Icon::Stack => "M8 2 14 5 8 8 2 5zM2 8l6 3 6-3M2 11l6 3 6-3",
        Icon::Table => "M2 3h12v10H2zM2 6.5h12M6.5 6.5V13",
        Icon::Turn => "M13.5 8A5.5 5.5 0 0 1 3.6 11.2M2.5 8a5.5 5.5 0 0 1 9.9-3.2M12.5 2v3h-3M3.5 14v-3h3",
        Icon::Trash => "M2.5 4.5h11M6 4.5v-2h4v2M4 4.5l.5 9h7l.5-9M6.7 7v4M9.3 7v4",
    };
    html! { svg.icon viewBox="0 0 16 16" aria-hidden="true" { path d=(path) {} } }
}
