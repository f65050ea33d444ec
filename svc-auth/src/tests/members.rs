use cairn_proto::auth::v1::member_service_client::MemberServiceClient;
use cairn_proto::auth::v1::{
    AddMemberRequest, Invited, ListMembersRequest, Member, RemoveMemberRequest, Role as ProtoRole,
    UpdateMemberRequest,
};

use super::tokens::EVERYTHING;
use super::*;

impl World {
    pub(super) fn members(&self) -> MemberServiceClient<ServiceChannel> {
        MemberServiceClient::new(self.channel.clone())
    }

    async fn list_members(&self, person: &Person) -> Result<Vec<Member>, Status> {
        let message = ListMembersRequest { workspace_id: self.workspace() };
        Ok(self.members().list_members(person.request(message)).await?.into_inner().members)
    }

    async fn roles(&self, person: &Person) -> Vec<(String, ProtoRole)> {
        let members = self.list_members(person).await.unwrap();
        members.into_iter().map(|member| (member.user.clone().unwrap().email, member.role())).collect()
    }

    pub(super) async fn add(&self, person: &Person, email: &str, role: ProtoRole) -> Result<Invited, Status> {
        let (workspace_id, email) = (self.workspace(), email.to_owned());
        let message = AddMemberRequest { workspace_id, email, role: role.into() };
        Ok(self.members().add_member(person.request(message)).await?.into_inner().invited.unwrap())
    }

    pub(super) async fn invite(&self, person: &Person, email: &str, role: ProtoRole) -> Invited {
        self.add(person, email, role).await.unwrap()
    }

    pub(super) async fn change_role(
        &self,
        person: &Person,
        member: &Person,
        role: ProtoRole,
    ) -> Result<Member, Status> {
        let (workspace_id, user_id) = (self.workspace(), member.id.to_string());
        let message = UpdateMemberRequest { workspace_id, user_id, role: role.into() };
        Ok(self.members().update_member(person.request(message)).await?.into_inner().member.unwrap())
    }

    pub(super) async fn remove(&self, person: &Person, member: &Person) -> Result<(), Status> {
        let message = RemoveMemberRequest { workspace_id: self.workspace(), user_id: member.id.to_string() };
        self.members().remove_member(person.request(message)).await.map(|_| ())
    }
}

#[tokio::test]
async fn known_and_unknown_emails_are_invited_alike() {
    for world in worlds().await {
        let owner = world.owner().await;
        let known = world.stranger("known@example.com").await;
        world.clock.advance(MINUTE);
        let member = world.member("member@example.com", Role::Viewer).await;
        for email in [" Known@Example.com", "unknown@example.com", "member@example.com"] {
            let invited = world.invite(&owner, email, ProtoRole::Editor).await;
            assert_eq!((invited.secret.len(), invited.mailed), (64, false), "{}", world.engine);
        }
        assert_eq!(reason(world.list_members(&known).await), Reason::NotFound);
        let expected = [
            ("owner@localhost".to_owned(), ProtoRole::Owner),
            ("member@example.com".into(), ProtoRole::Viewer),
        ];
        assert_eq!(world.roles(&member).await, expected, "nobody is a member before they accept");
    }
}

#[tokio::test]
async fn who_may_manage_whom() {
    for world in worlds().await {
        let owner = world.owner().await;
        let admin = world.member("admin@example.com", Role::Admin).await;
        let editor = world.member("editor@example.com", Role::Editor).await;
        let viewer = world.member("viewer@example.com", Role::Viewer).await;
        let stranger = world.stranger("stranger@example.com").await;

        for low in [&editor, &viewer] {
            let added = world.add(low, "x@example.com", ProtoRole::Viewer).await;
            assert_eq!(reason(added), Reason::Forbidden);
            assert_eq!(reason(world.change_role(low, low, ProtoRole::Admin).await), Reason::Forbidden);
            assert_eq!(reason(world.remove(low, &admin).await), Reason::Forbidden);
        }
        assert_eq!(reason(world.add(&stranger, "x@example.com", ProtoRole::Viewer).await), Reason::NotFound);
        assert_eq!(reason(world.remove(&stranger, &viewer).await), Reason::NotFound);
        assert_eq!(reason(world.remove(&owner, &stranger).await), Reason::NotFound);

        for attempt in [
            world.change_role(&admin, &admin, ProtoRole::Owner).await.map(drop),
            world.change_role(&admin, &owner, ProtoRole::Viewer).await.map(drop),
            world.add(&admin, "x@example.com", ProtoRole::Owner).await.map(drop),
            world.remove(&admin, &owner).await,
        ] {
            let problem = problem(attempt);
            assert_eq!(problem.reason, Reason::Forbidden);
            assert!(problem.message.contains("'owner'"), "{problem}");
        }
        let raised = world.change_role(&admin, &viewer, ProtoRole::Admin).await.unwrap();
        assert_eq!(raised.role(), ProtoRole::Admin);
        world.change_role(&owner, &viewer, ProtoRole::Owner).await.unwrap();
        world.remove(&admin, &editor).await.unwrap();
        assert_eq!(reason(world.list_members(&editor).await), Reason::NotFound, "{}", world.engine);
    }
}

