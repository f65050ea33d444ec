//! `cairn config check`: every error that a start would report about its options, all at once and without starting.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use cairn_chassis::wording::{self, Unit};
use cairn_chassis::{telemetry, tls};
use cairn_embed::Choice;
use clap::CommandFactory as _;
use strsim::damerau_levenshtein;

use crate::cli::{CheckedProcess, Cli, Role, ServeOptions, ServiceOptions, Site, UpOptions};
use crate::topology::sqlite_in;
use crate::{public, secret_keys, serve, up};

/// The prefix of this program's variables.
const PREFIX: &str = "CAIRN_";
/// Variables with that prefix that are not options.
const NOT_OPTIONS: [&str; 1] = ["CAIRN_LOG"];
/// The maximum edit distance to a suggested name.
const MAX_TYPO_DISTANCE: usize = 3;
/// Placeholder for `cairn up`, which generates its mesh secret at the start.
const ANY_MESH_SECRET: &str = "one that nobody outside of the process needs";

/// Prints every problem; fails if there is any.
pub(crate) fn check(process: &CheckedProcess) -> anyhow::Result<()> {
    let mut findings = Findings::default();
    let name = match process {
        CheckedProcess::Up(options) => {
            of_up(options, &mut findings);
            "up".to_owned()
        }
        CheckedProcess::Serve(options) => {
            of_serve(options, &mut findings);
            format!("serve {}", options.service.name())
        }
    };
    let set = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    let notes = unknown(set, &known());
    report(&name, &findings.0, &notes)
}

/// Messages for people, in the order of detection.
#[derive(Debug, Default)]
struct Findings(Vec<String>);

impl Findings {
    /// Records the error, if any, and returns the value.
    fn take<T>(&mut self, looked: anyhow::Result<T>) -> Option<T> {
        match looked {
            Ok(value) => Some(value),
            Err(error) => {
                let said = format!("{error:#}");
                // Several services read the same option.
                if !self.0.contains(&said) {
                    self.0.push(said);
                }
                None
            }
        }
    }
}

fn of_up(options: &UpOptions, findings: &mut Findings) {
    let services = &options.services;
    findings.take(telemetry::log_filter(up::LOG_FILTER).map_err(Into::into));
    findings.take(services.tls.public().context("--tls-cert (CAIRN_TLS_CERT)"));
    let scheme = services.tls.scheme();
    let base_url =
        services.public.base_url.clone().unwrap_or_else(|| format!("{scheme}://{}", options.listen));
    let gateway = public::build(&services.public, &services.ending, Some(base_url.clone()), options.listen);
    findings.take(gateway);
    let sealing = findings.take(secret_keys::find(&services.secret_key, &options.data)).flatten();
    let folder = options.data.clone();
    let site = Site {
        database: Box::new(move |role| Ok(sqlite_in(&folder, role))),
        folder: options.data.clone(),
        mesh_secret: ANY_MESH_SECRET.to_owned(),
        base_url: Some(base_url),
        sealing: sealing.map(Arc::new),
    };
    for role in [Role::Auth, Role::Content, Role::Ingest, Role::Retrieval, Role::Sync] {
        of_service(role, services, &site, findings);
    }
}

fn of_serve(options: &ServeOptions, findings: &mut Findings) {
    let (role, services) = (options.service, &options.services);
    findings.take(telemetry::log_filter(serve::LOG_FILTER).map_err(Into::into));
    findings.take(serve::check_mesh_secret(options));
    findings.take(serve::check_mesh(options));
    findings.take(services.tls.mutual(tls::Protocols::Grpc).context("--tls-cert (CAIRN_TLS_CERT)"));
    findings.take(options.tls_client.client(&services.tls).context("--tls-ca (CAIRN_TLS_CA)"));
    for (other, url) in options.upstreams.urls() {
        if other != role {
            findings.take(upstream(other, url));
        }
    }
    if role == Role::Gateway {
        let listen = options.listen.unwrap_or_else(|| role.default_address());
        let base_url = services.public.base_url.clone();
        findings.take(public::build(&services.public, &services.ending, base_url, listen));
        return;
    }
    let sealing = findings.take(secret_keys::given(&services.secret_key)).flatten();
    let (folder, database) = (options.data.join(role.name()), options.database.clone());
    let (connections, files) = (options.database_connections, folder.clone());
    let site = Site {
        database: Box::new(move |role| match &database {
            Some(url) => connections.config(url),
            None => Ok(sqlite_in(&files, role)),
        }),
        folder,
        mesh_secret: ANY_MESH_SECRET.to_owned(),
        base_url: services.public.base_url.clone(),
        sealing: sealing.map(Arc::new),
    };
    of_service(role, services, &site, findings);
}

