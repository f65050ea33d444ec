//! A Qdrant for tests as a process of its own, for whoever wants to try or to compare the engine on it where there is no Qdrant:
//!
//! ```sh
//! cargo run --release -p cairn-index --features testing --example qdrant_stand_in -- 127.0.0.1:6334
//! cairn eval ./cranfield --against embedded.json --qdrant http://127.0.0.1:6334
//! ```

use cairn_index::qdrant::stand_in::{Door, StandIn};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:6334".to_owned());
    let door = Door { api_key: std::env::var("CAIRN_QDRANT_API_KEY").ok(), ..Door::default() };
    let stand_in = StandIn::start(TcpListener::bind(address).await?, door)?;
    println!("a stand-in of Qdrant listens at {}", stand_in.address());
    tokio::signal::ctrl_c().await?;
    Ok(())
}
