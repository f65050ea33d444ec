//! The list of providers.

use std::path::PathBuf;

use cairn_chassis::outbound::Guard;
use cairn_chassis::status::Violation;
use cairn_chassis::wording;
use cairn_proto::domain::SourceMode;
use serde_json::Value;

use crate::settings::Fields;
use crate::{
    Provider, ProviderKind, confluence, drive, folder, git, github, jira, linear, mcp, notion, s3, slack, web,
};

/// What connections of this process may reach.
#[derive(Debug, Clone)]
pub struct Reach {
    guard: Guard,
    roots: Vec<PathBuf>,
}

impl Reach {
    /// The addresses that the guard allows, and the folders below the operator's roots. Missing roots are ignored.
    pub fn new(guard: Guard, roots: &[PathBuf]) -> Self {
        let roots = roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
        Self { guard, roots }
    }

    /// The guard of outbound addresses.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// The operator's roots, with symbolic links resolved.
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }
}

/// The inputs from which a provider is created.
pub(crate) struct Draft<'a> {
    pub(crate) settings: Fields<'a>,
    pub(crate) credentials: Fields<'a>,
    pub(crate) reach: &'a Reach,
    /// The selected mode, or the default.
    pub(crate) mode: SourceMode,
}

/// A provider that can be connected.
struct Registration {
    kind: ProviderKind,
    /// The default first.
    modes: &'static [SourceMode],
    /// Reads every field of the draft, so that all violations are reported; `None` after a violation.
    make: fn(&mut Draft<'_>) -> Option<Box<dyn Provider>>,
}

/// The registry: a new provider adds its line here.
const PROVIDERS: &[Registration] = &[
    Registration { kind: ProviderKind::Folder, modes: folder::MODES, make: folder::make },
    Registration { kind: ProviderKind::Git, modes: git::MODES, make: git::make },
    Registration { kind: ProviderKind::Web, modes: web::MODES, make: web::make },
    Registration { kind: ProviderKind::S3, modes: s3::MODES, make: s3::make },
    Registration { kind: ProviderKind::Mcp, modes: mcp::MODES, make: mcp::make },
    Registration { kind: ProviderKind::Github, modes: github::MODES, make: github::make },
    Registration { kind: ProviderKind::Notion, modes: notion::MODES, make: notion::make },
    Registration { kind: ProviderKind::GoogleDrive, modes: drive::MODES, make: drive::make },
    Registration { kind: ProviderKind::Linear, modes: linear::MODES, make: linear::make },
    Registration { kind: ProviderKind::Jira, modes: jira::MODES, make: jira::make },
    Registration { kind: ProviderKind::Confluence, modes: confluence::MODES, make: confluence::make },
    Registration { kind: ProviderKind::Slack, modes: slack::MODES, make: slack::make },
];

/// The modes of a provider, its default first; empty when it cannot be connected.
pub fn modes(kind: ProviderKind) -> &'static [SourceMode] {
    known(kind).map_or(&[], |known| known.modes)
}

/// Creates a provider, without a request.
///
/// # Errors
/// All violations, with paths such as `settings.url`, `credentials.token`, `mode` and `provider`.
pub fn connect(
    provider: ProviderKind,
    settings: &Value,
    credentials: Option<&Value>,
    mode: Option<SourceMode>,
    reach: &Reach,
) -> Result<Box<dyn Provider>, Vec<Violation>> {
    let Some(known) = known(provider) else {
        let names: Vec<&str> = PROVIDERS.iter().map(|known| known.kind.as_str()).collect();
        return Err(vec![Violation::new("provider", "invalid_value", wording::one_of(&names))]);
    };
    let mut draft = Draft {
        settings: Fields::new("settings", Some(settings)),
        credentials: Fields::new("credentials", credentials),
        reach,
        mode: mode.or(known.modes.first().copied()).unwrap_or_default(),
    };
    let made = (known.make)(&mut draft);
    let mut violations = draft.settings.finish();
    violations.extend(draft.credentials.finish());
    if mode.is_some_and(|mode| !known.modes.contains(&mode)) {
        let names: Vec<&str> = known.modes.iter().map(|mode| mode.as_str()).collect();
        violations.push(Violation::new("mode", "invalid_value", wording::one_of(&names)));
    }
    match made {
        Some(made) if violations.is_empty() => Ok(made),
        Some(_) => Err(violations),
        None if violations.is_empty() => {
            Err(vec![Violation::new("settings", "invalid_value", "cannot be used together")])
        }
        None => Err(violations),
    }
}

fn known(kind: ProviderKind) -> Option<&'static Registration> {
    PROVIDERS.iter().find(|known| known.kind == kind)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    /// The known fields, for the message about an unknown one.
    fn fields(violations: &[Violation]) -> Vec<&str> {
        let lists =
            violations.iter().filter_map(|violation| violation.message.rsplit_once("the fields are: "));
        lists.flat_map(|(_, names)| names.split(", ")).collect()
    }

    #[test]
    fn the_guide_tells_all_that_a_provider_takes() {
        let guides = concat!(env!("CARGO_MANIFEST_DIR"), "/../../gateway/guides/connecting-a-source");
        let overview = fs::read_to_string(format!("{guides}/SKILL.md")).unwrap();
        let guard = Guard::new(&[]).unwrap();
        let reach = Reach::new(guard, &[]);
        for known in PROVIDERS {
            let (name, unlike) = (known.kind.as_str(), json!({ "~~~~~~~~~~~~~~~~": 1 }));
            let refused = connect(known.kind, &unlike, Some(&unlike), None, &reach).unwrap_err();
            let page = fs::read_to_string(format!("{guides}/references/{name}.md")).unwrap();
            assert!(page.starts_with(&format!("# {name}\n")), "{name}");
            assert!(overview.contains(&format!("`references/{name}.md`")), "{name}");
            let modes = known.modes.iter().map(|mode| mode.as_str());
            let fields = fields(&refused);
            assert!(!fields.is_empty(), "{name}: {refused:?}");
            for word in fields.into_iter().chain(modes) {
                assert!(
                    page.contains(&format!("`{word}`")),
                    "{name} takes `{word}`, which its guide does not tell"
                );
            }
        }
    }
}
