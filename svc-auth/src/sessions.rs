//! Web sessions: users sign in with a password; the session's secret becomes their cookie.

mod device;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::{Identity, PermissionSet, Principal, PrincipalKind, Scope};
use cairn_chassis::sql::{Db, Tx};
use cairn_chassis::status::Violation;
use cairn_chassis::token_format::SESSION_BYTES;
use cairn_proto::ids::{SessionId, UserId, WorkspaceId};

pub(crate) use self::device::Device;
use crate::error::Error;
use crate::keys::{Issued, Keys};
use crate::model::has_ended;
use crate::model::profiles::Profile;
use crate::model::sessions::{FoundSession, ListedSession, NewSession, Seat};
use crate::passwords::{self, Passwords};
use crate::secrets;
use crate::sign_ins::SignIns;
use crate::store;
use crate::users::{self, User};
use crate::workspaces::not_found;

/// A session expires this long after the sign-in. The expiry is fixed: a sliding one would cost a write per request.
const LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How many sessions of a user are listed, the newest.
const MAX_LISTED: i64 = 100;

/// A user who just signed in.
pub(crate) struct SignedIn {
    pub(crate) secret: String,
    pub(crate) expires_at: Timestamp,
    pub(crate) profile: Profile,
}

cairn_chassis::debug_fields!(SignedIn { profile });

/// A session that was created in a transaction.
pub(crate) struct NewlyOpened {
    secret: String,
    expires_at: Timestamp,
}

/// A request to change a password.
pub(crate) struct PasswordChange {
    pub(crate) current: String,
    pub(crate) new: String,
    /// The secret of the session that stays.
    pub(crate) kept: Option<String>,
}

/// The rules of sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    db: Db,
    ambient: Ambient,
    keys: Arc<Keys>,
    passwords: Passwords,
    sign_ins: SignIns,
    /// Times of last use that are not written yet: a write per request would dominate its cost.
    used: Mutex<HashMap<SessionId, Timestamp>>,
}

impl Sessions {
    pub(crate) fn new(
        db: Db,
        ambient: Ambient,
        keys: Arc<Keys>,
        passwords: Passwords,
        sign_ins: SignIns,
    ) -> Self {
        Self { db, ambient, keys, passwords, sign_ins, used: Mutex::default() }
    }

    /// The rate limiter of sign-ins of every kind.
    pub(crate) const fn sign_ins(&self) -> &SignIns {
        &self.sign_ins
    }

    /// Signs an existing user in. An unknown email costs the same work and gets the same answer as a wrong password.
    pub(crate) async fn create(
        &self,
        device: &Device,
        email: &str,
        password: &str,
    ) -> Result<SignedIn, Error> {
        let checked = self.check(device, email, password);
        self.sign_ins.counted(device.source(), Some(email), checked).await
    }

    async fn check(&self, device: &Device, email: &str, password: &str) -> Result<SignedIn, Error> {
        let account = match users::fold_email(email) {
            Some(email) => store::users::find_account(&self.db, &email).await?,
            None => None,
        };
        let (user, hash) = account.map_or((None, None), |(user, hash)| (Some(user), hash));
        let is_right = self.passwords.verify(password, hash.clone()).await?;
        let known = user.zip(hash).filter(|_| is_right);
        let (user, hash) = known.ok_or(Error::SignInRefused)?;
        let mut tx = self.db.begin_write().await?;
        self.lock_account(&mut tx, user.id, &hash).await?;
        let opened = self.open_in(&mut tx, user.id, device).await?;
        tx.commit().await?;
        self.signed_in(user.id, opened).await
    }

    /// Locks the account and checks that the password hash, against which the password was verified before the
    /// transaction, is still current: the account may have passed to somebody else meanwhile.
    pub(crate) async fn lock_account(&self, tx: &mut Tx, user: UserId, hash: &str) -> Result<(), Error> {
        store::users::lock(tx, user).await?;
        let current = store::users::find_password_in(tx, user).await?;
        if current.as_deref() == Some(hash) { Ok(()) } else { Err(Error::SignInRefused) }
    }

