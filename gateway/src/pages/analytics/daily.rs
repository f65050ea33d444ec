//! The daily figures of a workspace: as charts, as a table, and as CSV.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::milliseconds;
use crate::answers::{Day, Figures};
use crate::pages::parts::{self as part, Series};
use crate::pages::words;

/// Charts of retrievals and latency per day.
pub(super) fn charts(days: &[Day]) -> Markup {
    let (Some(first), Some(last)) = (days.first(), days.last()) else { return html! {} };
    let ends = (first.date.as_str(), last.date.as_str());
    let of = |name, value: fn(&Figures) -> u64| Series {
        name,
        values: days.iter().map(|day| value(&day.figures)).collect(),
    };
    let volume = [
        of("With a result", with_result),
        of("Without a result", |figures| figures.no_result_count),
        of("Failed", |figures| figures.failed_count),
    ];
    let times = [
        of("Half of them within", |day| micros(day, false)),
        of("95 of 100 within", |day| micros(day, true)),
    ];
    let sum: u64 = days.iter().map(|day| day.figures.query_volume).sum();
    let told = format!("{} from {} to {}", words::count(sum, "retrieval", "retrievals"), ends.0, ends.1);
    let slowest = times.iter().flat_map(|one| &one.values).copied().max().unwrap_or_default();
    let time = format!("How long retrievals took each day: at most {}", of_micros(slowest));
    html! {
        h2 { "Each day" }
        (part::columns(&told, &volume, ends))
        h3 { "How long they took" }
        (part::lines(&time, &times, ends, of_micros))
        details {
            summary { "The numbers" }
            (table(days))
        }
    }
}

fn with_result(figures: &Figures) -> u64 {
    figures.query_volume.saturating_sub(figures.no_result_count).saturating_sub(figures.failed_count)
}

/// Whole microseconds; 0 on a day without retrievals. The cast saturates.
fn micros(figures: &Figures, is_p95: bool) -> u64 {
    let time = figures.latency.as_ref().map(|latency| if is_p95 { latency.p95_ms } else { latency.p50_ms });
    (time.unwrap_or_default() * 1e3).round() as u64
}

fn of_micros(micros: u64) -> String {
    format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100)
}

fn table(days: &[Day]) -> Markup {
    let rows = html! {
        @for day in days {
            @let latency = day.figures.latency.as_ref();
            tr {
                th scope="row" { (day.date) }
                td.number { (words::grouped(day.figures.query_volume)) }
                td.number { (words::grouped(day.figures.no_result_count)) }
                td.number { (words::grouped(day.figures.failed_count)) }
                td.number { (milliseconds(latency.map(|latency| latency.p50_ms))) }
                td.number { (milliseconds(latency.map(|latency| latency.p95_ms))) }
            }
        }
    };
    let columns = ["Day", "Retrievals", "Without a result", "Failed", "Half within", "95 of 100 within"];
    part::table("Each day", &columns, &rows)
}

/// A header and a line per day.
pub(super) fn csv(days: &[Day]) -> String {
    let mut text = "date,retrievals,without_result,failed,cache_hits,p50_ms,p95_ms\r\n".to_owned();
    for Day { date, figures } in days {
        let time = |time: Option<f64>| time.map(|time| format!("{time:.3}")).unwrap_or_default();
        let latency = figures.latency.as_ref();
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "{date},{},{},{},{},{},{}",
            figures.query_volume,
            figures.no_result_count,
            figures.failed_count,
            figures.cache_hit_count,
            time(latency.map(|latency| latency.p50_ms)),
            time(latency.map(|latency| latency.p95_ms)),
        );
        text.push_str("\r\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use cairn_proto::retrieval::v1 as proto;

    use super::*;

    fn days() -> Vec<Day> {
        let counts = proto::Retrievals { total: 5, failed: 1, empty: 2, cached: 3, ..Default::default() };
        let latency = proto::Latency { p50_micros: 1_500, p95_micros: 20_000 };
        let busy = proto::RetrievalDay {
            date: "2026-11-22".to_owned(),
            retrievals: Some(counts),
            latency: Some(latency),
        };
        let quiet = proto::RetrievalDay { date: "2026-11-23".to_owned(), ..Default::default() };
        vec![busy.into(), quiet.into()]
    }

    #[test]
    fn a_chart_has_its_numbers_as_a_table() {
        let html = charts(&days()).into_string();
        for part in [
            "5 retrievals from 2026-11-22 to 2026-11-23",
            "at most 20.0 ms",
            "<td class=\"number\">1.5 ms</td>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert_eq!(html.matches("<rect").count(), 3, "two with a result, two without, one failed: {html}");
        assert!(charts(&[]).into_string().is_empty());
    }

    #[test]
    fn the_days_are_lines_of_csv() {
        let text = csv(&days());
        let lines: Vec<&str> = text.split("\r\n").collect();
        assert_eq!(lines[1..], ["2026-11-22,5,2,1,3,1.500,20.000", "2026-11-23,0,0,0,0,,", ""]);
    }
}
