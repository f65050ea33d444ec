use cairn_chassis::call::Channel;
use cairn_chassis::identity::{Permission as Right, PermissionSet};
use cairn_chassis::{on_db, token_format};
use cairn_proto::auth::v1::{CreateTokenRequest, DeleteWorkspaceRequest, TokenScope};
use proptest::prelude::*;

use super::tokens::{EVERYTHING, FOLDER, READ_WRITE, rights};
use super::*;

impl World {
    async fn set_role(&self, person: &Person, role: Role) {
        let (workspace, user) = (self.workspace(), person.id.to_string());
        on_db!(self.service.db.writer(), |c| sqlx::query(
            "UPDATE members SET role = $3 WHERE workspace_id = $1 AND user_id = $2"
        )
        .bind(&workspace)
        .bind(&user)
        .bind(role.as_str())
        .execute(c)
        .await
        .map(|_| ()))
        .unwrap();
    }
}

#[tokio::test]
async fn every_refusal_reads_the_same() {
    for world in worlds().await {
        let owner = world.owner().await;
        let (token, inactive) = world.token(&owner, &EVERYTHING).await;
        world.set_active(&owner, &token, false).await.unwrap();
        let unknown = token_format::generate(&OsEntropy);
        let mut texts = Vec::new();
        for secret in ["", "Bearer x", "cairn_", &"x".repeat(60_000), &unknown, &inactive] {
            let problem = problem(world.exchange(secret).await);
            assert_eq!(problem.reason, Reason::Unauthorized);
            texts.push(problem.message);
        }
        texts.dedup();
        assert_eq!(texts.len(), 1, "{texts:?}");
        assert!(!texts[0].contains(&unknown));
    }
}

#[tokio::test]
async fn an_identity_never_outlives_its_token() {
    for world in worlds().await {
        let owner = world.owner().await;
        let end = world.clock.now().plus(2 * MINUTE).plus(Duration::from_millis(1_500));
        let message = CreateTokenRequest {
            workspace_id: world.workspace(),
            name: "short".to_owned(),
            permissions: vec![Permission::Read.into()],
            expires_at: Some(end.to_proto()),
            ..CreateTokenRequest::default()
        };
        let created = world.tokens().create_token(owner.request(message)).await.unwrap().into_inner();
        assert_eq!(created.token.unwrap().expires_at, Some(end.to_proto()));

        let identity = world.exchange(&created.secret).await.unwrap();
        assert_eq!(identity.expires_at, world.clock.now().plus(2 * MINUTE).plus(Duration::from_secs(1)));
        world.clock.advance(2 * MINUTE + Duration::from_millis(999));
        world.exchange(&created.secret).await.unwrap();
        // Half a second is left, and an identity ends with a whole one.
        world.clock.advance(Duration::from_millis(1));
        assert_eq!(reason(world.exchange(&created.secret).await), Reason::Unauthorized, "{}", world.engine);
    }
}

#[tokio::test]
async fn a_role_caps_a_token_from_the_next_exchange_on() {
    for world in worlds().await {
        let editor = world.member("editor@example.com", Role::Editor).await;
        let (_, everything) = world.token(&editor, &EVERYTHING).await;
        let (_, delete_only) = world.token(&editor, &[Permission::Delete]).await;
        assert_eq!(world.exchange(&everything).await.unwrap().permissions, PermissionSet::all());

        world.set_role(&editor, Role::Viewer).await;
        assert_eq!(world.exchange(&everything).await.unwrap().permissions, rights(&[Right::Read]));
        let nothing_left = world.exchange(&delete_only).await.unwrap();
        assert_eq!(nothing_left.permissions, PermissionSet::default());

        let user = editor.id.to_string();
        on_db!(world.service.db.writer(), |c| sqlx::query("DELETE FROM members WHERE user_id = $1")
            .bind(&user)
            .execute(c)
            .await
            .map(|_| ()))
        .unwrap();
        assert_eq!(reason(world.exchange(&everything).await), Reason::Unauthorized, "{}", world.engine);
    }
}

#[tokio::test]
async fn the_tokens_of_a_deleted_workspace_are_refused() {
    for world in worlds().await {
        let owner = world.owner().await;
        world.exchange(&world.first.token).await.unwrap();
        let message = DeleteWorkspaceRequest { workspace_id: world.workspace() };
        world.workspaces().delete_workspace(owner.request(message)).await.unwrap();
        assert_eq!(
            reason(world.exchange(&world.first.token).await),
            Reason::Unauthorized,
            "{}",
            world.engine
        );
        assert_eq!(reason(world.list(&owner).await), Reason::NotFound);
    }
}

