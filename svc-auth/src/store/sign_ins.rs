//! Tables `sign_in_windows` and `sign_in_places`.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Error, Tx};
use cairn_chassis::{execute, fetch, statements};

use crate::model::sign_ins::Window;
use crate::secrets::Digest;

statements! {
    #[cfg(test)]
    pub(super) fn statements;

    /// An expired window is restarted.
    const TAKE: &str = "INSERT INTO sign_in_windows (subject, seconds, ends_at, attempts) VALUES ($1, $2, $3, 1) \
         ON CONFLICT (subject, seconds) DO UPDATE SET attempts = CASE WHEN sign_in_windows.ends_at = excluded.ends_at \
         THEN sign_in_windows.attempts + 1 ELSE 1 END, ends_at = excluded.ends_at RETURNING attempts";

    const GIVE_BACK: &str = "UPDATE sign_in_windows SET attempts = attempts - 1 \
         WHERE subject = $1 AND seconds = $2 AND ends_at = $3 AND attempts > 0";

    const DELETE_ENDED: &str = "DELETE FROM sign_in_windows WHERE ends_at <= $1";

    const IS_KNOWN: &str = "SELECT COUNT(*) FROM sign_in_places WHERE place = $1";

    const PUT_PLACE: &str = "INSERT INTO sign_in_places (place, last_at) VALUES ($1, $2) \
         ON CONFLICT (place) DO UPDATE SET last_at = excluded.last_at";

    const DELETE_PLACES: &str = "DELETE FROM sign_in_places WHERE last_at <= $1";
}

/// Counts an attempt; returns the new count of the window.
pub(crate) async fn take(tx: &mut Tx, window: &Window) -> Result<i64, Error> {
    fetch!(scalar, tx, TAKE, window.subject.as_slice(), window.seconds, window.ends_at)
}

/// Undoes the count of an attempt, if its window has not expired.
pub(crate) async fn give_back(tx: &mut Tx, window: &Window) -> Result<(), Error> {
    execute!(tx, GIVE_BACK, window.subject.as_slice(), window.seconds, window.ends_at).map(drop)
}

/// Whether the account has signed in from that address before.
pub(crate) async fn is_known(db: &Db, place: &Digest) -> Result<bool, Error> {
    let known: i64 = fetch!(scalar, db, IS_KNOWN, place.as_slice())?;
    Ok(known > 0)
}

pub(crate) async fn put_place(tx: &mut Tx, place: &Digest, now: Timestamp) -> Result<(), Error> {
    execute!(tx, PUT_PLACE, place.as_slice(), now).map(drop)
}

/// Deletes the windows that ended by `ended`, and the addresses that were not used since `unused`.
pub(crate) async fn delete_old(db: &Db, ended: Timestamp, unused: Timestamp) -> Result<(), Error> {
    execute!(db.writer(), DELETE_ENDED, ended)?;
    execute!(db.writer(), DELETE_PLACES, unused).map(drop)
}
