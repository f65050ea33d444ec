//! What it costs to count a search: CPU time of the whole process for each, at 500 searches a second, all told and by
//! part.
//!
//! `cargo bench -p cairn-retrieval --bench analytics`. Each search finds 10 chunks of documents whose frequency follows
//! Zipf's law over 20 000, of one of 20 workspaces, by one of 5 tokens each. SQLite in a temporary folder.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cairn_chassis::call::{Call, Channel};
use cairn_chassis::identity::{Identity, Permission, Scope};
use cairn_chassis::sql;
use cairn_chassis::testing::identity::Issuer;
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::WorkspaceId;
use cairn_retrieval::analytics::{Analytics, Found, Operation, Strategy};
use cpu_time::ProcessTime;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

const SEARCHES: u32 = 10_000;
const A_SECOND: u32 = 500;
const WORKSPACES: u64 = 20;
const TOKENS: u64 = 5;
const DOCUMENTS: f64 = 20_000.0;
const RESULTS: usize = 10;

type Outcome<T> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let issuer = Issuer::new()?;
    let storage = sql::Config::sqlite(folder.path().join("retrieval.db"));
    let analytics = Analytics::open(&storage, &issuer.ambient()).await?;
    let shutdown = CancellationToken::new();
    let running = tokio::spawn({
        let (analytics, shutdown) = (analytics.clone(), shutdown.clone());
        async move { analytics.run(shutdown).await }
    });
    let mut numbers = Numbers(7);
    let searches: Vec<(Identity, Arc<Found>)> =
        (0..SEARCHES).map(|_| search(&issuer, &mut numbers)).collect();

    let call = Call::within(Duration::from_secs(9)).with_channel(Channel::Rest);
    let (wall, cpu) = (Instant::now(), ProcessTime::now());
    let mut handing_over = Duration::ZERO;
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / 10);
    for some in searches.chunks(usize::try_from(A_SECOND / 10)?) {
        ticks.tick().await;
        for (identity, found) in some {
            let before = Instant::now();
            let measured = analytics.begin(identity, &call, Operation::SearchContext, Strategy::Hybrid);
            measured.end(&Ok(()), |()| Found::clone(found));
            handing_over += before.elapsed();
        }
    }
    shutdown.cancel();
    running.await?;
    let wall = wall.elapsed();
    analytics.close().await;
    let cpu = cpu.elapsed();

    println!("{SEARCHES} searches in {wall:.1?}");
    println!("a search hands over in {:.2?} (wall)", handing_over / SEARCHES);
    println!("a search counted costs {:.2?} of CPU in all", cpu / SEARCHES);
    let size = fs_err::metadata(folder.path().join("retrieval.db"))?.len();
    println!("retrieval.db has {} KB", size / 1_000);
    Ok(())
}

fn search(issuer: &Issuer, numbers: &mut Numbers) -> (Identity, Arc<Found>) {
    let workspace = WorkspaceId(Uuid::from_u128(u128::from(1 + numbers.next() % WORKSPACES)));
    let mut identity = issuer.token(workspace, &[Permission::Read], Scope::All);
    identity.principal.id = Uuid::from_u128(u128::from(numbers.next() % TOKENS)).to_string();
    let documents = (0..RESULTS).map(|_| (Kind::File, Uuid::from_u128(numbers.zipf()))).collect();
    let results = u64::try_from(RESULTS).unwrap_or_default();
    let found = Found { documents, results, content_bytes: 10_000, cached: false, provider_operations: 0 };
    (identity, Arc::new(found))
}

/// A generator that gives the same numbers in every run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A rank by Zipf's law with exponent 1, by inversion.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a bench"
    )]
    fn zipf(&mut self) -> u128 {
        let uniform = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        DOCUMENTS.powf(uniform) as u128
    }
}
