//! `cairn up` on SQLite, and what goes wrong with it.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use crate::access::{Access, NOTICED};
use crate::numbers::Numbers;
use crate::orders::{Library, Orders, Refusal};
use crate::support::process::Process;
use crate::support::scratch::Scratch;
use crate::up::Up;

/// Below the deadlines of requests, about them, and beyond them.
const HANGS_MILLIS: [u64; 4] = [300, 2_000, 6_000, 17_000];
/// Well below what an identity lives: one that is used at that moment is still good after it.
const SHIFTS_MILLIS: [i64; 4] = [-100_000, -2_000, 2_000, 100_000];
const LASTING_MILLIS: [u64; 3] = [200, 1_500, 5_000];
const MOST_AWAY_MILLIS: u64 = 2_000;

/// One process with its data folder.
#[derive(Debug)]
pub(crate) struct Single {
    up: Up,
    access: Access,
    /// Nothing where no library can be built.
    orders: Option<Orders>,
    _folder: Scratch,
}

impl Single {
    pub(crate) async fn start() -> Self {
        let folder = Scratch::new();
        let library = Library::build(folder.path());
        if let Err(why) = &library {
            crate::say(&format!("skipped: clock and disk: {why}"));
        }
        let orders = library.ok().map(|library| Orders::new(&library, &folder.path().join("orders")));
        let shelf = folder.path().join("shelf");
        std::fs::create_dir(&shelf).unwrap();
        let roots = shelf.display().to_string();
        let up = Up::start(&environment(orders.as_ref(), &roots)).await;
        let disturbed = Rc::new(Cell::new(0));
        let access = Access { base_url: up.base_url(), owner: up.owner.clone(), disturbed, shelf };
        Self { up, access, orders, _folder: folder }
    }

    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    /// Asks it to stop; what `cairn doctor` says of its folder when that is not sound.
    pub(crate) async fn stop(&mut self) -> Result<(), String> {
        self.up.stop().await
    }

    pub(crate) fn show_log(&self) {
        self.up.process.iter().for_each(Process::show_log);
    }

    fn start_again(&mut self) {
        let roots = self.access.shelf.display().to_string();
        self.up.launch(&environment(self.orders.as_ref(), &roots));
    }

    fn signal(&self, name: &str) {
        self.up.process.as_ref().unwrap().signal(name);
    }
}

fn environment<'a>(orders: Option<&'a Orders>, roots: &'a str) -> Vec<(&'a str, &'a str)> {
    let ordered = orders.into_iter().flat_map(Orders::environment);
    ordered.chain([("CAIRN_SOURCE_ROOTS", roots)]).collect()
}

/// One fault, from its beginning to its end.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// `kill -9`, and a start some time later.
    Kill { away: Duration },
    /// SIGTERM, and a start some time later.
    Stop { away: Duration },
    /// SIGSTOP, and SIGCONT some time later.
    Hang { lasting: Duration },
    /// The disk takes nothing for a while.
    Disk { refusal: Refusal, lasting: Duration },
    /// The disk takes nothing for a while, and then the process is killed.
    DiskThenKill { refusal: Refusal, lasting: Duration },
    /// The clock on the wall jumps, and back some time later.
    Clock { millis: i64, lasting: Duration },
}

impl Trouble {
    pub(crate) fn choose(numbers: &mut Numbers) -> Self {
        let away = Duration::from_millis(numbers.below(MOST_AWAY_MILLIS));
        let hanging = Duration::from_millis(*numbers.pick(&HANGS_MILLIS));
        let lasting = Duration::from_millis(*numbers.pick(&LASTING_MILLIS));
        let refusal = *numbers.pick(&[Refusal::Full, Refusal::Broken]);
        let millis = *numbers.pick(&SHIFTS_MILLIS);
        match numbers.below(10) {
            0..3 => Self::Kill { away },
            3 => Self::Stop { away },
            4 => Self::Hang { lasting: hanging },
            5 | 6 => Self::Disk { refusal, lasting },
            7 => Self::DiskThenKill { refusal, lasting },
            _ => Self::Clock { millis, lasting },
        }
    }

    /// Lets it happen, and waits until it is over.
    pub(crate) async fn happen(&self, single: &mut Single) {
        match self {
            Self::Kill { away } => kill(single, *away).await,
            Self::Stop { away } => {
                single.access.note_disturbance();
                let mut process = single.up.process.take().unwrap();
                process.ask_to_stop();
                process.exit().await;
                come_back(single, *away).await;
            }
            Self::Hang { lasting } => {
                single.access.note_disturbance();
                single.signal("STOP");
                tokio::time::sleep(*lasting).await;
                single.signal("CONT");
                single.access.note_disturbance();
            }
            Self::Disk { refusal, lasting } => {
                refuse(single, Some(*refusal));
                tokio::time::sleep(*lasting).await;
                refuse(single, None);
            }
            Self::DiskThenKill { refusal, lasting } => {
                refuse(single, Some(*refusal));
                tokio::time::sleep(*lasting).await;
                single.access.note_disturbance();
                single.up.process.take().unwrap().kill();
                refuse(single, None);
                come_back(single, Duration::ZERO).await;
            }
            Self::Clock { millis, lasting } => {
                shift_clock(single, *millis);
                tokio::time::sleep(*lasting).await;
                shift_clock(single, 0);
            }
        }
    }
}

async fn kill(single: &mut Single, away: Duration) {
    single.access.note_disturbance();
    single.up.process.take().unwrap().kill();
    come_back(single, away).await;
}

/// Starts it again some time later.
async fn come_back(single: &mut Single, away: Duration) {
    tokio::time::sleep(away).await;
    single.start_again();
    tokio::time::sleep(NOTICED).await;
    single.access.note_disturbance();
}

fn refuse(single: &Single, refusal: Option<Refusal>) {
    if let Some(orders) = &single.orders {
        orders.refuse_writes(refusal);
    }
}

fn shift_clock(single: &Single, millis: i64) {
    if let Some(orders) = &single.orders {
        orders.shift_clock(millis);
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill { away } => write!(formatter, "kill -9, back after {away:?}"),
            Self::Stop { away } => write!(formatter, "stop, back after {away:?}"),
            Self::Hang { lasting } => write!(formatter, "it hangs for {lasting:?}"),
            Self::Disk { refusal, lasting } => write!(formatter, "the disk is {refusal:?} for {lasting:?}"),
            Self::DiskThenKill { refusal, lasting } => {
                write!(formatter, "the disk is {refusal:?} for {lasting:?}, then kill -9")
            }
            Self::Clock { millis, lasting } => {
                write!(formatter, "the clock is {millis} ms off for {lasting:?}")
            }
        }
    }
}
