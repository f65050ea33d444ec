//! Commands about what a data folder or a database holds: how its first account gets in, what an upgrade needs, whether it is
//! sound.

use std::path::PathBuf;

use cairn_content::AssetLocation;
use clap::{Args, Subcommand};

use super::{AssetLocationParser, ChosenBackup, SecretKeyOptions, StoredOptions};

pub(super) const BOOTSTRAP_EXAMPLES: &str = "Examples:
  cairn bootstrap show                      of cairn up, with its data in ./cairn-data
  cairn bootstrap show --json | jq -r .token
  kubectl exec cairn-0 -- cairn bootstrap show --data /data";

pub(super) const UPGRADE_EXAMPLES: &str = "Examples:
  cairn upgrade check                       of cairn up, with its data in ./cairn-data
  cairn upgrade check --database postgres://cairn@db/cairn
  cairn upgrade check --json | jq .wayBack

Run the new version's: it says whether that can start on the data of the version that runs, what it would change, and whether
the old one can be started again afterwards. It writes nothing and may run while Cairn runs.";

pub(super) const DOCTOR_EXAMPLES: &str = "Examples:
  cairn doctor                              of cairn up, with its data in ./cairn-data
  cairn doctor --data /srv/cairn --json
  cairn doctor --database postgres://cairn@db/cairn
  cairn doctor --data /srv/cairn --mend     asks before it mends, and says what was mended and what is lost
  cairn doctor --data /srv/cairn --mend --yes --from /backups/cairn
                                            texts and assets that are damaged come from the newest backup
  cairn doctor --data /srv/cairn --mend --yes --give-up-assets
                                            the volume of assets is lost for good, and no backup has it

It may run while Cairn runs, and looks at each service's data as it was at one moment. To mend, stop Cairn first. What is
mended is mended in one transaction for each service, and the same again changes nothing. A file that cannot be read is kept beside
the new one, as <file>.damaged-<time>. It ends with 1 while something is wrong, also after it has mended what it can.";

/// What is done about the first account.
#[derive(Debug, Subcommand)]
pub(crate) enum BootstrapCommand {
    /// Print its email, its password and its token, as <data>/bootstrap.json has them.
    #[command(after_help = BOOTSTRAP_EXAMPLES)]
    Show(ShowBootstrapOptions),
}

#[derive(Debug, Args)]
pub(crate) struct ShowBootstrapOptions {
    /// The data folder of `cairn up`.
    #[arg(long, env = "CAIRN_DATA", value_name = "DIR", default_value = "./cairn-data")]
    pub(crate) data: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is done before an upgrade.
#[derive(Debug, Subcommand)]
pub(crate) enum UpgradeCommand {
    /// Say whether this version can start on the data, and what it would change; ends with 1 when it cannot.
    #[command(after_help = UPGRADE_EXAMPLES)]
    Check(UpgradeCheckOptions),
}

#[derive(Debug, Args)]
pub(crate) struct UpgradeCheckOptions {
    #[command(flatten)]
    pub(crate) stored: StoredOptions,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is looked over.
#[derive(Debug, Args)]
pub(crate) struct DoctorOptions {
    #[command(flatten)]
    pub(crate) stored: StoredOptions,
    /// Where the bytes of assets are. Default: the folder `assets` beside the content service's other data.
    #[arg(long, env = "CAIRN_ASSETS", value_name = "PLACE", value_parser = AssetLocationParser)]
    pub(crate) assets: Option<AssetLocation>,
    #[command(flatten)]
    pub(crate) secret_key: SecretKeyOptions,
    /// Mend what is found, and say what was lost. Cairn must not run on the data meanwhile.
    #[arg(long)]
    pub(crate) mend: bool,
    /// Mend without asking.
    #[arg(long, requires = "mend")]
    pub(crate) yes: bool,
    /// Remove assets whose bytes are gone even when nearly all are, as when a volume is not mounted: only when they are lost for
    /// good.
    #[arg(long, requires = "mend")]
    pub(crate) give_up_assets: bool,
    #[command(flatten)]
    pub(crate) chosen: ChosenBackup,
    /// Where the backup is put meanwhile: as much room as it is long. Default: the folder for temporary files.
    #[arg(long, value_name = "DIR", requires = "mend")]
    pub(crate) scratch: Option<PathBuf>,
    /// Say nothing on the way, only the result.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
