use cairn_proto::auth::v1::invitation_service_client::InvitationServiceClient;
use cairn_proto::auth::v1::oauth_service_client::OauthServiceClient;
use cairn_proto::auth::v1::oidc_service_client::OidcServiceClient;
use cairn_proto::auth::v1::{
    ChangePasswordRequest, CreateSessionRequest, ExchangeAccessTokenRequest, FinishSignInRequest,
    GetProviderRequest, LookUpInvitationRequest,
};

use super::*;

const OWNER: &str = "owner@localhost";

impl World {
    /// A sign-in from the address 203.0.113.`host`.
    async fn knock(&self, host: u8, email: &str, password: &str) -> Result<(), Status> {
        let request = CreateSessionRequest {
            email: email.to_owned(),
            password: password.to_owned(),
            source_address: Some(format!("203.0.113.{host}")),
            agent: String::new(),
        };
        self.sessions().create_session(request).await.map(drop)
    }

    async fn guess(&self, host: u8, email: &str) -> Reason {
        Problem::from_status(&self.knock(host, email, "a wrong one").await.unwrap_err()).reason
    }
}

#[tokio::test]
async fn an_address_that_guesses_waits_whatever_the_account() {
    for world in worlds().await {
        for number in 0..10 {
            assert_eq!(world.guess(1, &format!("{number}@example.com")).await, Reason::Unauthorized);
        }
        let refused = world.knock(1, OWNER, PASSWORD).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted, "{}", world.engine);
        let wait = Problem::from_status(&refused).retry_after.unwrap();
        assert!(!wait.is_zero() && wait <= MINUTE, "{wait:?}");
        world.knock(2, OWNER, PASSWORD).await.unwrap();
        world.clock.advance(wait);
        world.knock(1, OWNER, PASSWORD).await.unwrap();
    }
}

#[tokio::test]
async fn many_addresses_cannot_guess_one_account_and_its_own_address_stays_open() {
    for world in worlds().await {
        world.knock(1, OWNER, PASSWORD).await.unwrap();
        for host in 100..110 {
            assert_eq!(world.guess(host, "Owner@localhost ").await, Reason::Unauthorized);
        }
        assert_eq!(world.guess(200, OWNER).await, Reason::RateLimited, "strangers wait");
        world.knock(1, OWNER, PASSWORD).await.unwrap();
        // Windows end, and what is over is forgotten: not even a stranger waits for ever.
        world.clock.advance(MINUTE);
        world.service.purge().await;
        world.knock(200, OWNER, PASSWORD).await.unwrap();
    }
}

#[tokio::test]
async fn what_did_not_fail_does_not_count_and_neither_does_what_was_refused() {
    for world in worlds().await {
        for _ in 0..11 {
            world.knock(1, OWNER, PASSWORD).await.unwrap();
        }
        for _ in 0..10 {
            assert_eq!(world.guess(2, "nobody@example.com").await, Reason::Unauthorized);
        }
        // Sixty in the hour would be the end for that address, if these counted.
        for _ in 0..60 {
            assert_eq!(world.guess(2, "nobody@example.com").await, Reason::RateLimited);
        }
        world.clock.advance(MINUTE);
        assert_eq!(world.guess(2, "nobody@example.com").await, Reason::Unauthorized);
    }
}

#[tokio::test]
async fn a_guess_at_the_old_password_counts_like_one_at_the_sign_in() {
    for world in worlds().await {
        let owner = world.owner().await;
        let change = async || {
            let request = owner.request(ChangePasswordRequest {
                current_password: "a wrong one".to_owned(),
                new_password: "a new password".to_owned(),
                session_secret: None,
                source_address: Some("203.0.113.9".to_owned()),
            });
            Problem::from_status(&world.sessions().change_password(request).await.unwrap_err()).reason
        };
        for _ in 0..10 {
            assert_eq!(change().await, Reason::ValidationError);
        }
        assert_eq!(change().await, Reason::RateLimited, "{}", world.engine);
        assert_eq!(world.guess(9, OWNER).await, Reason::RateLimited, "the same window");
    }
}

/// What the four services answer whoever calls like that.
async fn answers(channel: &ServiceChannel, bearer: Option<&str>) -> [Result<(), Status>; 4] {
    fn with<T>(bearer: Option<&str>, message: T) -> Request<T> {
        let call = Call::within(MINUTE);
        bearer.map_or_else(|| call.clone(), |bearer| call.clone().with_identity(bearer)).request(message)
    }
    let mut sessions = SessionServiceClient::new(channel.clone());
    let mut invitations = InvitationServiceClient::new(channel.clone());
    let mut oauth = OauthServiceClient::new(channel.clone());
    let mut oidc = OidcServiceClient::new(channel.clone());
    let email = OWNER.to_owned();
    let form = CreateSessionRequest {
        email,
        password: PASSWORD.to_owned(),
        source_address: None,
        agent: String::new(),
    };
    let secret = LookUpInvitationRequest { secret: "x".to_owned() };
    [
        sessions.create_session(with(bearer, form)).await.map(drop),
        invitations.look_up_invitation(with(bearer, secret)).await.map(drop),
        oauth.exchange_access_token(with(bearer, ExchangeAccessTokenRequest::default())).await.map(drop),
        oidc.get_provider(with(bearer, GetProviderRequest {})).await.map(drop),
    ]
}

#[tokio::test]
async fn only_services_of_the_mesh_open_and_exchange_sessions() {
    for world in worlds().await {
        for answer in answers(&world.direct, None).await {
            let problem = Problem::from_status(&answer.unwrap_err());
            assert_eq!(problem.reason, Reason::Unauthorized);
            assert!(problem.message.contains("services of the mesh"), "{}", problem.message);
        }
        let owner = world.owner().await;
        for answer in answers(&world.direct, Some(&owner.identity)).await {
            assert_eq!(reason(answer), Reason::Forbidden, "{}", world.engine);
        }
        for answer in answers(&world.direct, Some("nonsense")).await {
            assert_eq!(reason(answer), Reason::Unauthorized);
        }
        // As the gateway calls, and as a service that calls for itself.
        let own = world.service.service_identities.issue("ingest", MESH_SECRET).unwrap().identity;
        for [opened, invited, exchanged, provider] in
            [answers(&world.channel, None).await, answers(&world.direct, Some(&own)).await]
        {
            opened.unwrap();
            provider.unwrap();
            assert_eq!(reason(invited), Reason::NotFound);
            assert_eq!(reason(exchanged), Reason::Unauthorized);
        }
    }
}

#[tokio::test]
async fn a_sign_in_that_nobody_looked_at_does_not_count() {
    for world in worlds().await {
        // There is no provider.
        for _ in 0..11 {
            let source_address = Some("203.0.113.5".to_owned());
            let message = FinishSignInRequest { source_address, ..Default::default() };
            let answer = OidcServiceClient::new(world.channel.clone()).finish_sign_in(message).await;
            assert_eq!(reason(answer), Reason::NotFound);
        }
    }
}
