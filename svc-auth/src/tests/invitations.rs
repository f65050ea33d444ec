use cairn_proto::auth::v1::invitation_service_client::InvitationServiceClient;
use cairn_proto::auth::v1::{
    AcceptInvitationRequest, AcceptInvitationResponse, DeleteInvitationRequest, DeleteWorkspaceRequest,
    Invitation, Invited, JoinWorkspaceRequest, ListInvitationsRequest, LookUpInvitationRequest,
    LookUpInvitationResponse, Membership, Role as ProtoRole,
};

use super::*;

const EMAIL: &str = "new@example.com";
const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

impl World {
    pub(super) fn invitations(&self) -> InvitationServiceClient<ServiceChannel> {
        InvitationServiceClient::new(self.channel.clone())
    }

    async fn list_invitations(&self, person: &Person) -> Result<Vec<Invitation>, Status> {
        let message = ListInvitationsRequest { workspace_id: self.workspace() };
        Ok(self.invitations().list_invitations(person.request(message)).await?.into_inner().invitations)
    }

    async fn take_back(&self, person: &Person, invitation: &Invitation) -> Result<(), Status> {
        let (workspace_id, invitation_id) = (invitation.workspace_id.clone(), invitation.id.clone());
        let message = DeleteInvitationRequest { workspace_id, invitation_id };
        self.invitations().delete_invitation(person.request(message)).await.map(drop)
    }

    async fn look_up(&self, secret: &str) -> Result<LookUpInvitationResponse, Status> {
        let message = Request::new(LookUpInvitationRequest { secret: secret.to_owned() });
        Ok(self.invitations().look_up_invitation(message).await?.into_inner())
    }

    async fn accept(&self, secret: &str) -> Result<AcceptInvitationResponse, Status> {
        self.accept_as(secret, "New Person", PASSWORD).await
    }

    async fn accept_as(
        &self,
        secret: &str,
        name: &str,
        password: &str,
    ) -> Result<AcceptInvitationResponse, Status> {
        let [secret, name, password] = [secret, name, password].map(ToOwned::to_owned);
        let message = Request::new(AcceptInvitationRequest {
            secret,
            name,
            password,
            source_address: None,
            agent: String::new(),
        });
        Ok(self.invitations().accept_invitation(message).await?.into_inner())
    }

    async fn join_with(&self, person: &Person, secret: &str) -> Result<Membership, Status> {
        let message = person.request(JoinWorkspaceRequest { secret: secret.to_owned() });
        Ok(self.invitations().join_workspace(message).await?.into_inner().membership.unwrap())
    }

    /// The secret opens nothing, in none of the ways.
    async fn is_closed(&self, secret: &str) {
        assert_eq!(reason(self.look_up(secret).await), Reason::NotFound, "{}", self.engine);
        assert_eq!(reason(self.accept(secret).await), Reason::NotFound);
        let somebody = self.stranger(&format!("{:x}@example.com", rand_part())).await;
        assert_eq!(reason(self.join_with(&somebody, secret).await), Reason::NotFound);
    }
}

fn rand_part() -> u64 {
    let mut bytes = [0; 8];
    OsEntropy.fill(&mut bytes);
    u64::from_be_bytes(bytes)
}

