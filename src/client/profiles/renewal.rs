//! Access tokens that are renewed before they end, by one process for all that share the profile.
//!
//! A refresh token is replaced when it is used, and one that comes a second time later ends the grant. So whoever renews
//! holds the lock of the file from before the question until the answer is kept; whoever waited for it takes what the other
//! has got. A process that dies in between loses nothing for a minute: so long the service answers the old one alike.

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

    /// An access token that holds for a while.
    pub(crate) async fn token(&self) -> anyhow::Result<String> {
        let mut held = self.grant.lock().await;
        if !held.holds_at(now()) {
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
        if !grant.holds_at(now()) {
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