    /// Creates a session for a user who has been authenticated.
    pub(crate) async fn open(&self, user: User, device: &Device) -> Result<SignedIn, Error> {
        let mut tx = self.db.begin_write().await?;
        let opened = self.open_in(&mut tx, user.id, device).await?;
        tx.commit().await?;
        self.signed_in(user.id, opened).await
    }

    /// Creates a session within a larger transaction; [`Self::signed_in`] follows after its commit.
    pub(crate) async fn open_in(
        &self,
        tx: &mut Tx,
        user: UserId,
        device: &Device,
    ) -> Result<NewlyOpened, Error> {
        let secret = secrets::random_hex::<SESSION_BYTES>(&*self.ambient.entropy);
        let now = self.ambient.clock.now();
        let session = NewSession {
            id: self.ambient.ids.next(),
            user,
            digest: secrets::digest(&secret),
            agent: device.agent().to_owned(),
            place: device.place(),
            created_at: now,
            expires_at: now.plus(LIFETIME),
        };
        store::sessions::insert(tx, &session).await?;
        Ok(NewlyOpened { secret, expires_at: session.expires_at })
    }

    /// The response to a sign-in.
    pub(crate) async fn signed_in(&self, user: UserId, opened: NewlyOpened) -> Result<SignedIn, Error> {
        let NewlyOpened { secret, expires_at } = opened;
        Ok(SignedIn { secret, expires_at, profile: self.get(user).await? })
    }

    /// Issues the identity of the user: without a workspace it has no permissions in any; with one, it has those of the
    /// user's current role there.
    pub(crate) async fn exchange(
        &self,
        secret: &str,
        workspace: Option<WorkspaceId>,
    ) -> Result<Issued, Error> {
        let now = self.ambient.clock.now();
        let digest = secrets::digest(secret);
        let found = match workspace {
            Some(id) => store::sessions::find_in(&self.db, &digest, id).await?,
            None => store::sessions::find(&self.db, &digest).await?.map(|session| (session, None)),
        };
        let is_live = |(session, _): &(FoundSession, Option<Seat>)| !has_ended(session.expires_at, now);
        let (session, seat) = found.filter(is_live).ok_or(Error::SessionRefused)?;
        self.used().insert(session.id, now);
        if workspace.is_some() && seat.is_none() {
            return Err(not_found());
        }
        let permissions = seat.as_ref().map_or_else(PermissionSet::default, |seat| seat.role.permissions());
        let identity = Identity {
            principal: Principal {
                kind: PrincipalKind::User,
                id: session.user.id.to_string(),
                name: session.user.name,
            },
            workspace,
            role: seat.as_ref().map(|seat| seat.role),
            permissions,
            may_publish: seat.as_ref().is_some_and(|seat| seat.publishers.allow(seat.role, permissions)),
            question_log_days: seat.as_ref().and_then(|seat| seat.question_log_days),
            on_behalf_of: None,
            scope: Scope::All,
            plan: seat.map(|seat| seat.plan),
            expires_at: now,
        };
        Ok(self.keys.issue(identity, now, Some(session.expires_at))?)
    }

    /// The user with workspaces and roles.
    pub(crate) async fn get(&self, user: UserId) -> Result<Profile, Error> {
        let found = store::profiles::find(&self.db, user, self.ambient.clock.now()).await?;
        found.ok_or(Error::SessionRefused)
    }

    /// Ends a session; unknown ones are ignored.
    pub(crate) async fn delete(&self, secret: &str) -> Result<(), Error> {
        Ok(store::sessions::delete(&self.db, &secrets::digest(secret)).await?)
    }