#[tokio::test]
async fn a_folder_scope_travels_into_the_identity() {
    for world in worlds().await {
        let owner = world.owner().await;
        let scope = TokenScope { folder_ids: vec![FOLDER.to_owned()] };
        let message = CreateTokenRequest {
            workspace_id: world.workspace(),
            name: "scoped".to_owned(),
            permissions: vec![Permission::Read.into()],
            scope: Some(scope.clone()),
            expires_at: None,
        };
        let created = world.tokens().create_token(owner.request(message)).await.unwrap().into_inner();
        assert_eq!(created.token.unwrap().scope, Some(scope));
        let identity = world.exchange(&created.secret).await.unwrap();
        assert_eq!(identity.scope, Scope::Folders([FOLDER.parse().unwrap()].into()), "{}", world.engine);
    }
}

#[tokio::test]
async fn the_last_use_is_seen_at_once_and_written_later() {
    for world in worlds().await {
        let owner = world.owner().await;
        let (token, secret) = world.token(&owner, &READ_WRITE).await;
        let used_at = Some(world.clock.now().to_proto());
        world.exchange(&secret).await.unwrap();
        let listed = world.list(&owner).await.unwrap().into_iter().find(|listed| listed.id == token.id);
        assert_eq!(listed.unwrap().last_used_at, used_at);

        world.service.tokens.flush_last_use().await.unwrap();
        let replica = open(&world._storage, &world.clock).await.unwrap();
        let id = token.id.parse().unwrap();
        let read = replica.tokens.list(owner.id, world.first.workspace_id).await.unwrap();
        let read = read.into_iter().find(|token| token.id == id).unwrap();
        assert_eq!(read.last_used_at.map(Timestamp::to_proto), used_at, "{}", world.engine);

        // A use of a token that is gone by the time of writing is no error.
        world.exchange(&secret).await.unwrap();
        world.delete(&owner, &token).await.unwrap();
        world.service.tokens.flush_last_use().await.unwrap();
    }
}

#[tokio::test]
async fn the_last_client_is_written_with_the_last_use() {
    for world in worlds().await {
        let owner = world.owner().await;
        let (token, secret) = world.token(&owner, &READ_WRITE).await;
        let used = async |client: &str| {
            let call = call().with_client(client).with_channel(Channel::Mcp);
            world.service.tokens.exchange(&secret, &call).await.unwrap();
        };
        let told = async || {
            let listed = world.list(&owner).await.unwrap();
            let listed = listed.into_iter().find(|listed| listed.id == token.id).unwrap();
            (listed.last_client, listed.last_channel)
        };
        assert_eq!(told().await, (String::new(), String::new()), "{}", world.engine);
        let expected = |client: &str| (client.to_owned(), "mcp".to_owned());
        used(&format!("one/1.0{}", "x".repeat(500))).await;
        assert_eq!(told().await, expected(&format!("one/1.0{}", "x".repeat(93))));
        // Of several uses within a moment the first is known, so that replicas agree on what they wrote.
        used("two").await;
        assert!(told().await.0.starts_with("one/1.0"));
        world.clock.advance(Duration::from_secs(1));
        used("two/2.0").await;
        world.service.tokens.flush_last_use().await.unwrap();
        assert_eq!(told().await, expected("two/2.0"), "{}", world.engine);
        let replica = open(&world._storage, &world.clock).await.unwrap();
        let read = replica.tokens.list(owner.id, world.first.workspace_id).await.unwrap();
        let read = read.into_iter().find(|one| one.id.to_string() == token.id).unwrap();
        assert_eq!((read.last_client.as_str(), read.last_channel), ("two/2.0", Some(Channel::Mcp)));
    }
}

#[tokio::test]
async fn the_end_of_the_service_writes_the_last_use() {
    for world in worlds().await {
        world.exchange(&world.first.token).await.unwrap();
        let shutdown = tokio_util::sync::CancellationToken::new();
        shutdown.cancel();
        world.service.run(shutdown).await;
        let written: Option<i64> =
            on_db!(world.service.db, |c| sqlx::query_scalar("SELECT last_used_at FROM tokens")
                .fetch_one(c)
                .await)
            .unwrap();
        assert_eq!(written, Some(world.clock.now().as_micros()), "{}", world.engine);
    }
}

#[test]
fn no_text_but_the_token_opens_anything() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let world = runtime.block_on(worlds()).swap_remove(0);
    let token = world.first.token.clone();
    let refused = |text: &str| {
        let answer = runtime.block_on(world.service.tokens.exchange(text, &call()));
        matches!(answer, Err(crate::Error::TokenRefused))
    };
    let odd = prop_oneof![
        any::<String>(),
        "cairn_[0-9A-Za-z]{46}",
        "[0-9A-Za-z]{40}".prop_map(|random| token_format::assemble(&random)),
        (0..token.len()).prop_map({
            let token = token.clone();
            move |end| token[..end].to_owned()
        }),
        "[ \\t\\n]{1,3}".prop_map({
            let token = token.clone();
            move |blanks| format!("{token}{blanks}")
        }),
    ];
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner
        .run(&odd, |text| {
            prop_assert!(refused(&text), "{text:?}");
            Ok(())
        })
        .unwrap();
    runtime.block_on(world.service.tokens.exchange(&token, &call())).unwrap();
}
