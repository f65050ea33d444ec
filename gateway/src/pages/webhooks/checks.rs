//! Checks on the HTML of the webhook forms.

use crate::pages::checks::{cookie, faults, send};
use crate::testing::bench;
use crate::testing::webhooks::{DISABLED, SECRET, WEBHOOK};

#[tokio::test]
async fn forms_about_a_webhook_are_answered_with_sound_pages() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let own = format!("/w/{{w}}/webhooks/{WEBHOOK}");
    let later = "number=9000000000000000";
    for (path, body, status, told) in [
        ("/w/{w}/webhooks/new".to_owned(), "name=&url=x", 400, "Put this right"),
        ("/w/{w}/webhooks/new".to_owned(), "name=a&url=https://example.com&kinds=file", 200, SECRET),
        (format!("{own}/change"), "name=&url=x", 400, "Put this right"),
        (format!("{own}/change"), "name=a&url=https://example.com", 303, ""),
        (format!("{own}/test"), "", 200, "Not arrived"),
        (format!("{own}/rotate"), later, 200, SECRET),
        (format!("{own}/rotate"), "number=1", 200, "Not done again"),
        (format!("{own}/replay"), "", 303, ""),
        (format!("{own}/replay"), "delivery=x", 404, ""),
        (format!("{own}/disable"), "", 303, ""),
        (format!("/w/{{w}}/webhooks/{DISABLED}/enable"), "", 303, ""),
        (format!("{own}/delete"), "", 303, ""),
    ] {
        let page = send(&bench, &path, body, &cookie).await;
        assert_eq!(page.status, status, "{path}: {}", page.text);
        assert!(page.text.contains(told), "{path}: {told}: {}", page.text);
        if status != 303 {
            assert_eq!(faults(&page.text), Vec::<String>::new(), "{path}: {}", page.text);
        }
        assert_eq!(page.text.contains(SECRET), told == SECRET, "{path}: {}", page.text);
    }
}
