//! One atomic Lua script, one round trip.

use std::time::Duration;

use cairn_chassis::outbound;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{Client, IntoConnectionInfo as _, RedisError, RedisResult, Script};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::RedisUrl;
use crate::ConfigError;
use crate::rate_limit::{Counted, Key, Quota, RateLimiter, Unreachable, Window};

const SCRIPT: &str = include_str!("../take.lua");

impl RedisUrl {
    fn nodes(&self) -> Vec<&str> {
        self.0.split(',').map(str::trim).filter(|node| !node.is_empty()).collect()
    }

    /// The client, not connected yet.
    fn target(&self, patience: Duration) -> Result<Target, ConfigError> {
        // The parser's message may contain the password.
        let wrong = |_: RedisError| ConfigError::RedisUrl;
        match self.nodes().as_slice() {
            [] => Err(ConfigError::RedisUrl),
            [only] => {
                let place = (*only).into_connection_info().map_err(wrong)?;
                Client::open(place).map(Box::new).map(Target::One).map_err(wrong)
            }
            several => {
                let builder = ClusterClient::builder(several.iter().copied())
                    .connection_timeout(patience)
                    .response_timeout(patience)
                    .retries(1);
                builder.build().map(Box::new).map(Target::Cluster).map_err(wrong)
            }
        }
    }
}

enum Target {
    One(Box<Client>),
    Cluster(Box<ClusterClient>),
}

#[derive(Clone)]
enum Connection {
    One(ConnectionManager),
    Cluster(ClusterConnection),
}

impl Target {
    async fn connect(&self, patience: Duration) -> RedisResult<Connection> {
        match self {
            Self::One(client) => {
                let config = ConnectionManagerConfig::new()
                    .set_connection_timeout(Some(patience))
                    .set_response_timeout(Some(patience))
                    .set_number_of_retries(1);
                ConnectionManager::new_lazy_with_config(Client::clone(client), config).map(Connection::One)
            }
            Self::Cluster(client) => client.get_async_connection().await.map(Connection::Cluster),
        }
    }
}

/// The Redis engine.
pub(super) struct Redis {
    target: Target,
    /// Reconnects by itself after the first successful connection.
    connection: OnceCell<Connection>,
    script: Script,
    patience: Duration,
    #[cfg(test)]
    clock: Option<std::sync::Arc<dyn cairn_chassis::clock::Clock>>,
}

cairn_chassis::debug_fields!(Redis);

impl Redis {
    /// Connects with the first request. An operation fails if it takes longer than `patience`.
    pub(super) fn new(url: &RedisUrl, patience: Duration) -> Result<Self, ConfigError> {
        outbound::install_crypto();
        Ok(Self {
            target: url.target(patience)?,
            connection: OnceCell::new(),
            script: Script::new(SCRIPT),
            patience,
            #[cfg(test)]
            clock: None,
        })
    }

    /// The second passed to the script: `None`, so that Redis uses its own clock and all gateways agree.
    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "tests have a clock of their own")]
    const fn second(&self) -> Option<i64> {
        None
    }

    #[cfg(test)]
    fn second(&self) -> Option<i64> {
        self.clock.as_ref().map(|clock| clock.now().as_seconds())
    }

    /// Adds units to the windows; negative units are a refund.
    async fn change(&self, key: &Key, quota: Quota, units: i64) -> Result<Vec<i64>, Unreachable> {
        let mut invocation = self.script.prepare_invoke();
        invocation.arg(units).arg(self.second().map(|second| second.to_string()).unwrap_or_default());
        for (window, limit) in quota.counted() {
            invocation.key(name(key, window)).arg(window.seconds()).arg(limit);
        }
        let asked = async {
            match self.connection.get_or_try_init(|| self.target.connect(self.patience)).await?.clone() {
                Connection::One(mut connection) => invocation.invoke_async(&mut connection).await,
                Connection::Cluster(mut connection) => invocation.invoke_async(&mut connection).await,
            }
        };
        match timeout(self.patience, asked).await {
            Ok(answer) => answer.map_err(|error: RedisError| Unreachable(error.to_string())),
            Err(_elapsed) => Err(Unreachable(format!("no answer within {:?}", self.patience))),
        }
    }
}

/// The braces are the hash tag: all windows of a key are on one node of a cluster.
fn name(key: &Key, window: Window) -> String {
    let letter = match window {
        Window::Minute => 'm',
        Window::Hour => 'h',
        Window::Day => 'd',
    };
    format!("cairn:limit:{{{}}}:{letter}", key.0)
}

/// Parses `{admitted, now, used…}`.
fn read(quota: Quota, units: u32, answer: &[i64]) -> Option<Counted> {
    let (admitted, second, rest) = match answer {
        [admitted, second, rest @ ..] if rest.len() == quota.counted().count() => (*admitted, *second, rest),
        _ => return None,
    };
    let mut in_order = rest.iter().map(|used| u32::try_from(*used).unwrap_or(u32::MAX));
    let used = quota.0.map(|limit| limit.and_then(|_| in_order.next()).unwrap_or_default());
    Some(Counted { quota, units, admitted: admitted == 1, used, second })
}

#[tonic::async_trait]
impl RateLimiter for Redis {
    async fn take(&self, key: &Key, quota: Quota, units: u32) -> Result<Counted, Unreachable> {
        if quota.smallest().is_none() {
            return Ok(Counted::free(quota, units));
        }
        let answer = self.change(key, quota, i64::from(units)).await?;
        read(quota, units, &answer)
            .ok_or_else(|| Unreachable("an answer that is none of the script's".to_owned()))
    }

