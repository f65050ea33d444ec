//! Documents whose ids are URLs (outside.md: "Documents", "Scripts").

use crate::support::browse::output;
use crate::support::http::{each, text};
use crate::support::prelude::*;
use crate::support::site::Site;
use crate::support::sources::{connect, counters};

scenarios![a_page_is_asked_for_by_its_address];

/// Percent-encodes a text as one path segment.
fn encoded(part: &str) -> String {
    let byte = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    part.bytes().map(byte).collect()
}

async fn a_page_is_asked_for_by_its_address(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let site = Site::start();
    let pages = [
        ("/guide/otters", "Otters", "They float."),
        ("/a%20b/50%25%20more.html?id=7&lang=de", "Half more", "A tenrec rolls up."),
        ("/caf%C3%A9/%2Fslash", "Slash", "A quoll has spots."),
    ]
    .map(|(place, title, said)| (site.write(place, title, said), title, said));
    let source = connect(&workspace, site.draft("Manual")).await;
    let run = source.run().await;
    assert_eq!((text(&run, "status"), counters(&run)[3]), ("completed".into(), 3), "{run}");
    let listed = source.documents().await;
    for (address, title, said) in &pages {
        assert!(each(&listed, "externalId").contains(&address.as_str()), "{address}: {listed}");
        let path = format!("/api/v1/sources/{}/documents/{}", source.id, encoded(address));
        let fetched = workspace.token.get(&path).await.expect(200).json();
        assert_eq!((text(&fetched, "title"), text(&fetched, "origin")), ((*title).into(), "indexed".into()));
        assert!(text(&fetched, "content").contains(said), "{fetched}");
        assert_eq!(text(&fetched["citation"], "url"), *address);
        assert_eq!(text(&fetched["citation"], "externalId"), *address);
        let cat = output(&workspace.token, &format!("cat '/sources/Manual/{title}.md'")).await;
        assert!(cat.contains(said), "{cat}");
    }
    let none = format!("/api/v1/sources/{}/documents/{}", source.id, encoded("http://127.0.0.1/none"));
    workspace.token.get(&none).await.expect_error(404, "NOT_FOUND");
}