fn of_service(role: Role, services: &ServiceOptions, site: &Site, findings: &mut Findings) {
    for refusal in services.refusals(role, site) {
        findings.take::<()>(Err(refusal));
    }
    match role {
        Role::Auth => {
            if let Some(config) = findings.take(services.auth(site)) {
                findings.take(cairn_auth::check(&config).map_err(Into::into));
            }
        }
        Role::Content => drop(findings.take(services.content(site))),
        Role::Ingest => drop(findings.take(services.ingest(site))),
        Role::Sync => drop(findings.take(services.sync(site))),
        Role::Retrieval => {
            if let Some(config) = findings.take(services.retrieval(site)) {
                findings.take(model(&config.embedding.choice));
            }
        }
        Role::Gateway => {}
    }
}

/// The content of a model folder is read at the start; its existence can be checked before.
fn model(choice: &Choice) -> anyhow::Result<()> {
    match choice {
        Choice::Folder(folder) if !folder.is_dir() => {
            bail!("CAIRN_EMBEDDER: there is no folder {}", folder.display())
        }
        Choice::Folder(_) | Choice::BuiltIn | Choice::Fetched(_) | Choice::Endpoint(_) => Ok(()),
    }
}

fn upstream(service: Role, urls: &str) -> anyhow::Result<()> {
    let is_address = |url: &str| {
        let Ok(url) = url.trim().parse::<http::Uri>() else { return false };
        matches!(url.scheme_str(), Some("http" | "https")) && url.host().is_some()
    };
    if urls.split(',').all(is_address) {
        return Ok(());
    }
    let name = service.name();
    bail!("CAIRN_{}_URL is an address such as http://{name}:8711", name.to_uppercase())
}

/// Every variable of an option, of any command, and the `_FILE` variants of secrets.
fn known() -> BTreeSet<String> {
    let mut known: BTreeSet<String> = NOT_OPTIONS.map(str::to_owned).into();
    let mut waiting = vec![Cli::command()];
    while let Some(command) = waiting.pop() {
        for argument in command.get_arguments() {
            let Some(name) = argument.get_env().map(|name| name.to_string_lossy().into_owned()) else {
                continue;
            };
            if argument.is_hide_env_values_set() {
                known.insert(format!("{name}_FILE"));
            }
            known.insert(name);
        }
        waiting.extend(command.get_subcommands().cloned());
    }
    known
}

/// Variables with our prefix that nothing reads, most of which are typos. They are reported but are not errors, since
/// other software may use the prefix too.
fn unknown(set: impl Iterator<Item = String>, known: &BTreeSet<String>) -> Vec<String> {
    let mut names: Vec<String> =
        set.filter(|name| name.starts_with(PREFIX) && !known.contains(name)).collect();
    names.sort();
    let told = |name: &String| {
        let nearest = known.iter().min_by_key(|other| damerau_levenshtein(name, other));
        match nearest.filter(|other| damerau_levenshtein(name, other) <= MAX_TYPO_DISTANCE) {
            Some(meant) => format!("{name} is no option; is {meant} meant?"),
            None => format!("{name} is no option"),
        }
    };
    names.iter().map(told).collect()
}

fn report(process: &str, findings: &[String], notes: &[String]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for note in notes {
        writeln!(out, "note: {note}")?;
    }
    for finding in findings {
        writeln!(out, "wrong: {finding}")?;
    }
    if findings.is_empty() {
        writeln!(out, "OK: cairn {process} would start with this configuration")?;
        return Ok(out.flush()?);
    }
    out.flush()?;
    bail!("{} found; see above", wording::count(findings.len() as u64, Unit::Faults))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_nothing_reads_are_told_with_what_may_be_meant() {
        let set = ["CAIRN_BASEURL", "CAIRN_LOG", "CAIRN_DATABASE_URL_FILE", "CAIRN_PORT_8700_TCP", "PATH"];
        let told = unknown(set.map(str::to_owned).into_iter(), &known());
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("CAIRN_BASE_URL is meant") || told[0].contains("is CAIRN_BASE_URL meant"));
        assert!(told[1].contains("CAIRN_PORT_8700_TCP") && !told[1].contains("meant"), "{told:?}");
    }

    #[test]
    fn addresses_of_services_are_http() {
        assert!(upstream(Role::Auth, "https://auth:8711").is_ok());
        for odd in ["auth:8711", "postgres://auth", "", "http://"] {
            let refusal = upstream(Role::Auth, odd).unwrap_err().to_string();
            assert!(refusal.contains("CAIRN_AUTH_URL"), "{odd}: {refusal}");
        }
    }

    #[test]
    fn what_several_services_read_is_told_once() {
        let mut findings = Findings::default();
        for _ in 0..2 {
            findings.take::<()>(Err(anyhow::anyhow!("CAIRN_X is odd")));
        }
        assert_eq!(findings.0, ["CAIRN_X is odd"]);
    }
}
