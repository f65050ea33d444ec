//! The authorization server as the gateway sees it.

mod documents;
mod races;
mod registrations;
mod tokens;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_proto::auth::v1::grant_service_client::GrantServiceClient;
use cairn_proto::auth::v1::oauth_service_client::OauthServiceClient;
use cairn_proto::auth::v1::{
    AccessTokenDoor, AuthorizationRequest, AuthorizeRequest, CheckAuthorizationRequest,
    CheckAuthorizationResponse, ClientProof, ExchangeAccessTokenRequest, Grant, ListGrantsRequest,
    RedeemCodeRequest, RedeemRefreshTokenRequest, RegisterClientRequest, RegisterClientResponse,
    RevokeGrantRequest, RevokeTokenRequest, TokenSet,
};
use sha2::{Digest as _, Sha256};

use super::*;

const BASE: &str = "https://cairn.example";
const REDIRECT: &str = "https://tools.example/callback";
const VERIFIER: &str = "a verifier would have 43 to 128 characters";

/// 43 characters that PKCE takes.
fn verifier() -> String {
    VERIFIER.replace(' ', "-") + "~"
}

fn challenge() -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier().as_bytes()))
}

fn public(client_id: &str) -> Option<ClientProof> {
    Some(ClientProof { client_id: client_id.to_owned(), client_secret: None })
}

fn asked(client_id: &str) -> AuthorizationRequest {
    AuthorizationRequest {
        client_id: client_id.to_owned(),
        redirect_uri: Some(REDIRECT.to_owned()),
        response_type: "code".to_owned(),
        scope: None,
        resources: vec![format!("{BASE}/mcp")],
        code_challenge: challenge(),
        code_challenge_method: "S256".to_owned(),
        base_url: BASE.to_owned(),
    }
}

fn redemption(client_id: &str, code: &str) -> RedeemCodeRequest {
    RedeemCodeRequest {
        client: public(client_id),
        code: code.to_owned(),
        redirect_uri: Some(REDIRECT.to_owned()),
        code_verifier: verifier(),
        resources: vec![format!("{BASE}/mcp")],
        base_url: BASE.to_owned(),
    }
}

fn renewal(client_id: &str, refresh_token: &str) -> RedeemRefreshTokenRequest {
    RedeemRefreshTokenRequest {
        client: public(client_id),
        refresh_token: refresh_token.to_owned(),
        base_url: BASE.to_owned(),
        ..RedeemRefreshTokenRequest::default()
    }
}

/// The error code of the RFC.
fn code_of<T: std::fmt::Debug>(result: Result<T, Status>) -> String {
    broken(result).remove(0).1
}

impl World {
    fn oauth(&self) -> OauthServiceClient<ServiceChannel> {
        OauthServiceClient::new(self.channel.clone())
    }

    fn grants(&self) -> GrantServiceClient<ServiceChannel> {
        GrantServiceClient::new(self.channel.clone())
    }

    async fn register(&self, method: &str) -> RegisterClientResponse {
        let request = RegisterClientRequest {
            client_name: "Tools".to_owned(),
            redirect_uris: vec![REDIRECT.to_owned(), "http://127.0.0.1:1/callback".to_owned()],
            token_endpoint_auth_method: Some(method.to_owned()),
            ..RegisterClientRequest::default()
        };
        self.oauth().register_client(request).await.unwrap().into_inner()
    }

    /// The id of a new public client.
    async fn client(&self) -> String {
        self.register("none").await.client_id
    }

    async fn check(
        &self,
        authorization: AuthorizationRequest,
        person: Option<&Person>,
    ) -> Result<CheckAuthorizationResponse, Status> {
        let message = CheckAuthorizationRequest { authorization: Some(authorization) };
        let request =
            person.map_or_else(|| Request::new(message.clone()), |person| person.request(message.clone()));
        Ok(self.oauth().check_authorization(request).await?.into_inner())
    }

    async fn allow(
        &self,
        person: &Person,
        authorization: AuthorizationRequest,
        permissions: &[Permission],
    ) -> Result<String, Status> {
        let message = AuthorizeRequest {
            authorization: Some(authorization),
            workspace_id: self.workspace(),
            permissions: permissions.iter().map(|permission| (*permission).into()).collect(),
        };
        Ok(self.oauth().authorize(person.request(message)).await?.into_inner().code)
    }

    /// A code of the owner for everything.
    async fn code(&self, client_id: &str) -> String {
        self.allow(&self.owner().await, asked(client_id), &ALL).await.unwrap()
    }

    async fn redeem(&self, request: RedeemCodeRequest) -> Result<TokenSet, Status> {
        Ok(self.oauth().redeem_code(request).await?.into_inner().tokens.unwrap())
    }

    async fn renew(&self, request: RedeemRefreshTokenRequest) -> Result<TokenSet, Status> {
        Ok(self.oauth().redeem_refresh_token(request).await?.into_inner().tokens.unwrap())
    }

