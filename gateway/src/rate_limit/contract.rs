//! The contract suite of [`RateLimiter`], run on every engine: see [`super::memory`] and [`super::redis`].

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::clock::{Clock as _, ManualClock, Timestamp};
use futures::future::join_all;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::{Key, Quota, RateLimiter, Window};

/// Noon of some day, UTC: the start of a minute and of an hour.
const NOON: i64 = 1_800_014_400;
const SCRIPTS: usize = 16;

/// The clock of the engine under test.
pub(super) fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_seconds(NOON)))
}

/// The whole suite. The clock is the engine's, and stands at the start of an hour.
pub(super) async fn run(engine: Arc<dyn RateLimiter>, clock: &ManualClock, name: &str) {
    fills_and_refuses(&*engine, name).await;
    takes_all_or_nothing(&*engine, name).await;
    gives_back(&*engine, clock, name).await;
    windows_end_at_full_minutes(&*engine, clock, name).await;
    is_exact_under_concurrency(&engine, name).await;
    agrees_with_a_model(&*engine, clock, name).await;
}

fn minute(limit: u32) -> Quota {
    Quota::new(Some(limit), None, None)
}

async fn fills_and_refuses(engine: &dyn RateLimiter, name: &str) {
    let (key, other) = (Key::new("token", "fills"), Key::new("token", "other"));
    for used in 1..=3 {
        let counted = engine.take(&key, minute(3), 1).await.unwrap();
        assert!(counted.admitted, "{name}");
        assert_eq!(counted.tightest().unwrap().remaining, 3 - used, "{name}");
    }
    let refused = engine.take(&key, minute(3), 1).await.unwrap();
    assert!(!refused.admitted, "{name}");
    assert_eq!((refused.tightest().unwrap().limit, refused.tightest().unwrap().remaining), (3, 0), "{name}");
    assert!(engine.take(&other, minute(3), 1).await.unwrap().admitted, "{name}: keys are counted apart");
    let looked = engine.take(&key, minute(3), 0).await.unwrap();
    assert!(looked.admitted && looked.tightest().unwrap().remaining == 0, "{name}: a look takes nothing");
}

async fn takes_all_or_nothing(engine: &dyn RateLimiter, name: &str) {
    let key = Key::new("token", "all or nothing {}:\r\n\"é");
    let quota = Quota::new(Some(100), Some(5), Some(50));
    assert!(engine.take(&key, quota, 3).await.unwrap().admitted, "{name}");
    let refused = engine.take(&key, quota, 3).await.unwrap();
    assert!(!refused.admitted, "{name}");
    assert_eq!(refused.tightest().unwrap().window, Window::Hour, "{name}");
    assert_eq!(engine.take(&key, quota, 0).await.unwrap().used, [3, 3, 3], "{name}: nothing of it was taken");
    assert!(engine.take(&key, quota, 2).await.unwrap().admitted, "{name}");
}

async fn gives_back(engine: &dyn RateLimiter, clock: &ManualClock, name: &str) {
    let (key, quota) = (Key::new("token", "gives back"), Quota::new(Some(4), None, Some(9)));
    engine.take(&key, quota, 4).await.unwrap();
    engine.refund(&key, quota, 1).await.unwrap();
    assert_eq!(engine.take(&key, quota, 0).await.unwrap().used, [3, 0, 3], "{name}");
    clock.advance(Duration::from_secs(60));
    engine.refund(&key, quota, 2).await.unwrap();
    assert_eq!(engine.take(&key, quota, 0).await.unwrap().used, [0, 0, 1], "{name}: never below nothing");
    let unknown = Key::new("token", "never seen");
    engine.refund(&unknown, quota, 2).await.unwrap();
    assert_eq!(engine.take(&unknown, quota, 0).await.unwrap().used, [0, 0, 0], "{name}");
}

async fn windows_end_at_full_minutes(engine: &dyn RateLimiter, clock: &ManualClock, name: &str) {
    let (key, quota) = (Key::new("token", "windows"), Quota::new(Some(2), Some(3), None));
    clock.advance(Duration::from_secs(59 - clock.now().as_seconds().rem_euclid(60).unsigned_abs()));
    let full = engine.take(&key, quota, 2).await.unwrap();
    assert_eq!(full.tightest().unwrap().resets_in, 1, "{name}");
    assert!(!engine.take(&key, quota, 1).await.unwrap().admitted, "{name}");
    clock.advance(Duration::from_secs(1));
    let fresh = engine.take(&key, quota, 1).await.unwrap();
    assert!(fresh.admitted, "{name}: a new minute");
    let refused = engine.take(&key, quota, 1).await.unwrap();
    assert!(!refused.admitted && refused.tightest().unwrap().window == Window::Hour, "{name}: the same hour");
    clock.advance(Duration::from_secs(60 * 60));
    assert!(engine.take(&key, quota, 2).await.unwrap().admitted, "{name}: a new hour");
}

