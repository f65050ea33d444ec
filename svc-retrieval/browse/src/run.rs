//! Runs a script on a blocking thread, until its caller is cancelled.

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::clock::{Clock, Timestamp};
use cairn_shell::tree::Tree;
use cairn_shell::{Limits, Outcome, Session, Watch};
use tokio_util::sync::CancellationToken;

use super::request::Script;
use crate::error::Error;

/// The result of a script.
#[derive(Debug)]
pub(crate) struct ScriptRun {
    /// Its output and exit status.
    pub(crate) outcome: Outcome,
    /// How long it took.
    pub(crate) elapsed: Duration,
}

/// Runs a script; `then` processes its result on the same thread. The permit is held to the end of both, even if the caller is
/// cancelled: the thread is busy until then.
///
/// # Errors
/// When the script panics.
pub(crate) async fn run<M, T>(
    script: Script,
    mounted: M,
    watched: RunWatch,
    permit: impl Send + 'static,
    then: impl FnOnce(&M, ScriptRun) -> T + Send + 'static,
) -> Result<T, Error>
where
    M: Tree + Send + 'static,
    T: Send + 'static,
{
    // When the caller is cancelled, this future is dropped, and the script stops.
    let _guard = watched.cancelled.clone().drop_guard();
    let done = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let outcome = cairn_shell::run(&mounted, &script.text, &watched.session(&script));
        let elapsed = watched.elapsed();
        then(&mounted, ScriptRun { outcome, elapsed })
    });
    Ok(done.await?)
}

/// The clock and the cancellation of one run.
#[derive(Debug)]
pub(crate) struct RunWatch {
    clock: Arc<dyn Clock>,
    started: Timestamp,
    /// The time that the script sees.
    now: Timestamp,
    budget: Duration,
    cancelled: CancellationToken,
}

impl RunWatch {
    /// A run that begins now, with that budget.
    pub(crate) fn begin(clock: Arc<dyn Clock>, budget: Duration, cancelled: CancellationToken) -> Self {
        let started = clock.now();
        Self { started, now: started, clock, budget, cancelled }
    }

    /// The same for a script that sees that time.
    pub(crate) fn at(self, now: Timestamp) -> Self {
        Self { now, ..self }
    }

    /// The session of the script.
    pub(super) fn session<'a>(&'a self, script: &'a Script) -> Session<'a> {
        let limits = Limits::default();
        let wall_clock = limits.wall_clock.min(self.budget);
        let limits = Limits { output_bytes: script.output_bytes, wall_clock, ..limits };
        Session { cwd: &script.cwd, now: self.now.as_micros(), limits, watch: self }
    }
}

impl Watch for RunWatch {
    fn elapsed(&self) -> Duration {
        self.clock.now().since(self.started)
    }

    fn cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use bytes::Bytes;
    use cairn_chassis::clock::{ManualClock, SystemClock};
    use cairn_shell::testing::MemoryTree;
    use cairn_shell::tree::{Kind, Node, Unreadable};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// A tree that does something before it answers with a body.
    struct Slow<F> {
        tree: MemoryTree,
        before: F,
    }

    impl<F: Fn() + Sync> Tree for Slow<F> {
        fn root(&self) -> Node {
            self.tree.root()
        }

        fn kind(&self, node: Node) -> Kind {
            self.tree.kind(node)
        }

        fn parent(&self, node: Node) -> Option<Node> {
            self.tree.parent(node)
        }

        fn name(&self, node: Node) -> &str {
            self.tree.name(node)
        }

        fn children(&self, folder: Node) -> &[Node] {
            self.tree.children(folder)
        }

        fn size(&self, node: Node) -> u64 {
            self.tree.size(node)
        }

        fn modified(&self, node: Node) -> i64 {
            self.tree.modified(node)
        }

        fn read(&self, file: Node) -> Result<Bytes, Unreadable> {
            (self.before)();
            self.tree.read(file)
        }

