//! The faults.

use std::fmt;
use std::time::Duration;

use cairn_chassis::testing::redis::Server as Redis;
use tokio::time::Instant;

use crate::audit;
use crate::cluster::{Cluster, Index, LINKS, QDRANT, REDIS, SERVICES};
use crate::ledger::Violations;
use crate::numbers::Numbers;
use crate::orders::Refusal;
use crate::qdrant::Qdrant;
use crate::storm::Targets;

/// Below the deadlines of requests, around them, and beyond them.
const HANGS_MILLIS: [u64; 4] = [300, 2_000, 6_000, 17_000];
const DELAYS_MILLIS: [u64; 3] = [5, 50, 400];
const MAX_AWAY_MILLIS: u64 = 4_000;
/// Between clocks of one mesh: usual skews, and a tenth of an identity's lifetime.
const SHIFTS_MILLIS: [i64; 4] = [-20_000, -2_000, 2_000, 20_000];
/// The number of kinds of faults, and without Qdrant.
const KINDS: u64 = 20;
const KINDS_WITHOUT_QDRANT: u64 = 15;
const POSTGRES: &str = "PostgreSQL";
/// All clocks are one target: two that are shifted in opposite directions would differ by twice as much.
const CLOCKS: &str = "clocks";

/// One fault, from its beginning to its end.
#[derive(Debug)]
pub(crate) enum Fault {
    /// `kill -9`, and a restart after a while.
    Kill { service: &'static str, away: Duration },
    /// SIGTERM, and a restart after a while.
    Stop { service: &'static str, away: Duration },
    /// SIGSTOP, and SIGCONT after a while.
    Hang { service: &'static str, lasting: Duration },
    /// Closes every connection, in the middle of responses.
    Cut { link: &'static str },
    /// A network partition: nothing is transferred for a while.
    Partition { link: &'static str, lasting: Duration },
    /// Every chunk is delayed for a while.
    Slow { link: &'static str, delay: Duration, lasting: Duration },
    /// Connections are refused for a while; the server behind the link loses nothing.
    TurnAway { link: &'static str, lasting: Duration },
    /// `kill -9` of PostgreSQL, which its watchdog restarts.
    KillTables,
    /// Writes to PostgreSQL's disk fail for a while: it exits, and its watchdog restarts it.
    DiskOfTables { refusal: Refusal, lasting: Duration },
    /// FLUSHALL: Redis loses all counters.
    FlushRedis,
    /// `kill -9` of Redis, and a restart after a while: it has lost everything.
    KillRedis { away: Duration },
    /// SIGSTOP of Redis, and SIGCONT after a while.
    HangRedis { lasting: Duration },
    /// The clock of a service jumps, and back after a while.
    Clock { service: &'static str, millis: i64, lasting: Duration },
    /// `kill -9` of Qdrant, and a restart after a while: it has lost everything.
    KillQdrant { away: Duration },
    /// SIGSTOP of Qdrant, and SIGCONT after a while.
    HangQdrant { lasting: Duration },
}

impl Fault {
    pub(crate) fn choose(numbers: &mut Numbers, index: Index) -> Self {
        let (links, kinds) = match index {
            Index::Qdrant => (LINKS.as_slice(), KINDS),
            Index::Embedded => (&LINKS[..LINKS.len() - 1], KINDS_WITHOUT_QDRANT),
        };
        let service = *numbers.pick(&SERVICES);
        let link = *numbers.pick(links);
        let away = Duration::from_millis(numbers.below(MAX_AWAY_MILLIS));
        let lasting = Duration::from_millis(*numbers.pick(&HANGS_MILLIS));
        let delay = Duration::from_millis(*numbers.pick(&DELAYS_MILLIS));
        let millis = *numbers.pick(&SHIFTS_MILLIS);
        let refusal = *numbers.pick(&[Refusal::Full, Refusal::Broken]);
        match numbers.below(kinds) {
            0..3 => Self::Kill { service, away },
            3 => Self::Stop { service, away },
            4 | 5 => Self::Hang { service, lasting },
            6 | 7 => Self::Cut { link },
            8 => Self::Partition { link, lasting },
            9 => Self::Slow { link, delay, lasting },
            10 => Self::KillTables,
            // From a side stream: these kinds were added later, and recorded seeds must keep their choices.
            11 => match numbers.side_stream().below(4) {
                0 => Self::FlushRedis,
                1 | 2 => Self::KillRedis { away },
                _ => Self::HangRedis { lasting },
            },
            12 => Self::DiskOfTables { refusal, lasting },
            13 => Self::Clock { service, millis, lasting },
            14 => Self::TurnAway { link, lasting },
            15 | 16 => Self::KillQdrant { away },
            17 => Self::HangQdrant { lasting },
            18 => Self::Partition { link: QDRANT, lasting },
            _ => Self::TurnAway { link: QDRANT, lasting },
        }
    }

    /// What it affects; overlapping faults must not share a target.
    pub(crate) fn targets(&self) -> Targets {
        match self {
            Self::Kill { service, .. } | Self::Stop { service, .. } | Self::Hang { service, .. } => {
                vec![*service]
            }
            Self::Cut { link }
            | Self::Partition { link, .. }
            | Self::Slow { link, .. }
            | Self::TurnAway { link, .. } => vec![*link],
            Self::KillTables | Self::DiskOfTables { .. } => vec![POSTGRES],
            Self::FlushRedis | Self::KillRedis { .. } | Self::HangRedis { .. } => vec![REDIS],
            Self::Clock { service, .. } => vec![*service, CLOCKS],
            Self::KillQdrant { .. } | Self::HangQdrant { .. } => vec![QDRANT],
        }
    }

    /// Injects it, and waits until it is over.
    pub(crate) async fn happen(&self, cluster: &Cluster, violations: &Violations) {
        match self {
            Self::Kill { service, away } => {
                cluster.note_absence(service);
                cluster.kill(service);
                come_back(cluster, service, *away).await;
            }
            Self::Stop { service, away } => {
                cluster.note_absence(service);
                cluster.end(service).await;
                come_back(cluster, service, *away).await;
            }
            Self::Hang { service, lasting } => {
                cluster.note_absence(service);
                cluster.signal(service, "STOP");
                tokio::time::sleep(*lasting).await;
                cluster.signal(service, "CONT");
                cluster.note_return(service);
            }
            Self::Cut { link } => {
                if let Some(link) = cluster.link(link) {
                    link.cut();
                }
            }
            Self::Partition { link, lasting } => {
                if let Some(link) = cluster.link(link) {
                    link.freeze(*lasting).await;
                }
            }
            Self::Slow { link, delay, lasting } => {
                if let Some(link) = cluster.link(link) {
                    link.slow(*delay, *lasting).await;
                }
            }
            Self::TurnAway { link, lasting } => {
                if let Some(link) = cluster.link(link) {
                    link.turn_away(*lasting).await;
                }
            }
            Self::KillTables => cluster.kill_tables(),
            Self::DiskOfTables { refusal, lasting } => {
                cluster.refuse_writes_of_tables(Some(*refusal));
                tokio::time::sleep(*lasting).await;
                cluster.refuse_writes_of_tables(None);
            }
            Self::FlushRedis => {
                let Some(redis) = cluster.redis() else { return };
                redis.lock().await.flush().await.unwrap();
            }
            Self::KillRedis { away } => {
                let Some(redis) = cluster.redis() else { return };
                let mut redis = redis.lock().await;
                kill_redis(cluster, &mut redis, *away, violations).await;
            }
            Self::HangRedis { lasting } => {
                let Some(redis) = cluster.redis() else { return };
                let (redis, end) = (redis.lock().await, Instant::now() + *lasting);
                redis.hang().unwrap();
                audit::scripts(cluster.access(), REDIS, violations).await;
                tokio::time::sleep_until(end).await;
                redis.resume().unwrap();
            }
            Self::Clock { service, millis, lasting } => {
                cluster.shift_clock(service, *millis);
                tokio::time::sleep(*lasting).await;
                cluster.shift_clock(service, 0);
            }
            Self::KillQdrant { away } => {
                let Some(qdrant) = cluster.qdrant() else { return };
                kill_qdrant(cluster, qdrant, *away, violations).await;
            }
            Self::HangQdrant { lasting } => {
                let Some(qdrant) = cluster.qdrant() else { return };
                let end = Instant::now() + *lasting;
                qdrant.signal("STOP");
                audit::scripts(cluster.access(), QDRANT, violations).await;
                tokio::time::sleep_until(end).await;
                qdrant.signal("CONT");
            }
        }
    }
}

/// Without Redis requests must succeed: each gateway counts on its own.
async fn kill_redis(cluster: &Cluster, redis: &mut Redis, away: Duration, violations: &Violations) {
    let back = Instant::now() + away;
    redis.kill().unwrap();
    audit::scripts(cluster.access(), REDIS, violations).await;
    tokio::time::sleep_until(back).await;
    redis.start_again().await.unwrap();
}

/// Restarts a service after a while.
async fn come_back(cluster: &Cluster, service: &str, away: Duration) {
    tokio::time::sleep(away).await;
    cluster.start_one(service);
    cluster.note_return(service);
}

/// While it is down, searches must fail rather than return nothing, and scripts must work.
async fn kill_qdrant(cluster: &Cluster, qdrant: &Qdrant, away: Duration, violations: &Violations) {
    let back = Instant::now() + away;
    qdrant.kill();
    audit::search_without_index(cluster.access(), violations).await;
    audit::scripts(cluster.access(), QDRANT, violations).await;
    tokio::time::sleep_until(back).await;
    qdrant.start_again();
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill { service, away } => write!(formatter, "kill -9 {service}, back after {away:?}"),
            Self::Stop { service, away } => write!(formatter, "stop {service}, back after {away:?}"),
            Self::Hang { service, lasting } => write!(formatter, "{service} hangs for {lasting:?}"),
            Self::Cut { link } => write!(formatter, "connections to {link} are cut"),
            Self::Partition { link, lasting } => {
                write!(formatter, "nothing gets through to {link} for {lasting:?}")
            }
            Self::Slow { link, delay, lasting } => {
                write!(formatter, "{link} is {delay:?} late for {lasting:?}")
            }
            Self::TurnAway { link, lasting } => {
                write!(formatter, "nobody listens at {link} for {lasting:?}")
            }
            Self::KillTables => write!(formatter, "kill -9 PostgreSQL"),
            Self::DiskOfTables { refusal, lasting } => {
                write!(formatter, "the disk of PostgreSQL is {refusal:?} for {lasting:?}")
            }
            Self::FlushRedis => write!(formatter, "Redis forgets everything"),
            Self::KillRedis { away } => {
                write!(formatter, "kill -9 Redis, back with nothing after {away:?}")
            }
            Self::HangRedis { lasting } => write!(formatter, "Redis hangs for {lasting:?}"),
            Self::Clock { service, millis, lasting } => {
                write!(formatter, "the clock of {service} is {millis} ms off for {lasting:?}")
            }
            Self::KillQdrant { away } => {
                write!(formatter, "kill -9 Qdrant, back with nothing after {away:?}")
            }
            Self::HangQdrant { lasting } => write!(formatter, "Qdrant hangs for {lasting:?}"),
        }
    }
}
