//! Mends what the checks find, in one transaction: texts first, since rows refer to them, and what is counted last.

use cairn_chassis::clock::Clock;
use cairn_chassis::doctor::{self, Progress, Report};
use cairn_chassis::feed;
use cairn_chassis::sql::{self, Db, Tx};

use super::{checks, records, texts};
use crate::{AssetLocation, Error, WhenAway, assets, store};

/// Undamaged copies, as a backup has them.
#[derive(Debug, Clone, Copy)]
pub struct Copies<'a> {
    /// A database of this service.
    pub database: &'a sql::Config,
    /// The bytes of its assets.
    pub assets: &'a AssetLocation,
}

/// Mends what is wrong with the content in a storage, if it holds any, and reports what. What a copy has comes from there. No
/// service may run on the storage, unless it is a server's, where whoever writes meanwhile makes this fail.
///
/// # Errors
/// When the storage fails, or the store of assets looks as if it were away and `when_away` refuses that. Of its rows nothing is changed then; assets are mended one by one, and those that were are reported.
pub async fn mend(
    storage: &sql::Config,
    assets: &AssetLocation,
    copies: Option<Copies<'_>>,
    when_away: WhenAway,
    clock: &dyn Clock,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<(), Error> {
    let Some(db) = Db::open_existing(storage, store::SCHEMA, store::MIGRATIONS).await? else {
        return Ok(());
    };
    let source = copies.map(|copies| copies.assets);
    assets::mend(&db, assets, source, when_away, clock.now(), report, progress).await?;
    let copy = match copies {
        Some(copies) => Db::open_existing(copies.database, store::SCHEMA, store::MIGRATIONS).await?,
        None => None,
    };
    // Rows are reported when they are committed.
    let mut rows = Report::default();
    mend_open(&db, copy.as_ref(), &mut rows, progress).await?;
    report.merge(rows);
    if let Some(copy) = copy {
        copy.close().await;
    }
    db.close().await;
    Ok(())
}

/// As [`mend`], of what is open, without the bytes of assets.
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

/// As [`mend_open`], in a transaction that the caller ends.
pub(crate) async fn mend_in(
    tx: &mut Tx,
    copy: Option<&Db>,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<(), Error> {
    // Texts that are lost are told to the feed.
    doctor::mend(tx, feed::CHECKS, report, progress).await?;
    texts::mend(tx, copy, report, progress).await?;
    // Once for values that cannot be read, before anything is taken for what these are, and once for what follows from them.
    records::mend(tx, report).await?;
    records::mend_versions(tx, report).await?;
    let all = [assets::CHECKS, checks().as_slice()].concat();
    doctor::mend(tx, &all, report, progress).await?;
    records::mend(tx, report).await?;
    Ok(())
}
