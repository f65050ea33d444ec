use cairn_chassis::identity;

use super::*;

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[tokio::test]
async fn an_access_token_stands_for_the_grant_at_its_resource_for_an_hour() {
    for world in worlds().await {
        let client = world.client().await;
        let tokens = world.tokens_of(&client).await;
        let identity = world.enter(&tokens.access_token).await.unwrap();
        assert_eq!(identity.principal.kind, PrincipalKind::Grant);
        assert_eq!(identity.principal.name, "Tools");
        assert_eq!(identity.principal.id, world.granted(&world.owner().await).await[0].id);
        assert_eq!(identity.workspace, Some(world.first.workspace_id));
        assert_eq!((identity.permissions, identity.scope), (PermissionSet::all(), Scope::All));
        assert_eq!(identity.plan.as_deref(), Some("selfhosted"));

        for elsewhere in ["https://evil.example", "http://cairn.example", "https://cairn.example/team", ""] {
            let refused = world.enter_at(&tokens.access_token, elsewhere).await;
            assert_eq!(reason(refused), Reason::Unauthorized, "{elsewhere}");
        }
        let other = cairn_chassis::token_format::Format::ACCESS_TOKEN.generate(&OsEntropy);
        for wrong in [&other, &tokens.refresh_token, "", "x", &world.first.token, &identity.principal.id] {
            assert_eq!(reason(world.enter(wrong).await), Reason::Unauthorized, "{wrong}");
        }
        world.clock.advance(HOUR - Duration::from_secs(1));
        world.enter(&tokens.access_token).await.unwrap();
        world.clock.advance(Duration::from_secs(1));
        assert_eq!(reason(world.enter(&tokens.access_token).await), Reason::Unauthorized, "{}", world.engine);
    }
}

/// An identity ends with a whole second: in the second in which its token ends there is none to give.
#[tokio::test]
async fn an_access_token_ends_with_the_last_whole_second() {
    for world in worlds().await {
        world.clock.advance(Duration::from_millis(500));
        let client = world.client().await;
        let tokens = world.tokens_of(&client).await;
        world.clock.advance(HOUR - Duration::from_millis(501));
        let identity = world.enter(&tokens.access_token).await.unwrap();
        assert!(identity.expires_at > world.clock.now(), "{}", world.engine);
        // Half a second is left.
        world.clock.advance(Duration::from_millis(1));
        assert_eq!(reason(world.enter(&tokens.access_token).await), Reason::Unauthorized, "{}", world.engine);
    }
}

#[tokio::test]
async fn a_code_is_good_once_and_a_replay_takes_back_what_it_gave() {
    for world in worlds().await {
        let client = world.client().await;
        let code = world.code(&client).await;
        let tokens = world.redeem(redemption(&client, &code)).await.unwrap();
        world.enter(&tokens.access_token).await.unwrap();
        assert_eq!(code_of(world.redeem(redemption(&client, &code)).await), "invalid_grant");
        assert_eq!(reason(world.enter(&tokens.access_token).await), Reason::Unauthorized);
        assert_eq!(code_of(world.renew(renewal(&client, &tokens.refresh_token)).await), "invalid_grant");
        assert!(world.granted(&world.owner().await).await.is_empty(), "{}", world.engine);
    }
}

#[tokio::test]
async fn a_code_is_bound_to_its_client_verifier_redirect_and_resource() {
    for world in worlds().await {
        let client = world.client().await;
        let other = world.client().await;
        let code = world.code(&client).await;
        let good = || redemption(&client, &code);
        let wrong = [
            ("invalid_grant", RedeemCodeRequest { client: public(&other), ..good() }),
            ("invalid_grant", RedeemCodeRequest { code_verifier: "b".repeat(43), ..good() }),
            ("invalid_request", RedeemCodeRequest { code_verifier: String::new(), ..good() }),
            (
                "invalid_grant",
                RedeemCodeRequest { redirect_uri: Some("https://evil.example/".into()), ..good() },
            ),
            (
                "invalid_target",
                RedeemCodeRequest { resources: vec!["https://evil.example/mcp".into()], ..good() },
            ),
            ("invalid_target", RedeemCodeRequest { base_url: "https://other.example".into(), ..good() }),
            ("invalid_grant", RedeemCodeRequest { code: "cairn_oc_unknown".into(), ..good() }),
            ("invalid_client", RedeemCodeRequest { client: None, ..good() }),
        ];
        for (expected, request) in wrong {
            assert_eq!(code_of(world.redeem(request.clone()).await), expected, "{request:?}");
        }
        // None of that spent it.
        world.redeem(RedeemCodeRequest { redirect_uri: None, resources: vec![], ..good() }).await.unwrap();
    }
}

