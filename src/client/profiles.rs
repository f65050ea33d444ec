//! Profiles of `cairn login`: addresses with credentials, by name; and `cairn profiles`.

pub(super) mod choice;
pub(super) mod model;
pub(super) mod renewal;
pub(super) mod store;

use clap::Args;
use serde_json::{Value, json};

use self::model::{Credential, Profile, Profiles};
use self::store::Store;
use super::Ended;
use super::output::{print, print_json, visible};

pub(super) const EXAMPLES: &str = "Examples:
  cairn profiles
  cairn profiles --use work                          commands without --profile go there from now on
  cairn profiles --json | jq -r '.profiles[].url'";

#[derive(Debug, Args)]
pub(crate) struct ProfilesOptions {
    /// Make this profile the default one.
    #[arg(long = "use", value_name = "NAME")]
    chosen: Option<String>,
    /// Print them as JSON, without what opens them.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(options: ProfilesOptions) -> anyhow::Result<()> {
    let store = Store::open()?;
    let profiles = match options.chosen {
        Some(name) => make_default(&store, name).await?,
        None => store.read()?,
    };
    if options.json {
        return print_json(&as_json(&profiles));
    }
    match as_text(&profiles) {
        text if text.is_empty() => print("There is no profile: make one with `cairn login --url URL`."),
        text => print(&text),
    }
}

async fn make_default(store: &Store, name: String) -> anyhow::Result<Profiles> {
    let locked = store.lock().await?;
    let mut profiles = locked.read()?;
    if !profiles.profiles.contains_key(&name) {
        return Err(Ended::failed(profiles.no_such(&name)).into());
    }
    profiles.default = Some(name);
    locked.write(&profiles)?;
    Ok(profiles)
}

fn as_json(profiles: &Profiles) -> Value {
    let one = |(name, profile): (&String, &Profile)| {
        json!({
            "name": name,
            "url": profile.url,
            "workspaceId": profile.workspace_id,
            "workspaceName": profile.workspace_name,
            "kind": kind(profile),
            "isDefault": profiles.default.as_ref() == Some(name),
        })
    };
    json!({"profiles": profiles.profiles.iter().map(one).collect::<Vec<_>>()})
}

fn as_text(profiles: &Profiles) -> String {
    let line = |(name, profile): (&String, &Profile)| {
        let mark = if profiles.default.as_ref() == Some(name) { '*' } else { ' ' };
        visible(&format!("{mark} {name}  {}  {}  ({})", profile.url, profile.workspace_name, kind(profile)))
    };
    profiles.profiles.iter().map(line).collect::<Vec<_>>().join("\n")
}

const fn kind(profile: &Profile) -> &'static str {
    match profile.credential {
        Credential::Token { .. } => "token",
        Credential::Grant(_) => "login",
    }
}

#[cfg(test)]
mod tests {
    use super::model::tests::{granted, with_token};
    use super::*;

    #[test]
    fn profiles_are_listed_without_what_opens_them() {
        let mut profiles = Profiles { default: Some("b".to_owned()), ..Profiles::default() };
        profiles.profiles.insert("a".to_owned(), with_token("https://a.example", "cairn_secret"));
        profiles.profiles.insert("b".to_owned(), granted("https://b.example", 0));
        let text = as_text(&profiles);
        assert_eq!(text, "  a  https://a.example  Work  (token)\n* b  https://b.example  Work  (login)");
        let json = as_json(&profiles);
        assert_eq!(json["profiles"][1]["isDefault"], true);
        for shown in [text, json.to_string(), format!("{profiles:?}")] {
            assert!(!shown.contains("secret"), "{shown}");
        }
    }
}