    /// Tokens of the owner for everything.
    async fn tokens_of(&self, client_id: &str) -> TokenSet {
        let code = self.code(client_id).await;
        self.redeem(redemption(client_id, &code)).await.unwrap()
    }

    async fn enter(&self, access_token: &str) -> Result<Identity, Status> {
        self.enter_at(access_token, BASE).await
    }

    async fn enter_at(&self, access_token: &str, base: &str) -> Result<Identity, Status> {
        self.enter_by(access_token, base, AccessTokenDoor::Mcp).await
    }

    async fn enter_by(
        &self,
        access_token: &str,
        base: &str,
        door: AccessTokenDoor,
    ) -> Result<Identity, Status> {
        let (access_token, base_url) = (access_token.to_owned(), base.to_owned());
        let request = ExchangeAccessTokenRequest { access_token, base_url, door: door.into() };
        let signed = self.oauth().exchange_access_token(request).await?.into_inner().identity;
        Ok(self.read(&signed).await.unwrap())
    }

    async fn granted(&self, person: &Person) -> Vec<Grant> {
        let message = ListGrantsRequest { workspace_id: self.workspace() };
        self.grants().list_grants(person.request(message)).await.unwrap().into_inner().grants
    }
}

const ALL: [Permission; 3] = [Permission::Read, Permission::Write, Permission::Delete];

#[tokio::test]
async fn a_token_for_the_api_opens_the_endpoint_too_and_not_the_other_way_round() {
    for world in worlds().await {
        let client = world.client().await;
        let resources = vec![format!("{BASE}/api")];
        let authorization = AuthorizationRequest { resources: resources.clone(), ..asked(&client) };
        let code = world.allow(&world.owner().await, authorization, &ALL).await.unwrap();
        let redeemed = RedeemCodeRequest { resources, ..redemption(&client, &code) };
        let for_api = world.redeem(redeemed).await.unwrap().access_token;
        let for_mcp = world.tokens_of(&client).await.access_token;
        for (token, door, opens) in [
            (&for_api, AccessTokenDoor::Api, true),
            (&for_api, AccessTokenDoor::Mcp, true),
            (&for_mcp, AccessTokenDoor::Mcp, true),
            (&for_mcp, AccessTokenDoor::Unspecified, true),
            (&for_mcp, AccessTokenDoor::Api, false),
        ] {
            let entered = world.enter_by(token, BASE, door).await;
            assert_eq!(entered.is_ok(), opens, "{door:?} {}", world.engine);
        }
        assert!(world.enter_by(&for_api, "https://other.example", AccessTokenDoor::Api).await.is_err());
    }
}

#[tokio::test]
async fn a_client_registers_and_its_secret_is_shown_once() {
    for world in worlds().await {
        let public = world.register("none").await;
        assert_eq!((public.client_secret, public.token_endpoint_auth_method.as_str()), (None, "none"));
        let confidential = world.register("client_secret_post").await;
        let secret = confidential.client_secret.clone().unwrap();
        assert!(secret.starts_with("cairn_os_"), "{secret}");

        let code = world.code(&confidential.client_id).await;
        let with = |client_secret: Option<&str>| {
            let client_secret = client_secret.map(ToOwned::to_owned);
            let client = Some(ClientProof { client_id: confidential.client_id.clone(), client_secret });
            RedeemCodeRequest { client, ..redemption(&confidential.client_id, &code) }
        };
        for wrong in [None, Some("wrong"), Some("")] {
            assert_eq!(code_of(world.redeem(with(wrong)).await), "invalid_client", "{wrong:?}");
        }
        world.redeem(with(Some(&secret))).await.unwrap();
        let unknown = ClientProof { client_id: "nobody\0".to_owned(), client_secret: None };
        let request = RedeemCodeRequest { client: Some(unknown), ..redemption("", "") };
        assert_eq!(code_of(world.redeem(request).await), "invalid_client", "{}", world.engine);
    }
}

#[tokio::test]
async fn nothing_goes_to_a_redirect_uri_that_is_not_the_clients() {
    for world in worlds().await {
        let client = world.client().await;
        let with = |uri: Option<&str>| AuthorizationRequest {
            redirect_uri: uri.map(ToOwned::to_owned),
            ..asked(&client)
        };
        let checked = world.check(with(Some("http://127.0.0.1:4711/callback")), None).await.unwrap();
        assert_eq!(
            (checked.redirect_uri.as_str(), checked.redirect_host.as_str(), checked.is_loopback),
            ("http://127.0.0.1:4711/callback", "127.0.0.1:4711", true)
        );
        assert_eq!(checked.client_name, "Tools");
        for uri in [None, Some("https://evil.example/"), Some("https://tools.example/callback/"), Some("\0")]
        {
            assert_eq!(code_of(world.check(with(uri), None).await), "invalid_request", "{uri:?}");
        }
        let unknown = world.check(asked("nobody"), None).await;
        assert_eq!(code_of(unknown), "invalid_client", "{}", world.engine);
    }
}