#[tokio::test]
async fn a_code_that_waited_too_long_has_expired() {
    for world in worlds().await {
        let client = world.client().await;
        let code = world.code(&client).await;
        world.clock.advance(MINUTE);
        assert_eq!(
            code_of(world.redeem(redemption(&client, &code)).await),
            "invalid_grant",
            "{}",
            world.engine
        );
    }
}

#[tokio::test]
async fn a_spent_refresh_token_gets_the_same_successor_for_a_minute_and_then_ends_the_grant() {
    for world in worlds().await {
        let client = world.client().await;
        let first = world.tokens_of(&client).await;
        let second = world.renew(renewal(&client, &first.refresh_token)).await.unwrap();
        assert_ne!(first.refresh_token, second.refresh_token);
        assert_ne!(first.access_token, second.access_token);
        world.clock.advance(MINUTE);
        let again = world.renew(renewal(&client, &first.refresh_token)).await.unwrap();
        assert_eq!(again.refresh_token, second.refresh_token);
        world.enter(&again.access_token).await.unwrap();
        let third = world.renew(renewal(&client, &second.refresh_token)).await.unwrap();

        world.clock.advance(Duration::from_secs(1));
        assert_eq!(code_of(world.renew(renewal(&client, &first.refresh_token)).await), "invalid_grant");
        assert_eq!(code_of(world.renew(renewal(&client, &third.refresh_token)).await), "invalid_grant");
        assert_eq!(reason(world.enter(&third.access_token).await), Reason::Unauthorized, "{}", world.engine);
    }
}

#[tokio::test]
async fn a_refresh_token_is_bound_to_its_client_and_resource_and_gives_no_more_than_was_granted() {
    for world in worlds().await {
        let client = world.client().await;
        let other = world.client().await;
        let read_write = AuthorizationRequest { scope: Some("read write".to_owned()), ..asked(&client) };
        let code = world.allow(&world.owner().await, read_write, &ALL).await.unwrap();
        let tokens = world.redeem(redemption(&client, &code)).await.unwrap();
        let good = || renewal(&client, &tokens.refresh_token);
        let wrong = [
            ("invalid_grant", renewal(&other, &tokens.refresh_token)),
            ("invalid_grant", renewal(&client, &tokens.access_token)),
            ("invalid_grant", renewal(&client, "")),
            ("invalid_client", renewal("nobody", &tokens.refresh_token)),
            ("invalid_scope", RedeemRefreshTokenRequest { scope: Some("read delete".into()), ..good() }),
            ("invalid_scope", RedeemRefreshTokenRequest { scope: Some("\"".into()), ..good() }),
            (
                "invalid_target",
                RedeemRefreshTokenRequest { base_url: "https://other.example".into(), ..good() },
            ),
        ];
        for (expected, request) in wrong {
            assert_eq!(code_of(world.renew(request.clone()).await), expected, "{request:?}");
        }
        // None of that spent it.
        let less = RedeemRefreshTokenRequest { scope: Some("read".into()), ..good() };
        let less = world.renew(less).await.unwrap();
        let narrow = world.enter(&less.access_token).await.unwrap();
        assert_eq!(narrow.permissions.iter().collect::<Vec<_>>(), [identity::Permission::Read]);
        let whole = world.renew(renewal(&client, &less.refresh_token)).await.unwrap();
        assert_eq!(whole.permissions().count(), 2, "the next one may ask for all again: {}", world.engine);
    }
}

