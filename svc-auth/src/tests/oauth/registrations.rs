use super::*;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// What the deployments of these tests keep.
const MAX_REGISTRATIONS: usize = 20;

impl World {
    async fn try_register(&self, uris: Vec<String>) -> Result<RegisterClientResponse, Status> {
        let method = Some("none".to_owned());
        let request = RegisterClientRequest {
            redirect_uris: uris,
            token_endpoint_auth_method: method,
            ..RegisterClientRequest::default()
        };
        Ok(self.oauth().register_client(request).await?.into_inner())
    }
}

#[tokio::test]
async fn clients_that_nobody_uses_are_few_and_go_after_a_day() {
    for world in worlds().await {
        // One that is used counts no more.
        let used = world.client().await;
        let tokens = world.tokens_of(&used).await;
        let mut unused = Vec::new();
        for _ in 0..MAX_REGISTRATIONS {
            unused.push(world.client().await);
        }
        let refused = problem(world.try_register(vec![REDIRECT.to_owned()]).await);
        assert_eq!(refused.reason, Reason::RateLimited, "{}", world.engine);
        assert!(refused.retry_after.is_some() && refused.message.contains("20 registered"), "{refused}");
        world.allow(&world.owner().await, asked(&unused[0]), &ALL).await.unwrap();
        world.client().await;
        assert_eq!(reason(world.try_register(vec![REDIRECT.to_owned()]).await), Reason::RateLimited);

        // Within the day they are known, and then their room is free again, whether a purge came by or not.
        world.clock.advance(DAY / 2);
        world.service.purge().await;
        world.allow(&world.owner().await, asked(&unused[1]), &ALL).await.unwrap();
        world.clock.advance(DAY);
        world.client().await;
        let gone = world.allow(&world.owner().await, asked(&unused[2]), &ALL).await;
        assert_eq!(code_of(gone), "invalid_client");
        // What was used stays.
        world.service.purge().await;
        world.renew(renewal(&used, &tokens.refresh_token)).await.unwrap();
        world.allow(&world.owner().await, asked(&unused[1]), &ALL).await.unwrap();
    }
}

#[tokio::test]
async fn a_registration_has_at_most_eight_kibibytes() {
    for world in worlds().await {
        let uri = |length: usize| format!("{REDIRECT}?{}", "x".repeat(length - REDIRECT.len() - 1));
        world.try_register(vec![uri(1_024); 8]).await.unwrap();
        let refused = world.try_register([vec![uri(1_024); 7], vec![uri(1_025)]].concat()).await;
        assert_eq!(code_of(refused), "invalid_client_metadata", "{}", world.engine);
    }
}
