//! `cairn secrets` and `cairn keys`: rotating sealing keys and signing keys.

use std::io::Write as _;

use anyhow::{Context as _, bail};
use cairn_chassis::clock::{Clock as _, SystemClock};
use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::sealing::Keyring;
use cairn_chassis::sealing::columns::Resealed;
use cairn_chassis::sql::Config;
use cairn_chassis::wording::{self, Unit};

use crate::cli::{KeysCommand, ResealOptions, Role, SecretsCommand, StoredOptions};
use crate::data_folder::DataFolder;
use crate::{new_secrets, secret_keys, storages};

/// The error context when resealing is interrupted.
const UNFINISHED: &str = "not every secret is under the new key yet; run this again";

/// Runs a command about sealed secrets.
pub(crate) async fn run(command: SecretsCommand) -> anyhow::Result<()> {
    match command {
        SecretsCommand::New(options) => new_secrets::run(&options),
        SecretsCommand::Rotate(options) => rotate(&options).await,
    }
}

/// Runs a command about signing keys.
pub(crate) async fn run_keys(command: KeysCommand) -> anyhow::Result<()> {
    match command {
        KeysCommand::List(options) => list_keys(&options).await,
        KeysCommand::Rotate(options) => rotate_keys(&options).await,
    }
}

async fn rotate(options: &ResealOptions) -> anyhow::Result<()> {
    let storages = Sealed::of(&options.stored)?;
    if let Some(ring) = secret_keys::given(&options.secret_key)? {
        let done = reseal(&storages, &ring, options).await?;
        return say(&format!("{}\nOlder keys may be taken out of CAIRN_SECRET_KEY now.", described(done)));
    }
    let of_up = storages::of_up(Role::Auth, &options.stored.data);
    let (None, Some(auth)) = (&options.stored.database, of_up) else {
        bail!("set CAIRN_SECRET_KEY to <new>,<old>: only `cairn up` has a key file to renew");
    };
    // A running process would not know the new key.
    let data = DataFolder::claim(&options.stored.data)?;
    let old = secret_keys::find(&options.secret_key, data.path())?;
    let ring = match old {
        Some(old) => old.with_new_key(&OsEntropy),
        None => Keyring::generate(&OsEntropy),
    };
    // The old keys stay in the ring until nothing needs them: after an interruption at any point, everything can still
    // be opened.
    secret_keys::write(data.path(), &ring)?;
    let ingest = storages::of_up(Role::Ingest, &options.stored.data).into_iter().collect();
    let done = reseal(&Sealed { auth: vec![auth], ingest }, &ring, options).await?;
    secret_keys::write(data.path(), &ring.without_old_keys())?;
    let file = data.join(secret_keys::FILE_NAME);
    say(&format!("{}\nThe new key is in {}: keep a copy with the backups.", described(done), file.display()))
}

/// The storages that hold sealed secrets.
struct Sealed {
    auth: Vec<Config>,
    /// May be absent: a deployment need not have connected sources.
    ingest: Vec<Config>,
}

impl Sealed {
    fn of(stored: &StoredOptions) -> anyhow::Result<Self> {
        let auth = storages_of(stored)?;
        let ingest = storages::of(Role::Ingest, &stored.data, stored.database.as_deref())?;
        Ok(Self { auth, ingest })
    }
}

async fn reseal(storages: &Sealed, ring: &Keyring, options: &ResealOptions) -> anyhow::Result<Resealed> {
    let progress = |column: &str| {
        if !options.quiet {
            tell(&format!("sealing {column}"));
        }
    };
    let mut all = Resealed::default();
    for storage in &storages.auth {
        let done = cairn_auth::reseal(storage, ring, &OsEntropy, &progress).await.context(UNFINISHED)?;
        let done = done.context(storages::NONE_HERE)?;
        all.changed += done.changed;
        all.current += done.current;
    }
    for storage in &storages.ingest {
        let done = cairn_ingest::reseal(storage, ring, &OsEntropy, &progress).await.context(UNFINISHED)?;
        let done = done.unwrap_or_default();
        all.changed += done.changed;
        all.current += done.current;
    }
    Ok(all)
}

fn described(done: Resealed) -> String {
    format!(
        "Sealed under the new key: {}; sealed under it already: {}.",
        wording::count(done.changed, Unit::Secrets),
        done.current
    )
}

async fn list_keys(options: &StoredOptions) -> anyhow::Result<()> {
    for storage in storages_of(options)? {
        let keys = cairn_auth::signing_keys(&storage).await?.context(storages::NONE_HERE)?;
        for key in keys {
            let wish = if key.is_to_be_replaced { "  to be replaced" } else { "" };
            say(&format!("{}  {:7}  since {}{wish}", key.id, key.state, key.since.to_rfc3339()))?;
        }
    }
    Ok(())
}

async fn rotate_keys(options: &StoredOptions) -> anyhow::Result<()> {
    for storage in storages_of(options)? {
        if !cairn_auth::ask_for_rotation(&storage, SystemClock.now()).await? {
            bail!(storages::NONE_HERE);
        }
    }
    say("The signing key will be replaced: at once by a running Cairn, else after its next start.\n\
         `cairn keys list` shows how far it is.")
}

fn storages_of(options: &StoredOptions) -> anyhow::Result<Vec<Config>> {
    let found = storages::of(Role::Auth, &options.data, options.database.as_deref())?;
    if found.is_empty() {
        bail!(storages::NONE_HERE);
    }
    Ok(found)
}

fn say(text: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout().lock(), "{text}")?)
}

#[expect(clippy::print_stderr, reason = "progress is for whoever started the command")]
fn tell(text: &str) {
    eprintln!("{text}");
}
