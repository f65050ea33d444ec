//! Backups of `cairn up`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use cairn_chassis::debug_fields;
use cairn_content::AssetLocation;
use clap::Args;

use super::{AssetLocationParser, SecretKeyOptions, spans};

pub(super) const BACKUP_EXAMPLES: &str = "Examples:
  cairn backup --to /backups/cairn          of cairn up, with its data in ./cairn-data; it may run meanwhile
  cairn backup --data /srv/cairn --to 's3://backups/cairn?region=eu-west-1' --keep 30
  CAIRN_BACKUP_KEY_FILE=/run/secrets/backup-key cairn backup --to /backups/cairn
  cairn backup --to /backups/cairn --full --json | jq -r .name
  cairn backup --data /srv/cairn --to /backups/cairn --every 60s          goes on until it is stopped
  cairn backup --to /backups/cairn --every 5m --keep-within 2d --keep-hourly 168 --keep-daily 90

Each one is whole: the databases at one moment, and the assets that they name. Only what has changed since the one before is
stored. With --every, what can be lost is what was written in that time and while one is made; `cairn restore --at` goes back to
any that is kept. The rules of --keep add up: what one of them keeps stays. With a key (`openssl rand -hex 32`)
everything is encrypted, and the secret key of the data folder is in it too.";

pub(super) const RESTORE_EXAMPLES: &str = "Examples:
  cairn restore --from /backups/cairn --data /srv/cairn          the newest, into an empty folder
  cairn restore --from /backups/cairn --at 2026-11-28T14:05:00+01:00 --data /srv/cairn    as it was then
  cairn restore --from /backups/cairn --list
  cairn restore --from /backups/cairn --snapshot NAME --data /srv/cairn --replace

A backup shows one moment: with --at, how long before that time it was is told. A restore that was cut is begun anew by the same
command; until it is whole, `cairn up` does not start on the folder.";

pub(super) const VERIFY_EXAMPLES: &str = "Examples:
  cairn verify --from /backups/cairn                     the newest backup
  cairn verify --from /backups/cairn --at 2026-11-28T09:00:00Z --scratch /var/tmp
  cairn verify --data /srv/cairn                         a data folder, whether Cairn runs on it or not

A backup is put into a folder that is removed afterwards, every piece compared with its hash, and looked over as `cairn doctor`
does: bodies and assets against their hashes, the feed without gaps, rows against each other. A data folder is looked over in
the same way, and its index against the documents that their owners have. Nothing is written to either.";

/// What backups are encrypted with.
#[derive(Clone, Args)]
pub(crate) struct BackupKeyOptions {
    /// The key of encrypted backups: 32 bytes in hexadecimal or base64, better set by the environment; older keys behind it,
    /// separated by commas, still open. Default: backups are not encrypted.
    #[arg(long, env = "CAIRN_BACKUP_KEY", hide_env_values = true, value_name = "KEY[,OLD…]")]
    pub(crate) key: Option<String>,
}

debug_fields!(BackupKeyOptions);

