//! Charts: our own SVG, coloured by classes, each with a text alternative. The page shows the same numbers in a
//! table beside it.

use maud::{Markup, html};

use crate::pages::words;

/// The drawing's units: the width of a column, and the height of the largest value.
const STEP: usize = 10;
const HEIGHT: u64 = 100;

/// A series of a chart, with a value for each position.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) name: &'static str,
    pub(crate) values: Vec<u64>,
}

/// A stacked column chart. `ends` are the labels of the first and the last column.
pub(crate) fn columns(sentence: &str, series: &[Series], ends: (&str, &str)) -> Markup {
    let count = places(series);
    let sum = |at: usize| {
        let values = series.iter().filter_map(|one| one.values.get(at));
        values.fold(0_u64, |sum, value| sum.saturating_add(*value))
    };
    let most = (0..count).map(sum).max().unwrap_or_default();
    let drawing = html! {
        @for at in 0..count {
            @for (number, y, height) in stacked(series, at, most) {
                rect class={ "c" (number) } x=(at * STEP + 1) y=(y) width=(STEP - 2) height=(height) {}
            }
        }
    };
    framed(sentence, series, ends, &words::grouped(most), count, &drawing)
}

/// The visible segments of a column: the series' index, and the rectangle's top and height.
fn stacked(series: &[Series], at: usize, most: u64) -> Vec<(usize, u64, u64)> {
    let (mut below, mut parts) = (0_u64, Vec::new());
    for (index, one) in series.iter().enumerate() {
        let value = one.values.get(at).copied().unwrap_or_default();
        let (from, to) = (height(below, most), height(below.saturating_add(value), most));
        below = below.saturating_add(value);
        // Non-zero values are always visible.
        let tall = to.saturating_sub(from).max(u64::from(value > 0));
        if tall > 0 {
            parts.push((index + 1, HEIGHT.saturating_sub(from + tall), tall));
        }
    }
    parts
}

/// A line chart, with a line per series.
pub(crate) fn lines(
    sentence: &str,
    series: &[Series],
    ends: (&str, &str),
    written: impl Fn(u64) -> String,
) -> Markup {
    let count = places(series);
    let most = series.iter().flat_map(|one| &one.values).copied().max().unwrap_or_default();
    let drawing = html! {
        @for (index, one) in series.iter().enumerate() {
            polyline class={ "line c" (index + 1) } points=(points(&one.values, most)) {}
        }
    };
    framed(sentence, series, ends, &written(most), count, &drawing)
}

fn points(values: &[u64], most: u64) -> String {
    let point =
        |(at, value): (usize, &u64)| format!("{},{}", at * STEP + STEP / 2, HEIGHT - height(*value, most));
    values.iter().enumerate().map(point).collect::<Vec<_>>().join(" ")
}

/// The height of a value, scaled to the largest.
fn height(value: u64, most: u64) -> u64 {
    let scaled = u128::from(value.min(most)) * u128::from(HEIGHT) / u128::from(most.max(1));
    u64::try_from(scaled).unwrap_or(HEIGHT)
}

fn places(series: &[Series]) -> usize {
    series.iter().map(|one| one.values.len()).max().unwrap_or_default()
}

/// The drawing with axis labels and legend.
fn framed(
    sentence: &str,
    series: &[Series],
    (first, last): (&str, &str),
    top: &str,
    count: usize,
    drawing: &Markup,
) -> Markup {
    let width = count.max(1) * STEP;
    html! {
        figure.chart {
            figcaption {
                @for (index, one) in series.iter().enumerate() {
                    span.key { span class={ "swatch c" (index + 1) } {} (one.name) }
                }
                span.quiet { "Highest: " (top) }
            }
            svg role="img" aria-label=(sentence) viewBox={ "0 0 " (width) " " (HEIGHT) } preserveAspectRatio="none" {
                (drawing)
            }
            div.ends { span { (first) } span { (last) } }
        }
    }
}

/// A bar chart of shares, with their numbers.
pub(crate) fn shares<'a>(name: &str, parts: impl IntoIterator<Item = (&'a str, u64)>) -> Markup {
    let parts: Vec<(&str, u64)> = parts.into_iter().collect();
    let most = parts.iter().map(|(_, value)| *value).max().unwrap_or_default();
    html! {
        ul.shares aria-label=(name) {
            @for (label, value) in &parts {
                li {
                    bdi { (label) }
                    svg.bar role="img" aria-label={ (label) ": " (words::grouped(*value)) } viewBox="0 0 100 6" preserveAspectRatio="none" {
                        rect.ground x="0" y="0" width="100" height="6" {}
                        rect.value x="0" y="0" width=(height(*value, most)) height="6" {}
                    }
                    span.number { (words::grouped(*value)) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn series(values: &[&[u64]]) -> Vec<Series> {
        values.iter().map(|values| Series { name: "x", values: values.to_vec() }).collect()
    }

    #[test]
    fn columns_stand_on_each_other() {
        let both = series(&[&[3, 0], &[1, 2]]);
        assert_eq!(stacked(&both, 0, 4), [(1, 25, 75), (2, 0, 25)]);
        assert_eq!(stacked(&both, 1, 4), [(2, 50, 50)]);
        let html = columns("Two days", &both, ("<a>", "b")).into_string();
        assert!(
            html.contains("viewBox=\"0 0 20 100\"") && html.contains("aria-label=\"Two days\""),
            "{html}"
        );
        assert_eq!(html.matches("<rect").count(), 3);
        assert!(html.contains("Highest: 4") && html.contains("&lt;a&gt;"), "{html}");
    }

    #[test]
    fn a_line_goes_from_place_to_place() {
        assert_eq!(points(&[0, 5, 10], 10), "5,100 15,50 25,0");
        let html = lines("x", &series(&[&[]]), ("", ""), words::grouped).into_string();
        assert!(html.contains("points=\"\"") && html.contains("viewBox=\"0 0 10 100\""), "{html}");
    }

    #[test]
    fn shares_are_told_with_their_numbers() {
        let html = shares("Channels", [("<mcp>", 10), ("rest", 5)]).into_string();
        assert!(html.contains("aria-label=\"&lt;mcp&gt;: 10\"") && html.contains("width=\"50\""), "{html}");
    }

    proptest! {
        #[test]
        fn whatever_the_values_nothing_leaves_the_drawing(values in prop::collection::vec(any::<u64>(), 1..4)) {
            let all: Vec<Series> = values.iter().map(|value| Series { name: "x", values: vec![*value] }).collect();
            let most = values.iter().fold(0_u64, |sum, value| sum.saturating_add(*value));
            for (_, y, tall) in stacked(&all, 0, most) {
                prop_assert!(y <= HEIGHT && tall <= HEIGHT, "{} {}", y, tall);
            }
        }
    }
}
