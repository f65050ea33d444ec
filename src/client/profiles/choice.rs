//! Chooses the address and the credential of a command. A token is only sent to the address that it was issued for.

use reqwest::Url;

use super::model::{Credential, Grant, Profile, Profiles};
use crate::client::Ended;

/// The default address of `cairn up`.
const DEFAULT_URL: &str = "http://127.0.0.1:8700";

/// Settings from the command line and the environment.
pub(crate) struct Overrides {
    pub(crate) url: Option<String>,
    pub(crate) profile: Option<String>,
    pub(crate) token: Option<String>,
}

/// An address and a credential.
pub(crate) struct Target {
    pub(crate) url: String,
    pub(crate) access: Access,
}

/// The credential.
pub(crate) enum Access {
    Token(String),
    /// OAuth tokens, and the profile that stores them.
    Granted {
        profile: String,
        grant: Grant,
    },
}

/// Precedence: an explicit token, the named profile, the profile of the address, the default profile.
pub(crate) fn choose(given: &Overrides, profiles: &Profiles) -> Result<Target, Ended> {
    let named = given.profile.as_deref().map(|name| named(profiles, name)).transpose()?;
    if let Some(token) = &given.token {
        let kept = named.map(|(_, profile)| profile.url.as_str());
        let url = plain(given.url.as_deref().or(kept).unwrap_or(DEFAULT_URL));
        return Ok(Target { url, access: Access::Token(token.clone()) });
    }
    let (name, profile) = match (named, &given.url) {
        (Some((name, profile)), Some(url)) if !is_same(&profile.url, url) => {
            let message = format!("the profile {name} is for {}, not for {url}: leave --url out", profile.url);
            return Err(Ended::failed(message));
        }
        (Some(found), _) => found,
        (None, Some(url)) => of_address(profiles, url).ok_or_else(|| {
            Ended::not_let_in(format!(
                "there is no token for {url}: run `cairn login --url {url}`, or give one with --token (CAIRN_TOKEN)"
            ))
        })?,
        (None, None) => default(profiles).ok_or_else(|| {
            Ended::not_let_in(
                "there is no token: run `cairn login --url URL`, or give one with --token (CAIRN_TOKEN)".to_owned(),
            )
        })?,
    };
    let access = match &profile.credential {
        Credential::Token { token } => Access::Token(token.clone()),
        Credential::Grant(grant) => Access::Granted { profile: name.to_owned(), grant: grant.clone() },
    };
    Ok(Target { url: profile.url.clone(), access })
}

/// The address for a command that needs no token.
pub(crate) fn address(name: Option<&str>, profiles: &Profiles) -> Result<String, Ended> {
    match name {
        Some(name) => named(profiles, name).map(|(_, profile)| profile.url.clone()),
        None => {
            Ok(default(profiles).map_or_else(|| DEFAULT_URL.to_owned(), |(_, profile)| profile.url.clone()))
        }
    }
}

/// The profile of an address: the default one if it has that address, else the first by name.
pub(crate) fn of_address<'a>(profiles: &'a Profiles, url: &str) -> Option<(&'a str, &'a Profile)> {
    let is_there = |profile: &Profile| is_same(&profile.url, url);
    let all = profiles.profiles.iter().map(|(name, profile)| (name.as_str(), profile));
    default(profiles)
        .filter(|(_, profile)| is_there(profile))
        .or_else(|| all.into_iter().find(|(_, profile)| is_there(profile)))
}

fn named<'a>(profiles: &'a Profiles, name: &str) -> Result<(&'a str, &'a Profile), Ended> {
    let found = profiles.profiles.get_key_value(name).map(|(name, profile)| (name.as_str(), profile));
    found.ok_or_else(|| Ended::not_let_in(profiles.no_such(name)))
}

fn default(profiles: &Profiles) -> Option<(&str, &Profile)> {
    let (name, profile) = profiles.profiles.get_key_value(profiles.default.as_ref()?)?;
    Some((name, profile))
}

/// Whether two addresses are equal after normalization.
fn is_same(one: &str, other: &str) -> bool {
    match (Url::parse(one), Url::parse(other)) {
        (Ok(one), Ok(other)) => plain(one.as_str()) == plain(other.as_str()),
        _ => plain(one) == plain(other),
    }
}

/// A normalized address.
pub(crate) fn plain(url: &str) -> String {
    url.trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::{granted, with_token};
    use super::*;

    fn profiles() -> Profiles {
        let mut profiles = Profiles { default: Some("work".to_owned()), ..Profiles::default() };
        profiles.profiles.insert("home".to_owned(), with_token("https://home.example", "cairn_home"));
        profiles.profiles.insert("home2".to_owned(), with_token("https://home.example", "cairn_home2"));
        profiles.profiles.insert("work".to_owned(), granted("https://work.example", 0));
        profiles
    }

    /// The address and the credential, or the exit status.
    fn chosen(url: &str, profile: &str, token: &str) -> Result<(String, String), u8> {
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let given = Overrides { url: given(url), profile: given(profile), token: given(token) };
        let target = choose(&given, &profiles()).map_err(|ended| ended.status)?;
        let opens = match target.access {
            Access::Token(token) => token,
            Access::Granted { profile, .. } => format!("grant of {profile}"),
        };
        Ok((target.url, opens))
    }

    fn found(url: &str, opens: &str) -> Result<(String, String), u8> {
        Ok((url.to_owned(), opens.to_owned()))
    }

    #[test]
    fn a_given_token_wins_and_goes_to_the_given_address() {
        assert_eq!(chosen("", "", "t"), found(DEFAULT_URL, "t"));
        assert_eq!(chosen("https://a.example/", "", "t"), found("https://a.example", "t"));
        assert_eq!(chosen("", "home", "t"), found("https://home.example", "t"));
        assert_eq!(chosen("https://a.example", "home", "t"), found("https://a.example", "t"));
    }

    #[test]
    fn without_a_token_a_profile_is_found() {
        assert_eq!(chosen("", "", ""), found("https://work.example", "grant of work"));
        assert_eq!(chosen("", "home", ""), found("https://home.example", "cairn_home"));
        assert_eq!(chosen("https://HOME.example:443/", "", ""), found("https://home.example", "cairn_home"));
        assert_eq!(chosen("https://home.example", "home2", ""), found("https://home.example", "cairn_home2"));
    }

    #[test]
    fn what_is_kept_for_one_address_goes_to_no_other() {
        assert_eq!(chosen("https://evil.example", "", ""), Err(4));
        assert_eq!(chosen("https://evil.example", "home", ""), Err(1));
        assert_eq!(chosen("http://home.example", "", ""), Err(4));
        assert_eq!(chosen("https://home.example.evil", "", ""), Err(4));
        assert_eq!(chosen("", "nobody", ""), Err(4));
        let given = Overrides { url: None, profile: None, token: None };
        assert_eq!(choose(&given, &Profiles::default()).map(drop).unwrap_err().status, 4);
    }

    #[test]
    fn what_needs_no_token_goes_to_the_default_profile_too() {
        assert_eq!(address(None, &profiles()).unwrap(), "https://work.example");
        assert_eq!(address(Some("home"), &profiles()).unwrap(), "https://home.example");
        assert_eq!(address(None, &Profiles::default()).unwrap(), DEFAULT_URL);
    }
}
