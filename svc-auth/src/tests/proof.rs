use cairn_proto::auth::v1::{
    AcceptInvitationRequest, AcceptInvitationResponse, AcceptPendingInvitationRequest, CreateSessionRequest,
    CreateWorkspaceRequest, DeclinePendingInvitationRequest, GetSessionRequest, GetSessionResponse,
    Role as ProtoRole,
};
use cairn_proto::ids::InvitationId;

use super::tokens::EVERYTHING;
use super::*;
use crate::model::invitations::NewInvitation;
use crate::{proof, secrets};

const EMAIL: &str = "cfo@corp.example";
const MAILED: &str = "the secret that only a mailbox has";
const OTHER: &str = "what its owner chooses";

impl World {
    async fn accept_with(&self, secret: &str, password: &str) -> Result<AcceptInvitationResponse, Status> {
        let [secret, name, password] = [secret, "Name", password].map(ToOwned::to_owned);
        let message = Request::new(AcceptInvitationRequest {
            secret,
            name,
            password,
            source_address: None,
            agent: String::new(),
        });
        Ok(self.invitations().accept_invitation(message).await?.into_inner())
    }

    async fn signs_in(&self, password: &str) -> bool {
        let (email, password) = (EMAIL.to_owned(), password.to_owned());
        self.sessions()
            .create_session(Request::new(CreateSessionRequest {
                email,
                password,
                source_address: None,
                agent: String::new(),
            }))
            .await
            .is_ok()
    }

    async fn session_of(&self, person: &Person) -> GetSessionResponse {
        self.sessions().get_session(person.request(GetSessionRequest {})).await.unwrap().into_inner()
    }

    /// An invitation by the owner whose secret went out by mail.
    async fn mail(&self, role: Role, secret: &str) -> InvitationId {
        let now = self.clock.now();
        let new = NewInvitation {
            id: self.service.ambient.ids.next(),
            workspace: self.first.workspace_id,
            email: EMAIL,
            role,
            inviter: self.owner().await.id,
            digest: secrets::digest(&format!("shown {secret}")),
            mail_digest: Some(secrets::digest(secret)),
            created_at: now,
            expires_at: now.plus(MINUTE),
        };
        let mut tx = self.service.db.begin_write().await.unwrap();
        store::invitations::delete_of_email(&mut tx, new.workspace, EMAIL).await.unwrap();
        store::invitations::insert(&mut tx, &new).await.unwrap();
        tx.commit().await.unwrap();
        new.id
    }

    /// The account that somebody made who was shown the link, in two workspaces; one is theirs alone.
    async fn squatter(&self) -> (Person, String, String) {
        let owner = self.owner().await;
        let shown = self.invite(&owner, EMAIL, ProtoRole::Admin).await.secret;
        let made = self.accept_with(&shown, PASSWORD).await.unwrap();
        let person = self.person_of(made.user.unwrap().id.parse().unwrap());
        let own = person.request(CreateWorkspaceRequest { name: "Own".to_owned() });
        self.workspaces().create_workspace(own).await.unwrap();
        let (_, token) = self.token(&person, &EVERYTHING).await;
        (person, made.session_secret, token)
    }

    async fn is_out(&self, session: &str, token: &str) {
        assert!(!self.signs_in(PASSWORD).await, "{}", self.engine);
        assert!(self.service.sessions.exchange(session, None).await.is_err());
        assert!(self.service.tokens.exchange(token, &call()).await.is_err());
    }
}

#[tokio::test]
async fn a_proof_ends_what_somebody_else_holds() {
    for world in worlds().await {
        let owner = world.owner().await;
        let (person, session, token) = world.squatter().await;
        let theirs = world.invite(&person, "friend@example.com", ProtoRole::Admin).await.secret;
        assert!(world.session_of(&person).await.pending_invitations.is_empty());

        let mut tx = world.service.db.begin_write().await.unwrap();
        let account = store::users::find(&mut tx, person.id).await.unwrap().unwrap();
        let owned = proof::take_over(&mut tx, &world.service.ambient, &account).await.unwrap();
        tx.commit().await.unwrap();
        assert!(owned.email_verified && owned.id == person.id);
        world.is_out(&session, &token).await;
        assert_eq!(reason(world.accept_with(&theirs, PASSWORD).await), Reason::NotFound);

        let seen = world.session_of(&person).await;
        let names: Vec<_> = seen.memberships.iter().map(|one| one.workspace.clone().unwrap().name).collect();
        assert_eq!(names, ["Own"], "what nobody else owns stays: {}", world.engine);
        let [offered] = seen.pending_invitations.as_slice() else { panic!("{seen:?}") };
        assert_eq!((offered.workspace_name.as_str(), offered.role()), ("Home", ProtoRole::Admin));
        assert_eq!(offered.inviter.clone().unwrap().id, owner.id.to_string());
        let invitation_id = offered.id.clone();
        let accept = person.request(AcceptPendingInvitationRequest { invitation_id: invitation_id.clone() });
        world.invitations().accept_pending_invitation(accept).await.unwrap();
        assert_eq!(world.session_of(&person).await.memberships.len(), 2);
        let again = person.request(AcceptPendingInvitationRequest { invitation_id });
        assert_eq!(reason(world.invitations().accept_pending_invitation(again).await), Reason::NotFound);
    }
}

