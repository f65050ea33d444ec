use cairn_chassis::on_db;
use cairn_chassis::sql;

use super::*;
use crate::doctor::{CHECKS, examine, mend};

#[tokio::test]
async fn a_new_deployment_is_sound_and_every_damage_is_named() {
    let damages = [
        ("UPDATE members SET role = 'viewer'", "every live workspace has an owner"),
        ("UPDATE members SET role = 'king'", "every role is one that there is"),
        ("UPDATE tokens SET last_four = 'x'", "every token is known by a whole digest"),
        ("UPDATE signing_keys SET state = 'retired'", "one signing key is active"),
    ];
    for (damage, rule) in damages {
        for world in worlds().await {
            let checks = cairn_chassis::doctor::statements(CHECKS);
            sql::prepare_all(&world.service.db, &checks).await.unwrap();
            let mends = cairn_chassis::doctor::mends(CHECKS);
            sql::prepare_all(&world.service.db, &mends).await.unwrap();
            let storage = &world._storage.config;
            assert_eq!(examine(storage, None, &|_| {}).await.unwrap(), Some(Vec::new()), "{}", world.engine);
            on_db!(world.service.db.writer(), |c| sqlx::query(damage).execute(c).await.map(|_| ())).unwrap();
            let found = examine(storage, None, &|_| {}).await.unwrap().unwrap();
            assert!(found.iter().any(|finding| finding.rule == rule), "{} {damage}: {found:?}", world.engine);
            let report = mend(storage, &|_| {}).await.unwrap().unwrap();
            let left = examine(storage, None, &|_| {}).await.unwrap().unwrap();
            if rule == "every live workspace has an owner" || damage.contains("king") {
                // Who owns it is for people, where there is no admin.
                assert!(
                    left.iter().all(|finding| finding.rule == "every live workspace has an owner"),
                    "{left:?}"
                );
            } else {
                assert_eq!(left, [], "{} {damage}", world.engine);
                assert!(!report.is_empty(), "{} {damage}", world.engine);
            }
            if damage.contains("last_four") {
                let sql = "SELECT COUNT(*) FROM tokens WHERE last_four = '????'";
                let (kept,): (i64,) =
                    on_db!(world.service.db, |c| sqlx::query_as(sql).fetch_one(c).await).unwrap();
                assert!(kept > 0, "{}: a token that is good stays", world.engine);
            }
        }
    }
}
