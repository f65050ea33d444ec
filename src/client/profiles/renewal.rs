//! Refreshes access tokens before they expire, one process at a time for all that share the profile.
//!
//! A refresh token is rotated on use, and reuse of an old one later revokes the grant. So a process holds the file lock
//! from before the request until the new tokens are stored; one that waited for the lock uses the tokens it then finds.
//! A process that dies in between loses nothing as long as the service's grace period of a minute lasts, in which the
//! old token gets the same answer.

use anyhow::Context as _;
use cairn_chassis::clock::{Clock as _, SystemClock};
use tokio::sync::Mutex;

use super::model::{Credential, Grant};
use super::store::Store;
use crate::client::Ended;
use crate::client::login::oauth;

/// The tokens of a profile.
pub(crate) struct Renewing {
    store: Store,
    profile: String,
    grant: Mutex<Grant>,
    client: reqwest::Client,
}

impl Renewing {
    pub(crate) fn new(store: Store, profile: String, grant: Grant, client: reqwest::Client) -> Self {
        Self { store, profile, grant: Mutex::new(grant), client }
    }

    /// An access token that is valid for a while.
    pub(crate) async fn token(&self) -> anyhow::Result<String> {
        let mut held = self.grant.lock().await;
        if !held.is_valid_at(now()) {
            *held = self.renewed().await?;
        }
        Ok(held.access_token.clone())
    }

    async fn renewed(&self) -> anyhow::Result<Grant> {
        let locked = self.store.lock().await?;
        let mut profiles = locked.read()?;
        let kept = profiles.profiles.get_mut(&self.profile).map(|profile| &mut profile.credential);
        let Some(Credential::Grant(grant)) = kept else {
            let message = format!("somebody has logged out of the profile {}: log in again", self.profile);
            return Err(Ended::not_let_in(message).into());
        };
        if !grant.is_valid_at(now()) {
            *grant = oauth::renew(&self.client, grant, now()).await?;
            let renewed = grant.clone();
            locked.write(&profiles).context("the renewed tokens cannot be kept")?;
            return Ok(renewed);
        }
        Ok(grant.clone())
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    SystemClock.now().as_seconds()
}