async fn is_exact_under_concurrency(engine: &Arc<dyn RateLimiter>, name: &str) {
    let (key, quota) = (Key::new("token", "crowd"), Quota::new(Some(600), Some(6_000), None));
    let clients = (0..200).map(|_| {
        let (engine, key) = (Arc::clone(engine), key.clone());
        tokio::spawn(async move {
            let mut admitted = 0;
            for _ in 0..4 {
                admitted += u32::from(engine.take(&key, quota, 1).await.unwrap().admitted);
            }
            admitted
        })
    });
    let admitted: u32 = join_all(clients).await.into_iter().map(Result::unwrap).sum();
    assert_eq!(admitted, 600, "{name}");
}

/// A step of a history: time passes, then units are taken or refunded.
#[derive(Debug, Clone)]
struct Step {
    after: u64,
    key: u8,
    units: u32,
    back: bool,
}

fn history() -> impl Strategy<Value = (Quota, Vec<Step>)> {
    let limit = || prop::option::of(1..12_u32);
    let quota = (limit(), limit(), limit()).prop_map(|(minute, hour, day)| Quota::new(minute, hour, day));
    let pause = prop_oneof![4 => Just(0_u64), 3 => 0..40_u64, 1 => 0..5_000_u64, 1 => 0..90_000_u64];
    let step = (pause, 0..2_u8, 0..5_u32, prop::bool::weighted(0.15))
        .prop_map(|(after, key, units, back)| Step { after, key, units, back });
    (quota, prop::collection::vec(step, 1..30))
}

/// The model: every unit taken and not refunded, with its second; a window's use is the number of units in it.
async fn agrees_with_a_model(engine: &dyn RateLimiter, clock: &ManualClock, name: &str) {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    for script in 0..SCRIPTS {
        let (quota, steps) = history().new_tree(&mut runner).unwrap().current();
        let mut taken: Vec<(u8, [u32; 3], i64)> = Vec::new();
        for (place, step) in steps.iter().enumerate() {
            clock.advance(Duration::from_secs(step.after));
            let second = clock.now().as_seconds();
            let key = Key::new("token", format!("model {script} {}", step.key));
            let mut used = model_used(&taken, step.key, second);
            for (used, limit) in used.iter_mut().zip(quota.0) {
                *used = if limit.is_some() { *used } else { 0 };
            }
            let what = format!("{name}: script {script}, step {place} of {steps:?} with {quota:?}");
            if step.back {
                engine.refund(&key, quota, step.units).await.unwrap();
                put_back(&mut taken, step.key, second, step.units);
                continue;
            }
            let counted = engine.take(&key, quota, step.units).await.unwrap();
            let fits = step.units == 0
                || quota
                    .0
                    .iter()
                    .zip(used)
                    .all(|(limit, used)| limit.is_none_or(|limit| used + step.units <= limit));
            assert_eq!(counted.admitted, fits, "{what}");
            if fits {
                taken.extend((0..step.units).map(|_| (step.key, [1; 3], second)));
            }
            let expected = if fits { used.map(|used| used + step.units) } else { used };
            for ((found, expected), limit) in counted.used.iter().zip(expected).zip(quota.0) {
                assert!(limit.is_none() || *found == expected, "{what}: {:?}", counted.used);
            }
        }
    }
}

fn model_used(taken: &[(u8, [u32; 3], i64)], key: u8, second: i64) -> [u32; 3] {
    let mut used = [0; 3];
    for (place, window) in Window::ALL.into_iter().enumerate() {
        let same = |at: i64| at.div_euclid(window.seconds()) == second.div_euclid(window.seconds());
        let units =
            taken.iter().filter(|(of, _, at)| *of == key && same(*at)).map(|(_, units, _)| units[place]);
        used[place] = units.sum();
    }
    used
}

/// Refunds units in every current window, no matter which ones were taken in it.
fn put_back(taken: &mut [(u8, [u32; 3], i64)], key: u8, second: i64, units: u32) {
    for (place, window) in Window::ALL.into_iter().enumerate() {
        let same = |at: i64| at.div_euclid(window.seconds()) == second.div_euclid(window.seconds());
        let held = taken.iter_mut().filter(|(of, held, at)| *of == key && held[place] > 0 && same(*at));
        held.take(units as usize).for_each(|(_, held, _)| held[place] = 0);
    }
}
