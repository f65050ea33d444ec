//! Every statement is accepted by every engine.

use cairn_chassis::{doctor, sql};

use super::*;

#[tokio::test]
async fn every_engine_takes_every_statement() {
    for bench in benches().await {
        let mut all = store::statements();
        all.extend(doctor::statements(&crate::doctor::checks()));
        sql::prepare_all(&bench.context.db, &all).await.unwrap();
    }
}
