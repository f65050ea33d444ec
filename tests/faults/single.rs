//! `cairn up` on SQLite, and its faults.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use crate::access::{Absences, Access};
use crate::ledger::Violations;
use crate::numbers::Numbers;
use crate::orders::{Library, Orders, Refusal};
use crate::storm::Targets;
use crate::support::process::Process;
use crate::support::scratch::Scratch;
use crate::up::Up;

/// Below the deadlines of requests, around them, and beyond them.
const HANGS_MILLIS: [u64; 4] = [300, 2_000, 6_000, 17_000];
/// Well below the lifetime of an identity, so one that is in use stays valid.
const SHIFTS_MILLIS: [i64; 4] = [-100_000, -2_000, 2_000, 100_000];
const LASTING_MILLIS: [u64; 3] = [200, 1_500, 5_000];
const MAX_AWAY_MILLIS: u64 = 2_000;
/// The line that it prints when it is ready.
const READY: &str = "Cairn is ready at";
/// The targets of faults. A process is not started on a failing disk.
const PROCESS: &str = "process";
const DISK: &str = "disk";
const CLOCK: &str = "clock";

/// One process with its data folder.
#[derive(Debug)]
pub(crate) struct Single {
    up: RefCell<Up>,
    access: Access,
    /// `None` if the library cannot be built.
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
        let absences = Rc::new(Absences::default());
        let access = Access { base_url: up.base_url(), owner: up.owner.clone(), absences, shelf };
        Self { up: RefCell::new(up), access, orders, _folder: folder }
    }

    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    /// Stops it; then returns the findings of `cairn doctor`, if any.
    pub(crate) async fn stop(&mut self) -> Result<(), String> {
        self.up.get_mut().stop().await
    }

    pub(crate) fn show_log(&self) {
        self.up.borrow().process.iter().for_each(Process::show_log);
    }

    /// Restarts it if it exited by itself, see [`Stage::tend`](crate::stage::Stage::tend).
    pub(crate) fn tend(&self, violations: &Violations) {
        let has_ended = self.up.borrow_mut().process.as_mut().is_some_and(|it| it.ended().is_some());
        let has_started = self.up.borrow().process.as_ref().is_some_and(|it| it.output().contains(READY));
        if has_started {
            self.access.absences.started();
        }
        if !has_ended {
            return;
        }
        let said = self.take().output();
        if has_started {
            violations.note(format!("it ended by itself: {said}"));
        }
        crate::say("it has ended by itself, and is started again");
        self.start_again();
    }

    fn start_again(&self) {
        self.access.absences.start();
        let roots = self.access.shelf.display().to_string();
        self.up.borrow_mut().launch(&environment(self.orders.as_ref(), &roots));
    }

    fn take(&self) -> Process {
        self.up.borrow_mut().process.take().unwrap()
    }

    fn signal(&self, name: &str) {
        self.up.borrow().process.as_ref().unwrap().signal(name);
    }
}

fn environment<'a>(orders: Option<&'a Orders>, roots: &'a str) -> Vec<(&'a str, &'a str)> {
    let ordered = orders.into_iter().flat_map(Orders::environment);
    ordered.chain([("CAIRN_SOURCE_ROOTS", roots)]).collect()
}

/// One fault, from its beginning to its end.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// `kill -9`, and a restart after a while.
    Kill { away: Duration },
    /// SIGTERM, and a restart after a while.
    Stop { away: Duration },
    /// SIGSTOP, and SIGCONT after a while.
    Hang { lasting: Duration },
    /// Writes to the disk fail for a while.
    Disk { refusal: Refusal, lasting: Duration },
    /// Writes to the disk fail for a while, and then the process is killed.
    DiskThenKill { refusal: Refusal, lasting: Duration },
    /// The wall clock jumps, and back after a while.
    Clock { millis: i64, lasting: Duration },
}

impl Trouble {
    pub(crate) fn choose(numbers: &mut Numbers) -> Self {
        let away = Duration::from_millis(numbers.below(MAX_AWAY_MILLIS));
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

    /// What it affects; overlapping faults must not share a target.
    pub(crate) fn targets(&self) -> Targets {
        match self {
            Self::Kill { .. } | Self::Stop { .. } | Self::DiskThenKill { .. } => vec![PROCESS, DISK],
            Self::Hang { .. } => vec![PROCESS],
            Self::Disk { .. } => vec![DISK],
            Self::Clock { .. } => vec![CLOCK],
        }
    }

    /// Injects it, and waits until it is over.
    pub(crate) async fn happen(&self, single: &Single) {
        let absences = &single.access.absences;
        match self {
            Self::Kill { away } => {
                absences.begin();
                single.take().kill();
                come_back(single, *away).await;
            }
            Self::Stop { away } => {
                absences.begin();
                let mut process = single.take();
                process.ask_to_stop();
                process.exit().await;
                come_back(single, *away).await;
            }
            Self::Hang { lasting } => {
                absences.begin();
                single.signal("STOP");
                tokio::time::sleep(*lasting).await;
                single.signal("CONT");
                absences.end();
            }
            Self::Disk { refusal, lasting } => {
                refuse(single, Some(*refusal));
                tokio::time::sleep(*lasting).await;
                refuse(single, None);
            }
            Self::DiskThenKill { refusal, lasting } => {
                refuse(single, Some(*refusal));
                tokio::time::sleep(*lasting).await;
                absences.begin();
                single.take().kill();
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

/// Restarts it after a while.
async fn come_back(single: &Single, away: Duration) {
    tokio::time::sleep(away).await;
    single.start_again();
    single.access.absences.end();
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