#[tokio::test]
async fn an_invitation_makes_an_account_once() {
    for world in worlds().await {
        let owner = world.owner().await;
        let Invited { invitation, secret, .. } =
            world.invite(&owner, " New@Example.com ", ProtoRole::Editor).await;
        let invitation = invitation.unwrap();
        assert_eq!((invitation.email.as_str(), invitation.role()), (EMAIL, ProtoRole::Editor));
        assert_eq!(invitation.expires_at, Some(world.clock.now().plus(WEEK).to_proto()));
        assert_eq!(world.list_invitations(&owner).await.unwrap(), std::slice::from_ref(&invitation));
        let seen = world.look_up(&secret).await.unwrap();
        assert_eq!((seen.invitation, seen.workspace_name.as_str()), (Some(invitation), "Home"));

        let accepted = world.accept(&secret).await.unwrap();
        let user = accepted.user.unwrap();
        assert_eq!((user.email.as_str(), user.name.as_str()), (EMAIL, "New Person"));
        assert_eq!(accepted.memberships.len(), 1);
        assert_eq!(accepted.memberships[0].role(), ProtoRole::Editor);
        let signed = world.service.sessions.exchange(&accepted.session_secret, None).await.unwrap();
        assert_eq!(world.read(&signed.identity).await.unwrap().user_id().unwrap().to_string(), user.id);
        world.service.sessions.create(&Device::default(), EMAIL, PASSWORD).await.unwrap();

        world.is_closed(&secret).await;
        assert!(world.list_invitations(&owner).await.unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_that_accept_at_once_one_gets_in() {
    for world in worlds().await {
        let owner = world.owner().await;
        let secret = world.invite(&owner, EMAIL, ProtoRole::Viewer).await.secret;
        let (one, two) = tokio::join!(world.accept(&secret), world.accept(&secret));
        let refused = match (one, two) {
            (Ok(_), Err(refused)) | (Err(refused), Ok(_)) => refused,
            other => panic!("{} {other:?}", world.engine),
        };
        let refused = Problem::from_status(&refused);
        assert!(matches!(refused.reason, Reason::NotFound | Reason::Unauthorized), "{refused}");
    }
}

#[tokio::test]
async fn a_closed_invitation_opens_nothing() {
    for world in worlds().await {
        let owner = world.owner().await;
        for odd in ["", "x", &"0".repeat(64), "nul\0"] {
            world.is_closed(odd).await;
        }
        let taken_back = world.invite(&owner, EMAIL, ProtoRole::Viewer).await;
        world.take_back(&owner, &taken_back.invitation.clone().unwrap()).await.unwrap();
        world.is_closed(&taken_back.secret).await;
        let again = world.take_back(&owner, &taken_back.invitation.unwrap()).await;
        assert_eq!(reason(again), Reason::NotFound);

        let replaced = world.invite(&owner, EMAIL, ProtoRole::Admin).await.secret;
        let current = world.invite(&owner, EMAIL, ProtoRole::Viewer).await.secret;
        world.is_closed(&replaced).await;
        world.clock.advance(WEEK - MINUTE);
        world.look_up(&current).await.unwrap();
        world.clock.advance(MINUTE);
        world.is_closed(&current).await;
        let owner = world.owner().await;
        assert!(world.list_invitations(&owner).await.unwrap().is_empty());
        assert_eq!(world.service.invitations.purge().await.unwrap(), 1, "{}", world.engine);

        let orphan = world.invite(&owner, EMAIL, ProtoRole::Viewer).await.secret;
        let close = DeleteWorkspaceRequest { workspace_id: world.workspace() };
        world.workspaces().delete_workspace(owner.request(close)).await.unwrap();
        world.is_closed(&orphan).await;
    }
}

#[tokio::test]
async fn an_invitation_is_worth_what_its_maker_may_grant() {
    for world in worlds().await {
        let owner = world.owner().await;
        let admin = world.member("admin@example.com", Role::Admin).await;
        let other = world.member("other@example.com", Role::Admin).await;
        let of_admin = world.invite(&admin, "a@example.com", ProtoRole::Admin).await.secret;
        let of_other = world.invite(&other, "b@example.com", ProtoRole::Admin).await.secret;
        let of_owner = world.invite(&owner, "c@example.com", ProtoRole::Admin).await.secret;
        world.change_role(&owner, &admin, ProtoRole::Editor).await.unwrap();
        world.remove(&owner, &other).await.unwrap();
        world.is_closed(&of_admin).await;
        world.is_closed(&of_other).await;
        world.accept(&of_owner).await.unwrap();
    }
}

#[tokio::test]
async fn a_person_with_an_account_joins_signed_in() {
    for world in worlds().await {
        let owner = world.owner().await;
        let secret = world.invite(&owner, EMAIL, ProtoRole::Contributor).await.secret;
        let other = world.stranger("other@example.com").await;
        let invited = world.stranger(EMAIL).await;
        assert_eq!(reason(world.join_with(&other, &secret).await), Reason::Forbidden);
        let joined = world.join_with(&invited, &secret).await.unwrap();
        assert_eq!(joined.role(), ProtoRole::Contributor);
        world.is_closed(&secret).await;
    }
}

#[tokio::test]
async fn only_managers_see_and_take_back_invitations() {
    for world in worlds().await {
        let owner = world.owner().await;
        let editor = world.member("editor@example.com", Role::Editor).await;
        let admin = world.member("admin@example.com", Role::Admin).await;
        let stranger = world.stranger("stranger@example.com").await;
        let invitation = world.invite(&owner, EMAIL, ProtoRole::Viewer).await.invitation.unwrap();
        assert_eq!(reason(world.list_invitations(&editor).await), Reason::Forbidden);
        assert_eq!(reason(world.list_invitations(&stranger).await), Reason::NotFound);
        assert_eq!(reason(world.take_back(&editor, &invitation).await), Reason::Forbidden);
        assert_eq!(reason(world.take_back(&stranger, &invitation).await), Reason::NotFound);
        let odd = Invitation { id: "x".to_owned(), ..invitation.clone() };
        assert_eq!(reason(world.take_back(&admin, &odd).await), Reason::NotFound);
        world.take_back(&admin, &invitation).await.unwrap();
    }
}

#[tokio::test]
async fn a_bad_account_is_told_everything_and_costs_no_invitation() {
    for world in worlds().await {
        let owner = world.owner().await;
        let secret = world.invite(&owner, EMAIL, ProtoRole::Viewer).await.secret;
        let found = broken(world.accept_as(&secret, " ", "short").await);
        assert_eq!(found, [("name".into(), "required".into()), ("password".into(), "too_short".into())]);
        world.accept(&secret).await.unwrap();
        let shown = format!("{:?}", world.service.invitations);
        assert!(!shown.contains(&secret), "{}", world.engine);
    }
}

#[tokio::test]
async fn the_password_of_an_account_accepts_with_it_and_another_one_does_not() {
    for world in worlds().await {
        let owner = world.owner().await;
        let first = world.invite(&owner, EMAIL, ProtoRole::Viewer).await.secret;
        let made = world.accept(&first).await.unwrap().user.unwrap();
        assert!(!made.email_verified, "the link was shown to somebody else");
        let person = world.person_of(made.id.parse().unwrap());
        world.remove(&owner, &person).await.unwrap();

        let second = world.invite(&owner, EMAIL, ProtoRole::Editor).await.secret;
        let guess = world.accept_as(&second, "Thief", "a guess of that password").await;
        assert_eq!(reason(guess), Reason::Unauthorized);
        let accepted = world.accept_as(&second, "Another Name", PASSWORD).await.unwrap();
        assert_eq!(accepted.user.unwrap(), made, "{}", world.engine);
        assert_eq!(accepted.memberships[0].role(), ProtoRole::Editor);
    }
}