    /// The live sessions of a user, newest first, each with whether it is the one with that secret.
    pub(crate) async fn list(
        &self,
        user: UserId,
        secret: Option<&str>,
    ) -> Result<Vec<(ListedSession, bool)>, Error> {
        let current = match secret {
            Some(secret) => store::sessions::find(&self.db, &secrets::digest(secret)).await?,
            None => None,
        };
        let current = current.map(|session| session.id);
        let mut listed = store::sessions::list(&self.db, user, self.ambient.clock.now(), MAX_LISTED).await?;
        let used = self.used();
        for session in &mut listed {
            session.last_used_at = session.last_used_at.max(used.get(&session.id).copied());
        }
        let with_current = |session: ListedSession| {
            let is_current = Some(session.id) == current;
            (session, is_current)
        };
        Ok(listed.into_iter().map(with_current).collect())
    }

    /// Ends one session of a user.
    pub(crate) async fn end(&self, user: UserId, id: SessionId) -> Result<(), Error> {
        let was_there = store::sessions::delete_one(&self.db, user, id).await?;
        if was_there { Ok(()) } else { Err(Error::NotFound("session")) }
    }

    /// Writes times of last use; those that fail are kept for the next flush.
    pub(crate) async fn flush_last_use(&self) -> Result<(), Error> {
        let uses = std::mem::take(&mut *self.used());
        if uses.is_empty() {
            return Ok(());
        }
        let written = store::sessions::record_uses(&self.db, &uses).await;
        if written.is_err() {
            let mut used = self.used();
            for (id, at) in uses {
                let latest = used.entry(id).or_insert(at);
                *latest = at.max(*latest);
            }
        }
        Ok(written?)
    }

    fn used(&self) -> MutexGuard<'_, HashMap<SessionId, Timestamp>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends every session of a user.
    pub(crate) async fn delete_all(&self, user: UserId) -> Result<(), Error> {
        let mut tx = self.db.begin_write().await?;
        store::sessions::delete_of_user(&mut tx, user).await?;
        Ok(tx.commit().await?)
    }

    /// Changes the password of a user and ends all sessions except for the current one: somebody who knew the old
    /// password may have opened the others. A wrong current password counts as a failed sign-in, so that an open session
    /// cannot be used to guess passwords.
    pub(crate) async fn change_password(
        &self,
        source: Option<IpAddr>,
        user: UserId,
        change: &PasswordChange,
    ) -> Result<(), Error> {
        let email = self.get(user).await?.user.email;
        self.sign_ins.counted(source, Some(&email), self.replace_password(user, change)).await
    }

    async fn replace_password(&self, user: UserId, change: &PasswordChange) -> Result<(), Error> {
        let PasswordChange { current, new, kept } = change;
        let mut violations = Vec::new();
        passwords::check("newPassword", new, &mut violations);
        let known = store::users::find_password(&self.db, user).await?;
        let is_right = self.passwords.verify(current, known.clone()).await?;
        let known = known.filter(|_| is_right);
        if known.is_none() {
            violations.push(Violation::new("currentPassword", "wrong", "is not your password"));
        }
        let Some(known) = known.filter(|_| violations.is_empty()) else {
            return Err(Error::Invalid(violations));
        };
        let hash = self.passwords.hash(new, &*self.ambient.entropy).await?;
        let mut tx = self.db.begin_write().await?;
        self.lock_account(&mut tx, user, &known).await?;
        store::users::set_password(&mut tx, user, Some(&hash)).await?;
        match kept.as_deref() {
            Some(secret) => {
                store::sessions::delete_others(&mut tx, user, &secrets::digest(secret)).await?;
            }
            None => store::sessions::delete_of_user(&mut tx, user).await?,
        }
        Ok(tx.commit().await?)
    }

    /// Deletes expired sessions.
    pub(crate) async fn purge(&self) -> Result<u64, Error> {
        Ok(store::sessions::delete_ended(&self.db, self.ambient.clock.now()).await?)
    }
}
