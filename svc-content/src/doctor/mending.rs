//! Repairs what the checks find, in one transaction: bodies first, since rows refer to them, and counters last.

use cairn_chassis::clock::Clock;
use cairn_chassis::doctor::{self, Progress, Report};
use cairn_chassis::feed;
use cairn_chassis::sql::{self, Db, Tx};

use super::{checks, records, texts};
use crate::{AssetLocation, Error, IfUnmounted, assets, store};

/// Undamaged copies, such as a backup.
#[derive(Debug, Clone, Copy)]
pub struct Copies<'a> {
    /// The database of this service.
    pub database: &'a sql::Config,
    /// The bytes of its assets.
    pub assets: &'a AssetLocation,
}

/// Repairs the content of a storage, if it has any, and reports the repairs. Damaged data is restored from the copies
/// where they have it. No service may run on the storage; on a database server, concurrent writes make this fail.
///
/// # Errors
///
/// When the storage fails, or when the asset store looks as if it were not mounted and `if_unmounted` refuses that. No
/// rows are changed then; assets are repaired one by one, and those that were are reported.
pub async fn mend(
    storage: &sql::Config,
    assets: &AssetLocation,
    copies: Option<Copies<'_>>,
    if_unmounted: IfUnmounted,
    clock: &dyn Clock,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<(), Error> {
    let Some(db) = Db::open_existing(storage, store::SCHEMA, store::MIGRATIONS).await? else {
        return Ok(());
    };
    let source = copies.map(|copies| copies.assets);
    assets::mend(&db, assets, source, if_unmounted, clock.now(), report, progress).await?;
    let copy = match copies {
        Some(copies) => Db::open_existing(copies.database, store::SCHEMA, store::MIGRATIONS).await?,
        None => None,
    };
    // Rows are reported after the commit.
    let mut rows = Report::default();
    mend_open(&db, copy.as_ref(), &mut rows, progress).await?;
    report.merge(rows);
    if let Some(copy) = copy {
        copy.close().await;
    }
    db.close().await;
    Ok(())
}

/// [`mend`] on an open storage, without the bytes of assets.
pub(crate) async fn mend_open(
    db: &Db,
    copy: Option<&Db>,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<(), Error> {
    let mut tx = doctor::begin(db).await?;
    mend_in(&mut tx, copy, report, progress).await?;
    tx.commit().await?;
    Ok(())
}

/// [`mend_open`] in the transaction of the caller.
pub(crate) async fn mend_in(
    tx: &mut Tx,
    copy: Option<&Db>,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<(), Error> {
    // First, because the repair of bodies appends to the feed.
    doctor::mend(tx, feed::CHECKS, report, progress).await?;
    texts::mend(tx, copy, report, progress).await?;
    // Twice: first for values that cannot be parsed, before anything is derived from them, then for what is derived.
    records::mend(tx, report).await?;
    records::mend_versions(tx, report).await?;
    let all = [assets::CHECKS, checks().as_slice()].concat();
    doctor::mend(tx, &all, report, progress).await?;
    records::mend(tx, report).await?;
    Ok(())
}