/// What is backed up, and where to.
#[derive(Debug, Args)]
pub(crate) struct BackupOptions {
    /// The data folder of `cairn up`.
    #[arg(long, env = "CAIRN_DATA", value_name = "DIR", default_value = "./cairn-data")]
    pub(crate) data: PathBuf,
    /// Where the bytes of assets are. Default: the folder `assets` in the data folder.
    #[arg(long, env = "CAIRN_ASSETS", value_name = "PLACE", value_parser = AssetLocationParser)]
    pub(crate) assets: Option<AssetLocation>,
    /// Where backups are kept, of one deployment only: a path, or s3://bucket/prefix?endpoint=…&region=… with credentials in
    /// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
    #[arg(long, env = "CAIRN_BACKUP", value_name = "PLACE", value_parser = AssetLocationParser)]
    pub(crate) to: AssetLocation,
    #[command(flatten)]
    pub(crate) key: BackupKeyOptions,
    /// Go on until stopped, and make one every so often, such as 60s or 15m. When the first one fails this ends with 1; a later
    /// one that fails is told and tried again.
    #[arg(long, value_name = "TIME", value_parser = spans::read)]
    pub(crate) every: Option<Duration>,
    #[command(flatten)]
    pub(crate) retention: RetentionOptions,
    /// Store everything anew, and trust nothing that earlier backups have stored: after `cairn verify` has found damage.
    #[arg(long, conflicts_with = "every")]
    pub(crate) full: bool,
    /// Print nothing but errors.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which backups stay. The rules add up; without any, all stay, and with `--every` those of the last day, one for each hour of
/// the week before, and one for each of 30 days.
#[derive(Debug, Clone, Args)]
pub(crate) struct RetentionOptions {
    /// Keep so many of the newest, and remove what no rule keeps. Default: all are kept; with --every as if it said
    /// --keep-within 1d --keep-hourly 168 --keep-daily 30.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep: Option<u32>,
    /// Keep all that are at most so much older than the newest, such as 12h or 2d.
    #[arg(long, value_name = "TIME", value_parser = spans::read)]
    pub(crate) keep_within: Option<Duration>,
    /// Keep the last one of so many of the newest hours (UTC) that have any.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep_hourly: Option<u32>,
    /// Keep the last one of so many of the newest days (UTC) that have any.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep_daily: Option<u32>,
}

/// Which backup is meant.
#[derive(Debug, Args)]
pub(crate) struct ChosenBackup {
    /// Where backups are kept.
    #[arg(long, env = "CAIRN_BACKUP", value_name = "PLACE", value_parser = AssetLocationParser)]
    pub(crate) from: Option<AssetLocation>,
    /// Which one, by its name. Default: the newest.
    #[arg(long, value_name = "NAME", conflicts_with = "at")]
    pub(crate) snapshot: Option<String>,
    /// The newest one that is not after this time, in RFC 3339.
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    #[command(flatten)]
    pub(crate) key: BackupKeyOptions,
}

impl ChosenBackup {
    /// No backup.
    pub(crate) const fn none() -> Self {
        Self { from: None, snapshot: None, at: None, key: BackupKeyOptions { key: None } }
    }

    /// Where the backups are.
    pub(crate) fn place(&self) -> anyhow::Result<AssetLocation> {
        self.from.clone().context("where the backups are is not said: name the place with --from")
    }
}

/// Which backup is put where.
#[derive(Debug, Args)]
pub(crate) struct RestoreOptions {
    #[command(flatten)]
    pub(crate) chosen: ChosenBackup,
    /// The data folder, which must be empty; made when it is not there.
    #[arg(long, env = "CAIRN_DATA", value_name = "DIR", default_value = "./cairn-data")]
    pub(crate) data: PathBuf,
    /// Where the bytes of assets go. Default: the folder `assets` in the data folder.
    #[arg(long, env = "CAIRN_ASSETS", value_name = "PLACE", value_parser = AssetLocationParser)]
    pub(crate) assets: Option<AssetLocation>,
    /// Remove what the data folder holds first. It is gone even when the restore fails.
    #[arg(long)]
    pub(crate) replace: bool,
    /// Print the names of all, oldest first, and do nothing.
    #[arg(long)]
    pub(crate) list: bool,
    /// Show no progress.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is looked over.
#[derive(Debug, Args)]
pub(crate) struct VerifyOptions {
    #[command(flatten)]
    pub(crate) chosen: ChosenBackup,
    /// Look over this data folder of `cairn up` instead of a backup.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["snapshot", "at", "scratch"])]
    pub(crate) data: Option<PathBuf>,
    /// Where the bytes of assets of that data folder are. Default: its folder `assets`.
    #[arg(long, env = "CAIRN_ASSETS", value_name = "PLACE", value_parser = AssetLocationParser)]
    pub(crate) assets: Option<AssetLocation>,
    /// Where a backup is put meanwhile: as much room as it is long. Default: the folder for temporary files.
    #[arg(long, value_name = "DIR")]
    pub(crate) scratch: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) secret_key: SecretKeyOptions,
    /// Say nothing on the way, only the result.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