#[tokio::test]
async fn a_grant_that_is_not_used_for_a_month_has_ended_and_is_forgotten() {
    for world in worlds().await {
        let client = world.client().await;
        let tokens = world.tokens_of(&client).await;
        world.clock.advance(DAY * 29);
        let tokens = world.renew(renewal(&client, &tokens.refresh_token)).await.unwrap();
        world.clock.advance(DAY * 29);
        world.service.purge().await;
        let tokens = world.renew(renewal(&client, &tokens.refresh_token)).await.unwrap();
        world.clock.advance(DAY * 30);
        assert_eq!(code_of(world.renew(renewal(&client, &tokens.refresh_token)).await), "invalid_grant");
        world.service.purge().await;
        let gone = world.renew(renewal(&client, &tokens.refresh_token)).await;
        assert_eq!(code_of(gone), "invalid_client", "an unused client goes too: {}", world.engine);
    }
}

#[tokio::test]
async fn what_a_grant_allows_follows_the_role_of_its_person() {
    for world in worlds().await {
        let client = world.client().await;
        let editor = world.member("editor@example.com", Role::Editor).await;
        let code = world.allow(&editor, asked(&client), &ALL).await.unwrap();
        let tokens = world.redeem(redemption(&client, &code)).await.unwrap();
        let set = async |statement: &'static str| {
            cairn_chassis::on_db!(world.service.db.writer(), |c| sqlx::query(statement)
                .bind(editor.id.to_string())
                .execute(c)
                .await
                .map(|_| ()))
            .unwrap();
        };
        set("UPDATE members SET role = 'viewer' WHERE user_id = $1").await;
        let identity = world.enter(&tokens.access_token).await.unwrap();
        assert_eq!(identity.permissions.iter().collect::<Vec<_>>(), [identity::Permission::Read]);
        set("DELETE FROM members WHERE user_id = $1").await;
        assert_eq!(reason(world.enter(&tokens.access_token).await), Reason::Unauthorized);
        let left = world.renew(renewal(&client, &tokens.refresh_token)).await;
        assert_eq!(code_of(left), "invalid_grant", "{}", world.engine);
    }
}

#[tokio::test]
async fn a_client_revokes_its_own_tokens_only() {
    for world in worlds().await {
        let client = world.client().await;
        let other = world.client().await;
        let tokens = world.tokens_of(&client).await;
        let revoke = async |client: &str, token: &str| {
            let request = RevokeTokenRequest { client: public(client), token: token.to_owned() };
            world.oauth().revoke_token(request).await.map(drop)
        };
        for nothing in ["", "unknown", &world.first.token] {
            revoke(&client, nothing).await.unwrap();
        }
        for token in [&tokens.access_token, &tokens.refresh_token] {
            revoke(&other, token).await.unwrap();
        }
        assert_eq!(code_of(revoke("nobody", &tokens.access_token).await), "invalid_client");
        world.enter(&tokens.access_token).await.unwrap();

        revoke(&client, &tokens.access_token).await.unwrap();
        assert_eq!(reason(world.enter(&tokens.access_token).await), Reason::Unauthorized);
        let renewed = world.renew(renewal(&client, &tokens.refresh_token)).await.unwrap();
        revoke(&client, &tokens.refresh_token).await.unwrap();
        assert_eq!(reason(world.enter(&renewed.access_token).await), Reason::Unauthorized);
        assert_eq!(code_of(world.renew(renewal(&client, &renewed.refresh_token)).await), "invalid_grant");
        assert!(world.granted(&world.owner().await).await.is_empty(), "{}", world.engine);
    }
}

#[tokio::test]
async fn no_secret_shows_in_debug_output_or_on_the_disk() {
    for world in worlds().await {
        let client = world.register("client_secret_post").await;
        let (id, client_secret) = (client.client_id, client.client_secret.unwrap());
        let proof = Some(ClientProof { client_id: id.clone(), client_secret: Some(client_secret.clone()) });
        let code = world.code(&id).await;
        let first = world
            .redeem(RedeemCodeRequest { client: proof.clone(), ..redemption(&id, &code) })
            .await
            .unwrap();
        let request = RedeemRefreshTokenRequest { client: proof, ..renewal(&id, &first.refresh_token) };
        let second = world.renew(request).await.unwrap();
        let shown = format!("{:?}", world.service);
        let stored = storage::stored_bytes(&world.service.db).await;
        let secrets =
            [&client_secret, &code, &first.access_token, &first.refresh_token, &second.refresh_token];
        for secret in secrets {
            assert!(!shown.contains(secret.as_str()), "{shown}");
            let holds = stored.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!holds, "{}", world.engine);
        }
    }
}