#[tokio::test]
async fn a_wrong_request_is_told_to_the_client() {
    for world in worlds().await {
        let client = world.client().await;
        type Change = fn(&mut AuthorizationRequest);
        let changes: [(&str, Change); 9] = [
            ("invalid_request", |asked| asked.response_type.clear()),
            ("unsupported_response_type", |asked| asked.response_type = "token".to_owned()),
            ("invalid_request", |asked| asked.code_challenge.clear()),
            ("invalid_request", |asked| asked.code_challenge = "short".to_owned()),
            ("invalid_request", |asked| asked.code_challenge_method.clear()),
            ("invalid_request", |asked| asked.code_challenge_method = "plain".to_owned()),
            ("invalid_scope", |asked| asked.scope = Some("everything".to_owned())),
            ("invalid_target", |asked| asked.resources = vec!["https://evil.example/mcp".to_owned()]),
            ("invalid_target", |asked| asked.resources.push("x".to_owned())),
        ];
        let owner = world.owner().await;
        for (expected, change) in changes {
            let mut wrong = asked(&client);
            change(&mut wrong);
            let refusal = world.check(wrong.clone(), None).await.unwrap().refusal.unwrap();
            assert_eq!(refusal.error, expected, "{wrong:?}");
            assert_eq!(code_of(world.allow(&owner, wrong, &ALL).await), expected, "{}", world.engine);
        }
    }
}

#[tokio::test]
async fn a_person_grants_no_more_than_was_asked_chosen_and_allowed() {
    for world in worlds().await {
        let client = world.client().await;
        let viewer = world.member("viewer@example.com", Role::Viewer).await;
        let stranger = world.stranger("stranger@example.com").await;
        let only_read = AuthorizationRequest { scope: Some("read".to_owned()), ..asked(&client) };
        for (person, authorization, chosen) in
            [(world.owner().await, only_read, &ALL[..]), (viewer.clone(), asked(&client), &ALL[..])]
        {
            let code = world.allow(&person, authorization, chosen).await.unwrap();
            let tokens = world.redeem(redemption(&client, &code)).await.unwrap();
            assert_eq!(tokens.permissions().collect::<Vec<_>>(), [Permission::Read]);
        }
        for (person, chosen) in [(&viewer, &ALL[1..]), (&viewer, &[])] {
            let refused = broken(world.allow(person, asked(&client), chosen).await);
            assert_eq!(refused[0].0, "permissions");
        }
        assert_eq!(reason(world.allow(&stranger, asked(&client), &ALL).await), Reason::NotFound);
        let nobody = AuthorizeRequest { authorization: Some(asked(&client)), ..AuthorizeRequest::default() };
        assert_eq!(reason(world.oauth().authorize(nobody).await), Reason::Unauthorized, "{}", world.engine);
    }
}

#[tokio::test]
async fn owners_and_admins_end_every_grant_and_others_their_own() {
    for world in worlds().await {
        let client = world.client().await;
        let owner = world.owner().await;
        let editor = world.member("editor@example.com", Role::Editor).await;
        let viewer = world.member("viewer@example.com", Role::Viewer).await;
        let of_owner = world.tokens_of(&client).await;
        world.clock.advance(MINUTE);
        let code = world.allow(&editor, asked(&client), &ALL).await.unwrap();
        let of_editor = world.redeem(redemption(&client, &code)).await.unwrap();

        let all = world.granted(&owner).await;
        let emails: Vec<_> = all.iter().map(|grant| grant.user_email.as_str()).collect();
        assert_eq!(emails, ["editor@example.com", world.first.email.as_str()], "newest first");
        let newest = &all[0];
        assert_eq!((newest.client_name.as_str(), newest.redirect_host.as_str()), ("Tools", "tools.example"));
        assert_eq!(world.granted(&editor).await, all[..1]);
        assert!(world.granted(&viewer).await.is_empty());

        let revoke = async |person: &Person, grant: &str| {
            let (workspace_id, grant_id) = (world.workspace(), grant.to_owned());
            world.grants().revoke_grant(person.request(RevokeGrantRequest { workspace_id, grant_id })).await
        };
        for (person, grant) in [(&viewer, &all[0].id), (&editor, &all[1].id)] {
            assert_eq!(reason(revoke(person, grant).await), Reason::NotFound);
        }
        assert_eq!(reason(revoke(&owner, "no id").await), Reason::NotFound);
        revoke(&owner, &newest.id).await.unwrap();
        assert_eq!(reason(world.enter(&of_editor.access_token).await), Reason::Unauthorized);
        assert_eq!(code_of(world.renew(renewal(&client, &of_editor.refresh_token)).await), "invalid_grant");
        world.enter(&of_owner.access_token).await.unwrap();
        assert_eq!(world.granted(&owner).await.len(), 1, "{}", world.engine);
    }
}
