//! Display preferences of a person, kept in a cookie of the browser.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};

use crate::auth::cookie_value;

const COOKIE: &str = "cairn_look";
const COOKIE_LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);

/// The preferences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Look {
    pub(crate) theme: Theme,
    pub(crate) density: Density,
    pub(crate) keys: Keys,
}

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $usual:ident = $usual_word:literal, $($value:ident = $word:literal),+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub(crate) enum $name {
            #[default]
            $usual,
            $($value),+
        }

        impl $name {
            /// With their names in forms and in the cookie.
            pub(crate) const ALL: &'static [(Self, &'static str)] =
                &[(Self::$usual, $usual_word), $((Self::$value, $word)),+];

            /// The choice of that name; the default for an unknown one.
            pub(crate) fn named(word: &str) -> Self {
                Self::ALL.iter().find(|(_, of)| *of == word).map(|(choice, _)| *choice).unwrap_or_default()
            }

            pub(crate) fn word(self) -> &'static str {
                Self::ALL.iter().find(|(choice, _)| *choice == self).map(|(_, word)| *word).unwrap_or_default()
            }

            /// The document's attribute; `None` for the default.
            pub(crate) fn attribute(self) -> Option<&'static str> {
                (self != Self::default()).then(|| self.word())
            }
        }
    };
}

choice! {
    /// Colour scheme.
    Theme { System = "system", Light = "light", Dark = "dark" }
}
choice! {
    /// Row height.
    Density { Comfortable = "comfortable", Dense = "dense" }
}
choice! {
    /// Whether single-key shortcuts are enabled (WCAG 2.1.4).
    Keys { On = "on", Off = "off" }
}

impl Look {
    /// The preferences of the request's cookie.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut words = cookie_value(headers, COOKIE).unwrap_or_default().split('.');
        let mut next = || words.next().unwrap_or_default();
        Self { theme: Theme::named(next()), density: Density::named(next()), keys: Keys::named(next()) }
    }

    /// The cookie.
    pub(crate) fn cookie(self) -> Option<HeaderValue> {
        let Self { theme, density, keys } = self;
        let (words, seconds) =
            ([theme.word(), density.word(), keys.word()].join("."), COOKIE_LIFETIME.as_secs());
        HeaderValue::from_str(&format!("{COOKIE}={words}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax"))
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use http::header;

    use super::*;

    #[test]
    fn a_look_comes_back_from_its_cookie_and_nonsense_is_what_is_usual() {
        let read = |cookie: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, cookie.parse().unwrap());
            Look::of(&headers)
        };
        let look = Look { theme: Theme::Dark, density: Density::Dense, keys: Keys::Off };
        let cookie = look.cookie().unwrap();
        assert_eq!(read(cookie.to_str().unwrap().split(';').next().unwrap()), look);
        for nonsense in ["cairn_look=", "cairn_look=x.y.z.\"><script>", "other=dark"] {
            assert_eq!(read(nonsense), Look::default());
        }
    }
}