#[tokio::test]
async fn a_workspace_keeps_an_owner() {
    for world in worlds().await {
        let owner = world.owner().await;
        let other = world.member("other@example.com", Role::Admin).await;
        for attempt in [
            world.remove(&owner, &owner).await,
            world.change_role(&owner, &owner, ProtoRole::Admin).await.map(drop),
        ] {
            let problem = problem(attempt);
            assert_eq!(problem.reason, Reason::Forbidden);
            assert!(problem.message.contains("last owner"), "{problem}");
        }
        world.change_role(&owner, &owner, ProtoRole::Owner).await.unwrap();
        world.change_role(&owner, &other, ProtoRole::Owner).await.unwrap();
        world.remove(&owner, &owner).await.unwrap();
        assert_eq!(world.roles(&other).await, [("other@example.com".to_owned(), ProtoRole::Owner)]);
        assert_eq!(reason(world.remove(&other, &other).await), Reason::Forbidden, "{}", world.engine);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_owners_who_go_at_once_leave_one() {
    for world in worlds().await {
        let owner = world.owner().await;
        for round in 0..8 {
            let other = world.member(&format!("other{round}@example.com"), Role::Owner).await;
            let (one, two) = match round % 3 {
                0 => tokio::join!(
                    world.change_role(&owner, &owner, ProtoRole::Editor),
                    world.change_role(&other, &other, ProtoRole::Editor)
                ),
                1 => tokio::join!(
                    world.change_role(&owner, &other, ProtoRole::Editor),
                    world.change_role(&other, &owner, ProtoRole::Editor)
                ),
                _ => {
                    let leave = async |person| world.remove(person, person).await.map(|()| Member::default());
                    tokio::join!(leave(&owner), leave(&other))
                }
            };
            let went = [&one, &two].into_iter().filter(|outcome| outcome.is_ok()).count();
            assert_eq!(went, 1, "{} round {round}: {one:?} {two:?}", world.engine);
            world.reset_owner(&owner, &other).await;
        }
    }
}

impl World {
    /// The owner is owner again, and the other is gone.
    async fn reset_owner(&self, owner: &Person, other: &Person) {
        let workspace = self.first.workspace_id;
        let mut tx = self.service.db.begin_write().await.unwrap();
        store::members::delete(&mut tx, workspace, other.id).await.unwrap();
        store::members::insert(&mut tx, workspace, owner.id, Role::Owner, self.clock.now()).await.unwrap();
        store::members::set_role(&mut tx, workspace, owner.id, Role::Owner).await.unwrap();
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn everybody_may_leave_and_takes_the_tokens_along() {
    for world in worlds().await {
        let owner = world.owner().await;
        let viewer = world.member("viewer@example.com", Role::Viewer).await;
        let (token, secret) = world.token(&viewer, &[Permission::Read]).await;
        world.remove(&viewer, &viewer).await.unwrap();
        assert_eq!(reason(world.exchange(&secret).await), Reason::Unauthorized);
        assert_eq!(reason(world.list_members(&viewer).await), Reason::NotFound);

        world.add(&owner, "viewer@example.com", ProtoRole::Editor).await.unwrap();
        assert_eq!(reason(world.exchange(&secret).await), Reason::Unauthorized, "nothing comes back to life");
        let listed = world.list(&owner).await.unwrap();
        assert!(listed.iter().all(|known| known.id != token.id), "{}", world.engine);
    }
}

#[tokio::test]
async fn a_new_role_holds_at_the_next_exchange() {
    for world in worlds().await {
        let owner = world.owner().await;
        let editor = world.member("editor@example.com", Role::Editor).await;
        let (_, secret) = world.token(&editor, &EVERYTHING).await;
        for (role, wanted) in [
            (Role::Contributor, ProtoRole::Contributor),
            (Role::Viewer, ProtoRole::Viewer),
            (Role::Admin, ProtoRole::Admin),
        ] {
            world.change_role(&owner, &editor, wanted).await.unwrap();
            let identity = world.exchange(&secret).await.unwrap();
            assert_eq!(identity.permissions, role.permissions(), "{} {role:?}", world.engine);
        }
    }
}

#[tokio::test]
async fn what_is_no_email_or_role_is_told() {
    for world in worlds().await {
        let owner = world.owner().await;
        let found = broken(world.add(&owner, "nobody", ProtoRole::Unspecified).await);
        assert_eq!(found, [("email".into(), "invalid".into()), ("role".into(), "invalid".into())]);
        let found = broken(world.change_role(&owner, &owner, ProtoRole::Unspecified).await);
        assert_eq!(found, [("role".to_owned(), "invalid".to_owned())], "{}", world.engine);
    }
}