#[tokio::test]
async fn a_link_that_came_by_mail_proves_the_email() {
    for world in worlds().await {
        let (person, session, token) = world.squatter().await;
        world.mail(Role::Viewer, MAILED).await;
        assert_eq!(reason(world.accept_with(&format!("shown {MAILED}"), OTHER).await), Reason::Unauthorized);
        let accepted = world.accept_with(MAILED, OTHER).await.unwrap();
        let user = accepted.user.unwrap();
        assert!(user.email_verified && user.id == person.id.to_string() && user.name == "Name");
        world.is_out(&session, &token).await;
        assert!(world.signs_in(OTHER).await);
        let home = accepted.memberships.iter().find(|one| one.workspace.as_ref().unwrap().name == "Home");
        assert_eq!(home.unwrap().role(), ProtoRole::Viewer, "what was accepted now: {}", world.engine);
        assert!(accepted.pending_invitations.is_empty());

        // An account that is proved is nobody else's to take, whatever is mailed.
        world.mail(Role::Viewer, "another mail").await;
        assert_eq!(reason(world.accept_with("another mail", PASSWORD).await), Reason::Unauthorized);
        assert!(world.accept_with("another mail", OTHER).await.is_ok());
    }
}

#[tokio::test]
async fn a_mailed_link_makes_a_proven_account_and_keeps_what_its_holder_has() {
    for world in worlds().await {
        world.mail(Role::Viewer, MAILED).await;
        assert!(world.accept_with(MAILED, OTHER).await.unwrap().user.unwrap().email_verified);
    }
    for world in worlds().await {
        let (_, session, token) = world.squatter().await;
        world.mail(Role::Viewer, MAILED).await;
        assert!(world.accept_with(MAILED, PASSWORD).await.unwrap().user.unwrap().email_verified);
        assert!(world.service.sessions.exchange(&session, None).await.is_ok(), "{}", world.engine);
        assert!(world.service.tokens.exchange(&token, &call()).await.is_ok());
    }
}

#[tokio::test]
async fn what_waits_is_for_a_proven_email_alone() {
    for world in worlds().await {
        let proven = world.stranger(EMAIL).await;
        let other = world.stranger("other@example.com").await;
        let id = world.mail(Role::Viewer, MAILED).await.to_string();
        let decline =
            |person: &Person| person.request(DeclinePendingInvitationRequest { invitation_id: id.clone() });
        let accept =
            |person: &Person| person.request(AcceptPendingInvitationRequest { invitation_id: id.clone() });
        for person in [&proven, &other] {
            assert!(world.session_of(person).await.pending_invitations.is_empty());
            let accepted = world.invitations().accept_pending_invitation(accept(person)).await;
            assert_eq!(reason(accepted), Reason::NotFound, "{}", world.engine);
            let declined = world.invitations().decline_pending_invitation(decline(person)).await;
            assert_eq!(reason(declined), Reason::NotFound);
        }
        let mut tx = world.service.db.begin_write().await.unwrap();
        store::users::set_verified(&mut tx, proven.id).await.unwrap();
        store::users::set_verified(&mut tx, other.id).await.unwrap();
        tx.commit().await.unwrap();
        let declined = world.invitations().decline_pending_invitation(decline(&other)).await;
        assert_eq!(reason(declined), Reason::NotFound);
        assert_eq!(world.session_of(&proven).await.pending_invitations.len(), 1);
        world.invitations().decline_pending_invitation(decline(&proven)).await.unwrap();
        assert!(world.session_of(&proven).await.pending_invitations.is_empty());
        assert_eq!(reason(world.accept_with(MAILED, PASSWORD).await), Reason::NotFound);
    }
}

/// A sign-in that was under way when the account passed to its owner opens nothing.
#[tokio::test]
async fn a_password_that_ended_holds_no_account() {
    for world in worlds().await {
        let (person, ..) = world.squatter().await;
        let hash = store::users::find_password(&world.service.db, person.id).await.unwrap().unwrap();
        let mut tx = world.service.db.begin_write().await.unwrap();
        world.service.sessions.lock_account(&mut tx, person.id, &hash).await.unwrap();
        store::users::set_password(&mut tx, person.id, None).await.unwrap();
        let held = world.service.sessions.lock_account(&mut tx, person.id, &hash).await;
        assert!(matches!(held, Err(crate::Error::SignInRefused)), "{}", world.engine);
    }
}
