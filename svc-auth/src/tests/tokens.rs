use cairn_chassis::identity::{Permission as Right, PermissionSet};
use cairn_chassis::token_format;
use cairn_proto::auth::v1::{
    DeleteTokenRequest, ExchangeRequest, ListTokensRequest, TokenScope, UpdateTokenRequest,
};

use super::*;

pub(super) const READ_WRITE: [Permission; 2] = [Permission::Read, Permission::Write];
pub(super) const EVERYTHING: [Permission; 3] = [Permission::Read, Permission::Write, Permission::Delete];
pub(super) const FOLDER: &str = "0199c0de-0000-7000-8000-000000000001";

impl World {
    pub(super) async fn exchange(&self, secret: &str) -> Result<Identity, Status> {
        let request = Request::new(ExchangeRequest { api_token: secret.to_owned() });
        let issued = self.tokens().exchange(request).await?.into_inner();
        let identity = self.read(&issued.identity).await?;
        assert_eq!(issued.expires_at, Some(identity.expires_at.to_proto()), "{}", self.engine);
        Ok(identity)
    }

    pub(super) async fn set_active(
        &self,
        person: &Person,
        token: &Token,
        active: bool,
    ) -> Result<Token, Status> {
        let message = UpdateTokenRequest {
            workspace_id: token.workspace_id.clone(),
            token_id: token.id.clone(),
            active: Some(active),
            name: None,
        };
        let response = self.tokens().update_token(person.request(message)).await?;
        Ok(response.into_inner().token.unwrap())
    }

    pub(super) async fn delete(&self, person: &Person, token: &Token) -> Result<(), Status> {
        let (workspace_id, token_id) = (token.workspace_id.clone(), token.id.clone());
        let message = DeleteTokenRequest { workspace_id, token_id };
        self.tokens().delete_token(person.request(message)).await.map(|_| ())
    }

    pub(super) async fn list(&self, person: &Person) -> Result<Vec<Token>, Status> {
        let message = ListTokensRequest { workspace_id: self.workspace() };
        Ok(self.tokens().list_tokens(person.request(message)).await?.into_inner().tokens)
    }
}

pub(super) fn rights(of: &[Right]) -> PermissionSet {
    of.iter().copied().collect()
}

#[tokio::test]
async fn a_token_lives_from_creation_to_deletion() {
    for world in worlds().await {
        let owner = world.owner().await;
        let (token, secret) = world.token(&owner, &READ_WRITE).await;
        assert!(token_format::is_well_formed(&secret));
        assert_eq!(token.last_four, secret[secret.len() - 4..]);
        assert_eq!(token.owner_id, owner.id.to_string());
        assert!(token.active && token.scope.is_none() && token.last_used_at.is_none());

        let identity = world.exchange(&secret).await.unwrap();
        assert_eq!(identity.principal.kind, PrincipalKind::Token);
        assert_eq!((identity.principal.id, identity.principal.name), (token.id.clone(), "agent".to_owned()));
        assert_eq!(identity.workspace, Some(world.first.workspace_id));
        assert_eq!(identity.permissions, rights(&[Right::Read, Right::Write]));
        assert_eq!(identity.plan.as_deref(), Some("selfhosted"));
        assert_eq!(identity.expires_at, world.clock.now().plus(5 * MINUTE));

        assert!(!world.set_active(&owner, &token, false).await.unwrap().active);
        assert_eq!(reason(world.exchange(&secret).await), Reason::Unauthorized, "{}", world.engine);
        assert!(world.set_active(&owner, &token, true).await.unwrap().active);
        world.exchange(&secret).await.unwrap();
        world.delete(&owner, &token).await.unwrap();
        assert_eq!(reason(world.exchange(&secret).await), Reason::Unauthorized, "{}", world.engine);
        assert_eq!(reason(world.delete(&owner, &token).await), Reason::NotFound);
        assert_eq!(reason(world.set_active(&owner, &token, true).await), Reason::NotFound);
    }
}

#[tokio::test]
async fn a_bad_token_is_told_everything_at_once() {
    for world in worlds().await {
        let viewer = world.member("viewer@example.com", Role::Viewer).await;
        let message = CreateTokenRequest {
            workspace_id: world.workspace(),
            name: String::new(),
            permissions: vec![Permission::Read.into(), Permission::Write.into(), 0, 99],
            scope: Some(TokenScope { folder_ids: Vec::new() }),
            expires_at: Some(world.clock.now().to_proto()),
        };
        let found = broken(world.tokens().create_token(viewer.request(message)).await);
        let expected = [
            ("name", "required"),
            ("permissions[1]", "beyond_role"),
            ("permissions[2]", "invalid"),
            ("permissions[3]", "invalid"),
            ("scope.folderIds", "invalid"),
            ("expiresAt", "invalid"),
        ];
        assert_eq!(found, expected.map(|(path, code)| (path.to_owned(), code.to_owned())));
    }
}