    async fn refund(&self, key: &Key, quota: Quota, units: u32) -> Result<(), Unreachable> {
        if quota.smallest().is_none() {
            return Ok(());
        }
        self.change(key, quota, -i64::from(units)).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cairn_chassis::clock::{Clock, ManualClock};
    use cairn_chassis::testing::redis::{self as throwaway, Mode};

    use super::*;
    use crate::rate_limit::contract;

    /// Generous, so that no test depends on the speed of the machine.
    const TEST_TIMEOUT: Duration = Duration::from_secs(60);

    async fn keeps_the_contract(mode: Mode, url_of: impl Fn(String) -> String) {
        let Some(server) = throwaway::server(mode).await else { return };
        let clock = contract::clock();
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let url = RedisUrl::from(url_of(server.url()));
        let engine = Redis { clock: Some(shared), ..Redis::new(&url, TEST_TIMEOUT).unwrap() };
        contract::run(Arc::new(engine), &clock, &format!("redis, {mode:?}")).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn it_keeps_the_contract_on_one_server() {
        keeps_the_contract(Mode::Alone, |url| url).await;
    }

    /// A cluster rejects a script whose keys are in different slots, even with a single node.
    #[tokio::test(flavor = "multi_thread")]
    async fn it_keeps_the_contract_in_a_cluster() {
        keeps_the_contract(Mode::Cluster, |url| format!("{url},{url}")).await;
    }

    #[tokio::test]
    async fn two_gateways_share_the_windows_of_the_servers_clock() {
        let Some(server) = throwaway::server(Mode::Alone).await else { return };
        let url = RedisUrl::from(server.url());
        let (one, other) = (Redis::new(&url, TEST_TIMEOUT).unwrap(), Redis::new(&url, TEST_TIMEOUT).unwrap());
        let (key, quota) = (Key::new("token", "shared"), Quota::new(None, None, Some(2)));
        let first = one.take(&key, quota, 1).await.unwrap();
        let second = other.take(&key, quota, 1).await.unwrap();
        // Midnight may have passed between the two.
        let same_day = Window::Day.number_at(first.second) == Window::Day.number_at(second.second);
        assert!(second.used == [0, 0, 2] || !same_day, "{first:?}, {second:?}");
        let system = cairn_chassis::clock::SystemClock.now().as_seconds();
        assert!((second.second - system).abs() < 600, "{} is not about {system}", second.second);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn one_that_was_killed_is_found_again() {
        let Some(mut server) = throwaway::server(Mode::Alone).await else { return };
        let engine = Redis::new(&RedisUrl::from(server.url()), TEST_TIMEOUT).unwrap();
        let (key, quota) = (Key::new("token", "again"), Quota::new(None, None, Some(2)));
        assert_eq!(engine.take(&key, quota, 2).await.unwrap().used, [0, 0, 2]);
        server.kill().unwrap();
        assert!(engine.take(&key, quota, 1).await.is_err());
        server.start_again().await.unwrap();
        let found = async {
            loop {
                match engine.take(&key, quota, 1).await {
                    Ok(counted) => break counted,
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        };
        assert_eq!(timeout(TEST_TIMEOUT, found).await.unwrap().used, [0, 0, 1]);
    }

    #[tokio::test]
    async fn nobody_there_is_an_error() {
        let nowhere = RedisUrl::from("redis://127.0.0.1:1".to_owned());
        let (engine, key) = (Redis::new(&nowhere, TEST_TIMEOUT).unwrap(), Key::new("token", "t"));
        assert!(engine.take(&key, Quota::new(Some(1), None, None), 1).await.is_err());
        assert!(engine.take(&key, Quota::default(), 1).await.unwrap().admitted);
    }

    #[test]
    fn an_address_that_cannot_be_used_is_refused_without_repeating_it() {
        for odd in [
            "",
            ",",
            "localhost:6379",
            "http://u:secret@h",
            "redis://u:secret@",
            "redis://h,http://u:secret@h",
        ] {
            let error = RedisUrl::from(odd.to_owned()).target(Duration::ZERO).err().unwrap();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        for good in ["redis://h", "rediss://u:secret@h:6380/2", "unix:///tmp/s", "redis://a:1, redis://b:2"] {
            let url = RedisUrl::from(good.to_owned());
            assert!(url.target(Duration::ZERO).is_ok(), "{good}");
            assert!(!format!("{url:?}").contains("secret"));
        }
    }

    #[test]
    fn an_answer_is_read_by_the_windows_that_are_counted() {
        let quota = Quota::new(Some(5), None, Some(9));
        let counted = read(quota, 1, &[0, 77, 4, 8]).unwrap();
        assert_eq!((counted.admitted, counted.second, counted.used), (false, 77, [4, 0, 8]));
        assert_eq!(read(quota, 1, &[0, 77, 4]), None);
        assert_eq!(read(quota, 1, &[]), None);
    }

    #[test]
    fn the_keys_of_a_token_bear_one_hash_tag() {
        let key = Key::new("token", "t");
        assert_eq!(name(&key, Window::Minute), "cairn:limit:{token:t}:m");
        assert_eq!(name(&key, Window::Day), "cairn:limit:{token:t}:d");
    }
}
