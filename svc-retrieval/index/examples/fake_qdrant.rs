//! Runs the fake of Qdrant as a process, to try the engine without a Qdrant:
//!
//! ```sh
//! cargo run --release -p cairn-index --features testing --example fake_qdrant -- 127.0.0.1:6334
//! cairn eval ./cranfield --against embedded.json --qdrant http://127.0.0.1:6334
//! ```

use cairn_index::qdrant::fake::{FakeQdrant, FakeQdrantOptions};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:6334".to_owned());
    let options = FakeQdrantOptions {
        api_key: std::env::var("CAIRN_QDRANT_API_KEY").ok(),
        ..FakeQdrantOptions::default()
    };
    let fake = FakeQdrant::start(TcpListener::bind(address).await?, options)?;
    println!("a fake of Qdrant listens at {}", fake.address());
    tokio::signal::ctrl_c().await?;
    Ok(())
}
