use std::collections::BTreeSet;

use cairn_chassis::sql::{self, Db, Engine, plans};
use cairn_proto::auth::v1::ExchangeRequest;

use super::*;

const SQLITE_COLUMNS: &str = "SELECT t.name || '.' || c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c \
     WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'";
const POSTGRES_COLUMNS: &str = "SELECT (table_name || '.' || column_name)::text FROM information_schema.columns \
     WHERE table_schema = current_schema()";

async fn columns(db: &Db) -> BTreeSet<String> {
    let names: Vec<String> = match db.engine() {
        Engine::Sqlite(pool) => sqlx::query_scalar(SQLITE_COLUMNS).fetch_all(pool).await.unwrap(),
        Engine::Postgres(pool) => sqlx::query_scalar(POSTGRES_COLUMNS).fetch_all(pool).await.unwrap(),
    };
    names.into_iter().collect()
}

/// What SQLite has written; nothing for PostgreSQL, which gets the same values.
pub(super) async fn stored_bytes(db: &Db) -> Vec<u8> {
    let Engine::Sqlite(pool) = db.engine() else {
        return Vec::new();
    };
    let path: String =
        sqlx::query_scalar("SELECT file FROM pragma_database_list").fetch_one(pool).await.unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend(std::fs::read(format!("{path}-wal")).unwrap());
    assert!(!bytes.is_empty());
    bytes
}

#[tokio::test]
async fn every_statement_is_one_on_every_engine() {
    for storage in engines().await {
        let db = storage.open(store::SERVICE, store::MIGRATIONS).await.unwrap();
        sql::prepare_all(&db, &store::statements()).await.unwrap();
    }
}

#[tokio::test]
async fn both_engines_have_the_same_columns() {
    let mut found = Vec::new();
    for storage in engines().await {
        found.push(columns(&storage.open(store::SERVICE, store::MIGRATIONS).await.unwrap()).await);
    }
    assert!(found[0].contains("tokens.digest"), "{found:?}");
    assert!(found.iter().all(|columns| *columns == found[0]), "{found:?}");
}

#[tokio::test]
async fn a_storage_that_is_gone_is_unavailable_not_unauthorized() {
    for world in worlds().await {
        world.service.db.close().await;
        let request = Request::new(ExchangeRequest { api_token: world.first.token.clone() });
        let problem = problem(world.tokens().exchange(request).await);
        assert_eq!(problem.reason, Reason::Unavailable, "{}", world.engine);
        assert!(problem.retry_after.is_some());
    }
}

#[tokio::test]
async fn a_damaged_scope_opens_nothing() {
    for world in worlds().await {
        cairn_chassis::on_db!(world.service.db.writer(), |c| sqlx::query("UPDATE tokens SET folders = '{'")
            .execute(c)
            .await
            .map(|_| ()))
        .unwrap();
        let request = Request::new(ExchangeRequest { api_token: world.first.token.clone() });
        assert_eq!(reason(world.tokens().exchange(request).await), Reason::Internal, "{}", world.engine);
    }
}

#[tokio::test]
async fn no_secret_shows_in_debug_output_or_on_the_disk() {
    for world in worlds().await {
        let owner = world.owner().await;
        let role = cairn_proto::auth::v1::Role::Viewer;
        let invited = world.invite(&owner, "new@example.com", role).await.secret;
        let signed_in =
            world.service.sessions.create(&Device::default(), &world.first.email, PASSWORD).await.unwrap();
        let issued = world.service.tokens.exchange(&world.first.token, &call()).await.unwrap();
        let draft = crate::tokens::Draft {
            name: "agent".to_owned(),
            permissions: vec![Some(cairn_chassis::identity::Permission::Read)],
            ..crate::tokens::Draft::default()
        };
        let created = world
            .service
            .tokens
            .create(owner.id, world.first.workspace_id, draft, &Call::within(MINUTE))
            .await
            .unwrap();
        let settings = config(&world._storage);
        let given = Bootstrap { token: Some(world.first.token.clone()), ..wanted() };
        let shown = format!(
            "{:?} {:?} {settings:?} {given:?} {signed_in:?} {issued:?} {created:?}",
            world.service, world.first
        );
        let secrets = [
            PASSWORD,
            MESH_SECRET,
            &world.first.token,
            &signed_in.secret,
            &issued.identity,
            &created.secret,
            &invited,
        ];
        let stored = stored_bytes(&world.service.db).await;
        for secret in secrets {
            assert!(!shown.contains(secret), "{shown}");
            assert!(
                !stored.windows(secret.len()).any(|window| window == secret.as_bytes()),
                "{}",
                world.engine
            );
        }
    }
}

#[tokio::test]
async fn settings_that_cannot_work_are_told_at_once() {
    for storage in engines().await {
        let short = Config { mesh_secret: "short".to_owned(), ..config(&storage) };
        let unknown = Config { default_plan: "gold".to_owned(), ..config(&storage) };
        for (settings, part) in [(short, "16 characters"), (unknown, "selfhosted")] {
            let error = Service::open(settings, clock(), Arc::new(OsEntropy)).await.unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}

/// Parts of statements that are to read all rows of a table or of a workspace.
const READ_ALL: &[&str] = &[
    // A workspace is removed in parts, whichever rows come first.
    " WHERE workspace_id = $1 LIMIT $2",
    // A workspace has few members, invitations, grants and tokens, and a deployment few keys.
    "FROM members",
    "FROM invitations",
    "invitations i JOIN",
    "members m JOIN",
    "FROM signing_keys",
    "oauth_grants g JOIN",
    // What people have said is kept up to a number, and by time.
    "FROM feedback",
    // Workspaces that are being removed, with what refers to them.
    "lifecycle_notices",
    "DELETE FROM workspaces",
    // Any one; those that nobody has used.
    "SELECT id FROM users LIMIT 1",
    "FROM oauth_clients WHERE used_at IS NULL",
    // A sweep of many compares them with all grants.
    "DELETE FROM oauth_clients WHERE updated_at <= $1",
    // An operator lists all.
    "FROM workspaces WHERE deleted_at IS NULL ORDER BY name, id",
];

#[tokio::test]
async fn no_statement_reads_all_to_find_some() {
    let found =
        plans::findings(store::SERVICE, store::MIGRATIONS, &store::statements(), READ_ALL).await.unwrap();
    assert!(found.is_empty(), "{found:#?}");
}
