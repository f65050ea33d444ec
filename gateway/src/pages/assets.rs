//! The style sheet, modules and icon of the pages, under content-hashed names and thus immutable. `build/assets.rs`
//! generates them.

use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::class::{Class, Surface, Who};
use crate::error::Error;
use crate::routes::Routes;

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

const CACHE_POLICY: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// A file with its bytes, plain and compressed.
struct Asset {
    address: &'static str,
    kind: &'static str,
    plain: &'static [u8],
    gzip: &'static [u8],
    brotli: &'static [u8],
}

pub(crate) fn routes() -> Routes {
    let open = Class::new(Surface::Open, Who::Anyone);
    Routes::default().get(open, "/console/{name}", serve)
}

async fn serve(request: Request) -> Result<Response, Error> {
    let asked = request.uri().path();
    let asset = ASSETS.iter().find(|asset| asset.address == asked).ok_or_else(Error::unknown_route)?;
    let (encoding, bytes) = asset.encoded(request.headers());
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    headers.insert(header::CACHE_CONTROL, CACHE_POLICY);
    headers.insert(header::VARY, HeaderValue::from(HeaderName::from_static("accept-encoding")));
    if let Some(encoding) = encoding {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    Ok(response)
}

impl Asset {
    /// The smallest encoding that the client accepts; quality values other than 0 are ignored.
    fn encoded(&self, headers: &HeaderMap) -> (Option<&'static str>, &'static [u8]) {
        let takes = |wanted: &str| {
            let lines = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
            lines.flat_map(|line| line.split(',')).any(|part| {
                let (name, quality) = part.split_once(';').unwrap_or((part, ""));
                let is_refused =
                    quality.trim().strip_prefix("q=").is_some_and(|q| q.parse::<f32>() == Ok(0.0));
                name.trim().eq_ignore_ascii_case(wanted) && !is_refused
            })
        };
        match () {
            () if takes("br") => (Some("br"), self.brotli),
            () if takes("gzip") => (Some("gzip"), self.gzip),
            () => (None, self.plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn asset(address: &str) -> &'static Asset {
        ASSETS.iter().find(|asset| asset.address == address).unwrap()
    }

    fn text(address: &str) -> &'static str {
        std::str::from_utf8(asset(address).plain).unwrap()
    }

    #[test]
    fn the_smallest_form_that_the_caller_takes_is_sent() {
        let style = asset(APP_CSS);
        for (sent, expected) in [
            ("gzip, deflate, br, zstd", Some("br")),
            ("gzip;q=0.5", Some("gzip")),
            ("br;q=0, gzip", Some("gzip")),
            ("identity", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, sent.parse().unwrap());
            assert_eq!(style.encoded(&headers).0, expected, "{sent}");
        }
        assert!(style.brotli.len() < style.gzip.len() && style.gzip.len() < style.plain.len());
    }

    #[test]
    fn the_assets_are_light() {
        assert!(asset(APP_CSS).gzip.len() <= 10_000, "{}", asset(APP_CSS).gzip.len());
        let modules = ASSETS.iter().filter(|asset| asset.kind.starts_with("text/javascript"));
        let size: usize = modules.map(|module| module.gzip.len()).sum();
        assert!(size <= 16_000, "{size}");
    }

    #[test]
    fn the_style_loads_nothing_and_knows_no_left_or_right() {
        let style = text(APP_CSS);
        for absent in ["url(", "@import", "-left:", "-right:", "text-align: left", "text-align: right"] {
            assert!(!style.contains(absent), "{absent}");
        }
    }

    /// The value of a colour variable, light and dark.
    fn colours() -> HashMap<&'static str, [&'static str; 2]> {
        let mut found = HashMap::new();
        for line in text(APP_CSS).lines() {
            let Some((name, value)) =
                line.trim().strip_prefix("--").and_then(|line| line.split_once(": light-dark("))
            else {
                continue;
            };
            let (light, dark) = value.trim_end_matches(");").split_once(", ").unwrap();
            assert!(found.insert(name, [light, dark]).is_none(), "{name} is told twice");
        }
        found
    }

    /// The relative luminance of WCAG 2.2.
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn every_pair_of_colours_can_be_read() {
        let colours = colours();
        let texts = [
            ("text", &["ground", "surface", "sunken", "mark", "add", "del", "warn-soft"][..]),
            ("quiet", &["ground", "surface", "sunken", "mark"]),
            ("accent", &["ground", "surface", "accent-soft", "mark"]),
            ("on-accent", &["accent"]),
            ("on-wrong", &["wrong"]),
            ("wrong", &["ground", "surface", "wrong-soft"]),
            ("warn", &["surface", "warn-soft", "sunken", "mark"]),
            ("ok", &["surface", "ok-soft", "sunken", "mark"]),
            ("info", &["surface", "info-soft", "sunken", "mark"]),
            ("c4", &["sunken", "mark"]),
        ];
        // Non-text contrast: the borders of controls, and the colours of charts.
        let shapes = [
            ("line", &["ground", "surface", "sunken"][..]),
            ("c2", &["surface"]),
            ("c3", &["surface"]),
            ("c4", &["surface"]),
            ("c5", &["surface"]),
        ];
        for (least, pairs) in [(4.5, &texts[..]), (3.0, &shapes[..])] {
            for (colour, grounds) in pairs {
                for ground in *grounds {
                    for (one, other) in colours[colour].into_iter().zip(colours[ground]) {
                        let found = contrast(one, other);
                        assert!(found >= least, "{colour} on {ground}: {found:.2} < {least}");
                    }
                }
            }
        }
    }

    #[test]
    fn modules_make_html_in_one_place() {
        let script = text(APP_JS);
        assert_eq!(script.matches("createPolicy(").count(), 1);
        for absent in ["innerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"] {
            assert!(!script.contains(absent), "{absent}");
        }
    }
}
