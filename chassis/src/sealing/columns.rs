//! Columns with sealed secrets: re-encryption under the current key, and the check that all of them open.

use super::{AES_256_GCM, Keyring, OpenError, SealError, UNSEALED};
use crate::doctor::{Finding, Progress};
use crate::entropy::Entropy;
use crate::on_db;
use crate::sql::{self, Db, Statement, Tx};

/// The rule that the doctor checks.
const RULE: &str = "every sealed secret opens with the keys given";

/// A column with sealed secrets.
#[derive(Debug, Clone, Copy)]
pub struct SealedColumn {
    /// The table and the column, such as `signing_keys.seed`.
    pub name: &'static str,
    /// Selects the id as text, the value and the sealing ([`UNSEALED`] or [`AES_256_GCM`]) of every row.
    pub list: &'static str,
    /// Sets the value of the row $1 to $2 and its sealing to $3, if the value is still $4.
    pub update: &'static str,
}

impl SealedColumn {
    /// The place that a secret of that row is bound to.
    pub fn place(&self, id: &str) -> String {
        format!("{}/{id}", self.name)
    }
}

/// Both statements of each column, for [`sql::prepare_all`].
pub fn statements(columns: &[SealedColumn]) -> Vec<Statement> {
    columns.iter().flat_map(|column| [column.list, column.update]).map(Into::into).collect()
}

/// A secret could not be resealed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be opened. Earlier ones are resealed already, and are skipped by the next run.
    #[error("{place} cannot be opened: {reason}")]
    Closed {
        /// The place of the secret.
        place: String,
        /// The reason.
        reason: OpenError,
    },
    /// It cannot be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The database failed.
    #[error(transparent)]
    Storage(#[from] sql::Error),
}

/// The counts of a [`reseal`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Resealed under the current key.
    pub changed: u64,
    /// Sealed under the current key already.
    pub current: u64,
}

type Row = (String, Vec<u8>, String);

/// Reseals every secret of the columns under the first key of the keyring. It may run while processes with the same keys are
/// live, and may be interrupted and repeated.
///
/// # Errors
/// At the first secret that does not open, or when the database fails.
pub async fn reseal(
    db: &Db,
    columns: &[SealedColumn],
    ring: &Keyring,
    entropy: &dyn Entropy,
    progress: Progress<'_>,
) -> Result<Resealed, Error> {
    let mut done = Resealed::default();
    for column in columns {
        progress(column.name);
        let rows: Vec<Row> = on_db!(db, |c| sqlx::query_as(column.list).fetch_all(c).await)?;
        for (id, value, sealing) in rows {
            if sealing == AES_256_GCM && ring.is_current(&value) {
                done.current += 1;
                continue;
            }
            let place = column.place(&id);
            let opened =
                if sealing == UNSEALED { Ok(value.clone().into()) } else { ring.open(&value, &place) };
            let secret = opened.map_err(|reason| Error::Closed { place: place.clone(), reason })?;
            let sealed = ring.seal(&secret, &place, entropy)?;
            done.changed += on_db!(db.writer(), |c| sqlx::query(column.update)
                .bind(&id)
                .bind(sealed.as_slice())
                .bind(AES_256_GCM)
                .bind(value.as_slice())
                .execute(c)
                .await
                .map(|changed| changed.rows_affected()))?;
        }
    }
    Ok(done)
}

/// Names every sealed secret that does not open; without a ring, every sealed one.
///
/// # Errors
/// When the database fails.
pub async fn examine(
    tx: &mut Tx,
    columns: &[SealedColumn],
    ring: Option<&Keyring>,
    progress: Progress<'_>,
) -> Result<Vec<Finding>, sql::Error> {
    let mut findings = Vec::new();
    progress(RULE);
    for column in columns {
        let rows: Vec<Row> = on_db!(tx, |c| sqlx::query_as(column.list).fetch_all(c).await)?;
        for (id, value, sealing) in rows.into_iter().filter(|(_, _, sealing)| sealing != UNSEALED) {
            let place = column.place(&id);
            let closed = match ring {
                _ if sealing != AES_256_GCM => Some(format!("its sealing '{sealing}' is unknown")),
                Some(ring) => ring.open(&value, &place).err().map(|reason| reason.to_string()),
                None => Some(
                    "no key is given: put secret.key back into the data folder, or set CAIRN_SECRET_KEY"
                        .to_owned(),
                ),
            };
            findings.extend(closed.map(|why| Finding { rule: RULE, subject: format!("{place}: {why}") }));
        }
    }
    Ok(findings)
}
