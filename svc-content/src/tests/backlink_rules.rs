//! Backlinks: the records that refer to a file.

use serde_json::json;

use super::tables::Table;
use super::*;
use crate::model::Page;
use crate::records::{Backlink, Records};

pub(super) async fn links(bench: &Bench, caller: &Caller, file: &File) -> Result<Page<Backlink>, Error> {
    Records::new(bench.context.clone()).backlinks(caller, &file.id.to_string(), first_page()).await
}

#[tokio::test]
async fn backlinks_come_in_pages() {
    for bench in benches().await {
        let folder = bench.folder("f", None).await;
        let file = bench.file("a.md", Some(folder.id)).await;
        let inside = Table::new(&bench, Some(folder.id)).await;
        let outside = Table::new(&bench, None).await;
        for number in 0..3 {
            inside.make(json!({"Name": format!("in {number}"), "File": file.id})).await;
            outside.make(json!({"Name": format!("out {number}"), "File": file.id})).await;
        }
        let all = links(&bench, &bench.caller, &file).await.unwrap();
        let titles: Vec<&str> = all.items.iter().map(|link| link.record_title.as_str()).collect();
        assert_eq!(titles, ["in 0", "out 0", "in 1", "out 1", "in 2", "out 2"]);
        assert_eq!((all.total, all.next.as_str()), (6, ""));

        for (caller, expected) in [(&bench.caller, 6), (&bench.scoped(&[folder.id]), 3)] {
            let (mut token, mut seen) = (String::new(), Vec::new());
            loop {
                let ask = PageRequest::new(PAGES, 2, &token).unwrap();
                let page = inside.records.backlinks(caller, &file.id.to_string(), ask).await.unwrap();
                assert_eq!(page.total, expected, "{}", bench.engine());
                seen.extend(page.items);
                token = page.next;
                if token.is_empty() {
                    break;
                }
            }
            let found = links(&bench, caller, &file).await.unwrap().items;
            assert_eq!(seen, found, "{}", bench.engine());
            assert_eq!(found.len() as u64, expected);
        }
        let odd = PageRequest::new(PAGES, 2, "eyJuIjoieCIsImkiOiIiLCJ0IjoxfQ").unwrap();
        let refused = inside.records.backlinks(&bench.caller, &file.id.to_string(), odd).await;
        assert_eq!(violations(refused), pairs(&[("pageToken", "invalid")]));
    }
}
