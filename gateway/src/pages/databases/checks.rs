//! Checks on the pages that import tables.

use axum::body::Body;
use http::Request;

use crate::pages::checks::{cookie, faults, filled};
use crate::testing::{Answer, Bench, bench};

async fn send(bench: &Bench, cookie: &str, fields: &[(&str, &str)]) -> Answer {
    send_to(bench, "/databases/{d}/import", cookie, fields).await
}

async fn send_to(bench: &Bench, path: &str, cookie: &str, fields: &[(&str, &str)]) -> Answer {
    let mut body = String::new();
    for (name, value) in fields {
        body += &format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    }
    body += "--b--\r\n";
    let request = Request::post(filled(path))
        .header("cookie", cookie)
        .header("sec-fetch-site", "same-origin")
        .header("content-type", "multipart/form-data; boundary=b");
    bench.send_as_is(request.body(Body::from(body)).unwrap()).await
}

#[tokio::test]
async fn a_table_is_looked_at_before_it_is_taken() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let field = filled("{n}");
    let table = "a,b\n</textarea><script>alert(1)</script>,2";
    let looked = send(&bench, &cookie, &[("csv", table)]).await;
    assert_eq!((looked.status.as_u16(), faults(&looked.text)), (200, Vec::new()), "{}", looked.text);
    assert!(looked.text.contains("Import 1 record") && !looked.text.contains("<script>"), "{}", looked.text);
    assert!(looked.text.contains("a,b\n&lt;/textarea&gt;"), "{}", looked.text);
    assert!(looked.text.contains(&format!("value=\"{field}\" selected")), "{}", looked.text);
    let done =
        send(&bench, &cookie, &[("csv", table), ("column-0", &field), ("column-1", ""), ("then", "import")])
            .await;
    assert_eq!(done.status, 303, "{}", done.text);
    for then in ["check", "import"] {
        let wrong = send(&bench, &cookie, &[("csv", "a\nwrong"), ("then", then)]).await;
        let status = if then == "import" { 400 } else { 200 };
        assert_eq!((wrong.status.as_u16(), faults(&wrong.text)), (status, Vec::new()), "{}", wrong.text);
        assert!(
            wrong.text.contains("Must be a number.") && !wrong.text.contains("Import 1 record"),
            "{}",
            wrong.text
        );
    }
    for fields in [&[][..], &[("csv", "x")], &[("csv", "a\nb"), ("column-0", "no id")]] {
        let refused = send(&bench, &cookie, fields).await;
        assert_eq!((refused.status.as_u16(), faults(&refused.text)), (400, Vec::new()), "{}", refused.text);
    }
}

#[tokio::test]
async fn a_database_of_a_table_is_shown_before_it_is_made() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let path = "/w/{w}/databases/import";
    let table = "a,b\n</textarea><script>alert(1)</script>,2";
    let looked = send_to(&bench, path, &cookie, &[("csv", table)]).await;
    assert_eq!((looked.status.as_u16(), faults(&looked.text)), (200, Vec::new()), "{}", looked.text);
    for part in ["Create database with 1 record", "a,b\n&lt;/textarea&gt;", "value=\"number\" selected"] {
        assert!(looked.text.contains(part), "{part}: {}", looked.text);
    }
    assert!(!looked.text.contains("<script>alert"), "{}", looked.text);
    let typed = [("csv", table), ("name", "<b>x"), ("description", "kept text"), ("primary", "1")];
    let whole = |more: &[(&'static str, &'static str)]| [&typed[..], more, &[("then", "make")]].concat();
    let made = send_to(&bench, path, &cookie, &whole(&[("type-0", "text"), ("type-1", "date")])).await;
    assert_eq!(made.status, 303, "{}", made.text);
    assert_eq!(made.headers["location"], filled("/databases/{d}").as_str());
    // The input is kept, whatever is refused.
    for (more, said) in [
        (&[("type-1", "date"), ("name-1", "wrong")], "#f-name-1"),
        (&[("type-0", "text"), ("type-1", "no type")], "#f-type-1"),
        (&[("type-1", "date"), ("name", "full")], "The plan has no room"),
    ] {
        let refused = send_to(&bench, path, &cookie, &whole(more)).await;
        assert_eq!((refused.status.as_u16(), faults(&refused.text)), (400, Vec::new()), "{}", refused.text);
        for part in [said, "value=\"kept text\"", "<option value=\"1\" selected"] {
            assert!(refused.text.contains(part), "{part}: {}", refused.text);
        }
    }
    let refused = send_to(&bench, path, &cookie, &[("csv", "x")]).await;
    assert_eq!((refused.status.as_u16(), faults(&refused.text)), (400, Vec::new()), "{}", refused.text);
    assert!(refused.text.contains("type=\"file\""), "{}", refused.text);
}
