//! What the pages about tables that become records hold to.

use axum::body::Body;
use http::Request;

use crate::pages::checks::{cookie, faults, filled};
use crate::testing::{Answer, Bench, bench};

async fn send(bench: &Bench, cookie: &str, fields: &[(&str, &str)]) -> Answer {
    let mut body = String::new();
    for (name, value) in fields {
        body += &format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    }
    body += "--b--\r\n";
    let request = Request::post(filled("/databases/{d}/import"))
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
