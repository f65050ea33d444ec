//! Every statement is accepted by every engine.

use cairn_chassis::doctor;

use super::*;

#[tokio::test]
async fn every_engine_takes_every_statement() {
    for bench in benches().await {
        let mut all = store::statements();
        all.extend(doctor::statements(crate::doctor::CHECKS));
        sql::prepare_all(&bench.service.context().db, &all).await.unwrap();
    }
}
