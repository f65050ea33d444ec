//! `cairn secrets new`: generates the secrets of a deployment.

use std::io::Write as _;

use cairn_chassis::entropy::{Entropy, OsEntropy};
use cairn_chassis::sealing::Keyring;
use cairn_chassis::token_format;
use serde_json::{Map, Value};

use crate::cli::{NewSecretsOptions, SecretsFormat};

const MESH_SECRET_BYTES: usize = 32;
const PASSWORD_BYTES: usize = 16;

/// A secret with its names.
struct Secret {
    /// The environment variable.
    variable: &'static str,
    /// The key in a Kubernetes Secret, as the chart expects it.
    key: &'static str,
    value: String,
}

/// Prints new secrets; nothing is stored.
pub(crate) fn run(options: &NewSecretsOptions) -> anyhow::Result<()> {
    let text = written(&made(&OsEntropy), options)?;
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

fn made(entropy: &dyn Entropy) -> [Secret; 4] {
    let secret = |variable, key, value| Secret { variable, key, value };
    let sealing = Keyring::generate(entropy).to_text().trim().to_owned();
    [
        secret("CAIRN_MESH_SECRET", "mesh-secret", random(entropy, MESH_SECRET_BYTES)),
        secret("CAIRN_SECRET_KEY", "secret-key", sealing),
        secret("CAIRN_BOOTSTRAP_PASSWORD", "bootstrap-password", random(entropy, PASSWORD_BYTES)),
        secret("CAIRN_BOOTSTRAP_TOKEN", "bootstrap-token", token_format::generate(entropy)),
    ]
}

fn random(entropy: &dyn Entropy, bytes: usize) -> String {
    let mut secret = vec![0_u8; bytes];
    entropy.fill(&mut secret);
    hex::encode(secret)
}

/// Every value consists of letters, digits and `_`, so only YAML needs quotes: it reads an all-digit value as a number.
fn written(secrets: &[Secret], options: &NewSecretsOptions) -> anyhow::Result<String> {
    let mut text = String::new();
    match options.format {
        SecretsFormat::Env => {
            for secret in secrets {
                text += &format!("{}={}\n", secret.variable, secret.value);
            }
        }
        SecretsFormat::Json => {
            let object: Map<String, Value> =
                secrets.iter().map(|one| (one.variable.to_owned(), one.value.as_str().into())).collect();
            text = serde_json::to_string_pretty(&object)? + "\n";
        }
        SecretsFormat::Kubernetes => {
            text += &format!("apiVersion: v1\nkind: Secret\nmetadata:\n  name: {}\n", options.name);
            if let Some(namespace) = &options.namespace {
                text += &format!("  namespace: {namespace}\n");
            }
            text += "type: Opaque\nstringData:\n";
            for secret in secrets {
                text += &format!("  {}: \"{}\"\n", secret.key, secret.value);
            }
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use cairn_chassis::entropy::SeededEntropy;

    use super::*;

    fn text(format: SecretsFormat, namespace: Option<&str>) -> String {
        let options =
            NewSecretsOptions { format, name: "cairn".to_owned(), namespace: namespace.map(str::to_owned) };
        written(&made(&SeededEntropy::new(1)), &options).unwrap()
    }

    #[test]
    fn each_secret_is_what_its_option_takes() {
        let secrets = made(&SeededEntropy::new(1));
        let value = |variable: &str| &secrets.iter().find(|one| one.variable == variable).unwrap().value;
        assert!(Keyring::parse(value("CAIRN_SECRET_KEY")).is_ok());
        assert!(token_format::is_well_formed(value("CAIRN_BOOTSTRAP_TOKEN")));
        assert!(value("CAIRN_MESH_SECRET").len() >= 16 && value("CAIRN_BOOTSTRAP_PASSWORD").len() >= 16);
        let plain = |one: &Secret| one.value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        assert!(secrets.iter().all(plain));
    }

    #[test]
    fn they_are_written_for_whoever_reads_them() {
        let env = text(SecretsFormat::Env, None);
        assert_eq!(env.lines().count(), 4);
        assert!(env.starts_with("CAIRN_MESH_SECRET="));
        let json: Value = serde_json::from_str(&text(SecretsFormat::Json, None)).unwrap();
        assert!(json["CAIRN_BOOTSTRAP_TOKEN"].as_str().unwrap().starts_with("cairn_"));
        let secret: Value =
            serde_norway::from_str(&text(SecretsFormat::Kubernetes, Some("context"))).unwrap();
        assert_eq!(
            (&secret["kind"], &secret["metadata"]["namespace"]),
            (&"Secret".into(), &"context".into())
        );
        for key in ["mesh-secret", "secret-key", "bootstrap-password", "bootstrap-token"] {
            assert!(secret["stringData"][key].is_string(), "{key}");
        }
        assert!(!text(SecretsFormat::Kubernetes, None).contains("namespace"));
    }
}
