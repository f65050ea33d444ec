//! What every process of the mesh needs and no product rule knows: time, identity, calls, storage engines, feeds,
//! telemetry, shutdown.

pub mod ambient;
pub mod bodies;
pub mod breaker;
pub mod call;
pub mod channel;
pub mod clock;
mod contracts;
pub mod deadline;
mod debug;
pub mod doctor;
pub mod entropy;
pub mod fair_semaphore;
pub mod feed;
pub mod identity;
pub mod ids;
pub mod jobs;
pub mod json;
pub mod lifecycle;
pub mod limits;
pub mod outbound;
pub mod paging;
pub mod sealing;
pub mod server;
pub mod shared_storage;
pub mod shutdown;
pub mod sql;
pub mod status;
pub mod telemetry;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tls;
pub mod token_format;
pub mod transport;
pub mod wording;
