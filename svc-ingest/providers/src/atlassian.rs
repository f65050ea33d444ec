//! Settings shared by Confluence and Jira: a site, and an API token of an account.

use http::header;
use url::Url;

use crate::connect::Draft;
use crate::rest::Api;

/// The keys that restrict a connection to some spaces or projects.
pub(crate) struct Keys {
    /// The setting that lists them.
    pub(crate) setting: &'static str,
    pub(crate) is_one: fn(&str) -> bool,
    /// The format of a key, for messages.
    pub(crate) rule: &'static str,
}

/// Parses the settings `site` and the keys, and the credentials `email` and `token`.
pub(crate) fn connect(draft: &mut Draft<'_>, keys: &Keys) -> Option<(Api, Vec<String>)> {
    let settings = &mut draft.settings;
    let site = settings.required_address(
        "site",
        "give the site, such as https://acme.atlassian.net",
        draft.reach.guard(),
    );
    let chosen = settings.texts(keys.setting);
    for (index, _) in chosen.iter().enumerate().filter(|(_, key)| !(keys.is_one)(key)) {
        settings.refuse(&format!("{}[{index}]", keys.setting), "invalid_value", keys.rule);
    }
    let email =
        draft.credentials.required_text("email", "give the address of the account that made the token");
    let token = draft.credentials.required_secret("token", "give an API token of id.atlassian.com");
    let (email, token) = (email?, token?);
    let Ok(basic) = token.basic(&email) else {
        draft.credentials.refuse("token", "invalid_value", "cannot stand in an HTTP header");
        return None;
    };
    Some((Api::new(without_wiki(site?)).with(header::AUTHORIZATION, basic), chosen))
}

/// Strips a trailing `/wiki`, which people copy from Confluence's URLs.
pub(crate) fn without_wiki(mut site: Url) -> Url {
    let path = site.path().trim_end_matches('/');
    if let Some(path) = path.strip_suffix("/wiki").map(str::to_owned) {
        site.set_path(&path);
    }
    site
}
