//! Usage by dimension.

use maud::{Markup, html};

use crate::answers::{Amounts, BillingDimensions, PrincipalShare, Share};
use crate::pages::parts as part;
use crate::pages::words;

const COLUMNS: [&str; 6] = ["", "Retrievals", "Without a result", "Failed", "Results", "Content"];

pub(super) fn show(used: &BillingDimensions) -> Markup {
    let dimensions = [
        ("By operation", &used.operations),
        ("By channel", &used.channels),
        ("By strategy", &used.strategies),
        ("By plan", &used.plans),
    ];
    html! {
        h2 { "What was used" }
        p {
            (words::count(used.total.result_count, "result", "results")) " with "
            (words::bytes(used.total.content_bytes)) " of content, and "
            (words::count(used.total.provider_operations, "operation", "operations")) " of providers."
        }
        @for (name, shares) in dimensions { @if !shares.is_empty() { (dimension(name, shares)) } }
        @if !used.principals.is_empty() { (principals(&used.principals)) }
    }
}

fn dimension(name: &str, shares: &[Share]) -> Markup {
    let rows = html! {
        @for share in shares { tr { th scope="row" { bdi { (share.value) } } (amounts(&share.amounts)) } }
    };
    html! {
        h3 { (name) }
        (part::shares(name, shares.iter().map(|share| (share.value.as_str(), share.amounts.retrieval_count))))
        details {
            summary { "The numbers" }
            (part::table(name, &COLUMNS, &rows))
        }
    }
}

/// Usage by principal. A token is named by its id: its name may have been deleted with it.
fn principals(principals: &[PrincipalShare]) -> Markup {
    let rows = html! {
        @for one in principals {
            tr { th scope="row" { (words::capital(&one.kind)) " " code { (one.id) } } (amounts(&one.amounts)) }
        }
    };
    html! {
        h3 { "By who asked" }
        (part::table("By who asked", &COLUMNS, &rows))
    }
}

fn amounts(amounts: &Amounts) -> Markup {
    html! {
        td.number { (words::grouped(amounts.retrieval_count)) }
        td.number { (words::grouped(amounts.no_result_count)) }
        td.number { (words::grouped(amounts.failed_count)) }
        td.number { (words::grouped(amounts.result_count)) }
        td.number { (words::bytes(amounts.content_bytes)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_is_told_by_each_dimension() {
        let amounts = || Amounts {
            retrieval_count: 1_204,
            failed_count: 0,
            no_result_count: 3,
            result_count: 9,
            content_bytes: 1_000,
            provider_operations: 1,
        };
        let used = BillingDimensions {
            total: amounts(),
            operations: Vec::new(),
            channels: vec![Share { value: "<mcp>".to_owned(), amounts: amounts(), latency: None }],
            strategies: Vec::new(),
            plans: Vec::new(),
            principals: vec![PrincipalShare {
                kind: "token".to_owned(),
                id: "t1".to_owned(),
                amounts: amounts(),
            }],
        };
        let html = show(&used).into_string();
        for part in [
            "9 results with 1 kB of content, and 1 operation",
            "&lt;mcp&gt;",
            "1\u{202f}204",
            "Token <code>t1</code>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("By strategy"), "{html}");
    }
}
