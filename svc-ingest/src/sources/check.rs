//! Tests settings and credentials against the provider before anything is stored.

use std::sync::Arc;
use std::time::Duration;

use cairn_providers::{Call, Fault};
use tokio::time::Instant;

use super::input::{self, Draft};
use super::{SOURCES, Sources};
use crate::Error;
use crate::runs::Check;
use crate::scope::Caller;

/// Keeps the response within eight seconds.
const MAX_TIME: Duration = Duration::from_millis(7_500);

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckAnswer {
    pub(crate) ok: bool,
    /// The account of the credentials, as the provider names it.
    pub(crate) account: Option<String>,
    /// For people; never text of the provider.
    pub(crate) message: String,
}

impl Sources {
    /// Makes a test request, which counts against no budget.
    pub(crate) async fn check(&self, caller: &Caller, draft: Draft) -> Result<CheckAnswer, Error> {
        caller.require_whole_workspace(SOURCES)?;
        let runner = &self.runner;
        let checked = input::check(draft, runner.connect.as_ref(), false)?;
        let clock = Arc::clone(&runner.context.clock);
        let call = Call::new(runner.connect.guard().clone(), Arc::new(Check::new()), clock)
            .with_deadline(Instant::now() + MAX_TIME);
        let asked = tokio::time::timeout(MAX_TIME, checked.provider.check(&call)).await;
        match asked.unwrap_or(Err(Fault::Unavailable)) {
            Ok(account) => {
                Ok(CheckAnswer { ok: true, account: account.name, message: account.message.into_owned() })
            }
            Err(Fault::Address) => {
                Err(Error::invalid("settings", "invalid_value", Fault::Address.to_string()))
            }
            Err(Fault::Budget) => {
                let message = "the provider sends on from address to address".to_owned();
                Ok(CheckAnswer { ok: false, account: None, message })
            }
            Err(fault) => Ok(CheckAnswer { ok: false, account: None, message: fault.to_string() }),
        }
    }
}
