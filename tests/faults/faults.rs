//! What goes wrong.

use std::fmt;
use std::time::Duration;

use crate::access::NOTICED;
use crate::cluster::{Cluster, LINKS, SERVICES};
use crate::numbers::Numbers;
use crate::orders::Refusal;

/// Below the deadlines of requests, about them, and beyond them.
const HANGS_MILLIS: [u64; 4] = [300, 2_000, 6_000, 17_000];
const DELAYS_MILLIS: [u64; 3] = [5, 50, 400];
const MOST_AWAY_MILLIS: u64 = 4_000;
/// Between clocks of one mesh: what is usual, and a tenth of what an identity lives.
const SHIFTS_MILLIS: [i64; 4] = [-20_000, -2_000, 2_000, 20_000];

/// One fault, from its beginning to its end.
#[derive(Debug)]
pub(crate) enum Fault {
    /// `kill -9`, and a start some time later.
    Kill { service: &'static str, away: Duration },
    /// SIGTERM, and a start some time later.
    Stop { service: &'static str, away: Duration },
    /// SIGSTOP, and SIGCONT some time later.
    Hang { service: &'static str, lasting: Duration },
    /// Every connection is closed, in the middle of answers.
    Cut { link: &'static str },
    /// Nothing goes through for a while.
    Partition { link: &'static str, lasting: Duration },
    /// Every piece is late for a while.
    Slow { link: &'static str, delay: Duration, lasting: Duration },
    /// `kill -9` of PostgreSQL, which comes back by itself.
    KillTables,
    /// The disk of PostgreSQL takes nothing for a while: it ends itself then, and comes back by itself.
    DiskOfTables { refusal: Refusal, lasting: Duration },
    /// Redis forgets all that gateways have counted.
    FlushRedis,
    /// The clock of a service jumps, and back some time later.
    Clock { service: &'static str, millis: i64, lasting: Duration },
}

impl Fault {
    pub(crate) fn choose(numbers: &mut Numbers) -> Self {
        let service = *numbers.pick(&SERVICES);
        let link = *numbers.pick(&LINKS);
        let away = Duration::from_millis(numbers.below(MOST_AWAY_MILLIS));
        let lasting = Duration::from_millis(*numbers.pick(&HANGS_MILLIS));
        let delay = Duration::from_millis(*numbers.pick(&DELAYS_MILLIS));
        let millis = *numbers.pick(&SHIFTS_MILLIS);
        let refusal = *numbers.pick(&[Refusal::Full, Refusal::Broken]);
        match numbers.below(14) {
            0..3 => Self::Kill { service, away },
            3 => Self::Stop { service, away },
            4 | 5 => Self::Hang { service, lasting },
            6 | 7 => Self::Cut { link },
            8 => Self::Partition { link, lasting },
            9 => Self::Slow { link, delay, lasting },
            10 => Self::KillTables,
            11 => Self::FlushRedis,
            12 => Self::DiskOfTables { refusal, lasting },
            _ => Self::Clock { service, millis, lasting },
        }
    }

    /// Lets it happen, and waits until it is over.
    pub(crate) async fn happen(&self, cluster: &mut Cluster) {
        match self {
            Self::Kill { service, away } => {
                cluster.note_disturbance(service);
                cluster.kill(service);
                tokio::time::sleep(*away).await;
                cluster.start_one(service);
                tokio::time::sleep(NOTICED).await;
                cluster.note_disturbance(service);
            }
            Self::Stop { service, away } => {
                cluster.note_disturbance(service);
                cluster.end(service).await;
                tokio::time::sleep(*away).await;
                cluster.start_one(service);
                tokio::time::sleep(NOTICED).await;
                cluster.note_disturbance(service);
            }
            Self::Hang { service, lasting } => {
                cluster.note_disturbance(service);
                cluster.signal(service, "STOP");
                tokio::time::sleep(*lasting).await;
                cluster.signal(service, "CONT");
                cluster.note_disturbance(service);
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
            Self::KillTables => cluster.kill_tables(),
            Self::DiskOfTables { refusal, lasting } => {
                cluster.refuse_writes_of_tables(Some(*refusal));
                tokio::time::sleep(*lasting).await;
                cluster.refuse_writes_of_tables(None);
            }
            Self::FlushRedis => cluster.flush_redis().await,
            Self::Clock { service, millis, lasting } => {
                cluster.shift_clock(service, *millis);
                tokio::time::sleep(*lasting).await;
                cluster.shift_clock(service, 0);
            }
        }
    }
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
            Self::KillTables => write!(formatter, "kill -9 PostgreSQL"),
            Self::DiskOfTables { refusal, lasting } => {
                write!(formatter, "the disk of PostgreSQL is {refusal:?} for {lasting:?}")
            }
            Self::FlushRedis => write!(formatter, "Redis forgets everything"),
            Self::Clock { service, millis, lasting } => {
                write!(formatter, "the clock of {service} is {millis} ms off for {lasting:?}")
            }
        }
    }
}