        fn details(&self, node: Node) -> Vec<(&'static str, String)> {
            self.tree.details(node)
        }
    }

    fn files(count: usize) -> MemoryTree {
        let paths: Vec<String> = (0..count).map(|number| format!("/files/{number}.md")).collect();
        MemoryTree::new(paths.iter().map(|path| (path.as_str(), b"some text\n".as_slice())))
    }

    fn script(text: &str) -> Script {
        Script {
            text: text.to_owned(),
            cwd: "/".to_owned(),
            output_bytes: 60 * 1024,
            link_base: String::new(),
            moment: None,
        }
    }

    /// Tells when it is dropped.
    struct Permit(Arc<AtomicBool>);

    impl Drop for Permit {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn a_script_runs_and_what_came_of_it_is_looked_at() {
        let watched = RunWatch::begin(Arc::new(SystemClock), LONG, CancellationToken::new());
        let then = |_: &MemoryTree, ran: ScriptRun| ran.outcome.output;
        let output = run(script("cat /files/2.md; wc -l /files/1.md"), files(3), watched, (), then).await;
        assert_eq!(output.unwrap(), "some text\n1 /files/1.md\n");
    }

    #[tokio::test]
    async fn a_script_ends_when_its_caller_is_gone_and_keeps_its_permit_until_then() {
        let (cancelled, returned) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
        let (began, mut reading) = tokio::sync::mpsc::unbounded_channel();
        let seen = cancelled.clone();
        // The first body comes when nobody waits for it any more; no further one is asked for.
        let before = move || {
            began.send(()).unwrap();
            while !seen.is_cancelled() {
                std::thread::yield_now();
            }
        };
        let tree = Slow { tree: files(2_000), before };
        let watched = RunWatch::begin(Arc::new(SystemClock), LONG, cancelled);
        let permit = Permit(Arc::clone(&returned));
        let running = tokio::spawn(run(script("grep -rc text /files"), tree, watched, permit, |_, _| ()));
        reading.recv().await.unwrap();
        assert!(!returned.load(Ordering::SeqCst));
        running.abort();
        let mut further = 0;
        while reading.recv().await.is_some() {
            further += 1;
        }
        assert!(further < 1_000, "{further} more bodies were read");
        while !returned.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
    }

    /// It reads one file, and then works for minutes without reading or printing anything.
    #[tokio::test]
    async fn a_script_that_only_computes_ends_when_its_caller_is_gone() {
        let lines: String =
            (0..100_000).map(|n| format!("{:06}{}\n", n * 7_919 % 100_000, " x".repeat(60))).collect();
        let tree = MemoryTree::new([("/files/lines", lines.as_bytes())]);
        let (began, mut reading) = tokio::sync::mpsc::unbounded_channel();
        let returned = Arc::new(AtomicBool::new(false));
        let tree = Slow { tree, before: move || began.send(()).unwrap() };
        let watched =
            RunWatch::begin(Arc::new(SystemClock), Duration::from_secs(36_000), CancellationToken::new());
        let keys = "-k 50,50 ".repeat(16);
        let sorting = script(&format!("sort {keys} /files/lines | wc -l"));
        let running = tokio::spawn(run(sorting, tree, watched, Permit(Arc::clone(&returned)), |_, _| ()));
        reading.recv().await.unwrap();
        running.abort();
        while !returned.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_script_ends_with_its_time() {
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1)));
        let moved = Arc::clone(&clock);
        let tree = Slow { tree: files(2_000), before: move || moved.advance(Duration::from_secs(1)) };
        let watched = RunWatch::begin(clock, Duration::from_secs(4), CancellationToken::new());
        let ran = run(script("grep -rc text /files"), tree, watched, (), |_, ran| ran).await.unwrap();
        assert!(ran.outcome.failed, "{:?}", ran.outcome);
        assert!(ran.outcome.stats.files_opened < 1_000, "{:?}", ran.outcome.stats);
        assert!(ran.elapsed >= Duration::from_secs(4));
    }
}