#[tokio::test]
async fn owners_and_admins_manage_all_tokens_and_others_their_own() {
    for world in worlds().await {
        let owner = world.owner().await;
        let admin = world.member("admin@example.com", Role::Admin).await;
        let editor = world.member("editor@example.com", Role::Editor).await;
        let viewer = world.member("viewer@example.com", Role::Viewer).await;
        world.clock.advance(MINUTE);
        let (of_editor, _) = world.token(&editor, &READ_WRITE).await;
        world.clock.advance(MINUTE);
        let (of_owner, _) = world.token(&owner, &READ_WRITE).await;

        for manager in [&owner, &admin] {
            let listed = world.list(manager).await.unwrap();
            assert_eq!(listed.len(), 3);
            assert_eq!(listed[..2], [of_owner.clone(), of_editor.clone()], "newest first");
        }
        assert_eq!(world.list(&editor).await.unwrap(), std::slice::from_ref(&of_editor));
        assert!(world.list(&viewer).await.unwrap().is_empty());
        assert_eq!(reason(world.set_active(&editor, &of_owner, false).await), Reason::NotFound);
        assert_eq!(reason(world.delete(&viewer, &of_editor).await), Reason::NotFound);
        world.set_active(&editor, &of_editor, false).await.unwrap();
        world.delete(&admin, &of_editor).await.unwrap();
    }
}

#[tokio::test]
async fn strangers_and_other_workspaces_see_nothing() {
    for world in worlds().await {
        let owner = world.owner().await;
        let (token, _) = world.token(&owner, &READ_WRITE).await;
        let stranger = world.stranger("stranger@example.com").await;
        let theirs = world.service.workspaces.create(stranger.id, "Theirs").await.unwrap().workspace.id;

        assert_eq!(reason(world.list(&stranger).await), Reason::NotFound);
        assert_eq!(reason(world.set_active(&stranger, &token, false).await), Reason::NotFound);
        let elsewhere = Token { workspace_id: theirs.to_string(), ..token.clone() };
        assert_eq!(reason(world.set_active(&stranger, &elsewhere, false).await), Reason::NotFound);
        assert_eq!(reason(world.delete(&stranger, &elsewhere).await), Reason::NotFound);
        for odd in ["", "x", FOLDER] {
            let message = ListTokensRequest { workspace_id: odd.to_owned() };
            assert_eq!(
                reason(world.tokens().list_tokens(owner.request(message)).await),
                Reason::NotFound,
                "{odd}"
            );
            let odd_token = Token { id: odd.to_owned(), ..token.clone() };
            assert_eq!(reason(world.delete(&owner, &odd_token).await), Reason::NotFound, "{odd}");
        }
        assert_eq!(world.list(&owner).await.unwrap().len(), 2);
    }
}

#[tokio::test]
async fn managing_tokens_needs_a_signed_in_person() {
    for world in worlds().await {
        let message = ListTokensRequest { workspace_id: world.workspace() };
        let nobody = world.tokens().list_tokens(Request::new(message.clone())).await;
        assert_eq!(reason(nobody), Reason::Unauthorized);
        let issued = world.service.tokens.exchange(&world.first.token, &call()).await.unwrap();
        let token = Call::within(MINUTE).with_identity(&issued.identity).request(message);
        assert_eq!(reason(world.tokens().list_tokens(token).await), Reason::Forbidden, "{}", world.engine);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_has_so_many_live_tokens_in_a_workspace() {
    for world in worlds().await {
        let owner = world.owner().await;
        let editor = world.member("editor@example.com", Role::Editor).await;
        let (first, _) = world.token(&editor, &EVERYTHING).await;
        for _ in 1..100 {
            world.token(&editor, &EVERYTHING).await;
        }
        let more = CreateTokenRequest {
            workspace_id: world.workspace(),
            name: "one more".to_owned(),
            permissions: vec![Permission::Read.into()],
            ..CreateTokenRequest::default()
        };
        let create = async || world.tokens().create_token(editor.request(more.clone())).await;
        world.set_active(&editor, &first, false).await.unwrap();
        let full = problem(create().await);
        assert_eq!(full.reason, Reason::LimitExceeded);
        assert!(full.message.contains("100 of at most 100 live tokens"), "{full}");
        world.token(&owner, &EVERYTHING).await;
        world.delete(&editor, &first).await.unwrap();
        let (one, two) = tokio::join!(create(), create());
        assert!(one.is_ok() != two.is_ok(), "{}: {one:?} {two:?}", world.engine);
    }
}
