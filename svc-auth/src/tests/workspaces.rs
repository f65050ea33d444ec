use cairn_proto::auth::v1::{
    CreateWorkspaceRequest, DeleteWorkspaceRequest, GetWorkspaceRequest, ListWorkspacesRequest, Membership,
    Publishers as ProtoPublishers, Role as ProtoRole, UpdateWorkspaceRequest,
};
use prost_types::FieldMask;

use super::*;

impl World {
    async fn list_workspaces(&self, person: &Person) -> Vec<Membership> {
        let request = person.request(ListWorkspacesRequest::default());
        self.workspaces().list_workspaces(request).await.unwrap().into_inner().memberships
    }

    async fn get(&self, person: &Person, workspace_id: &str) -> Result<Membership, Status> {
        let request = person.request(GetWorkspaceRequest { workspace_id: workspace_id.to_owned() });
        Ok(self.workspaces().get_workspace(request).await?.into_inner().membership.unwrap())
    }

    async fn create(&self, person: &Person, name: &str) -> Result<Membership, Status> {
        let request = person.request(CreateWorkspaceRequest { name: name.to_owned() });
        Ok(self.workspaces().create_workspace(request).await?.into_inner().membership.unwrap())
    }

    /// Changes the fields of the mask to these values.
    async fn update(
        &self,
        person: &Person,
        name: &str,
        plan: &str,
        mask: &[&str],
    ) -> Result<Membership, Status> {
        self.change(
            person,
            UpdateWorkspaceRequest {
                name: name.to_owned(),
                plan: plan.to_owned(),
                publishers: ProtoPublishers::Editors.into(),
                ..masked(mask)
            },
        )
        .await
    }

    /// Keeps questions for so many days, or none of them.
    async fn keep(&self, person: &Person, days: Option<u32>) -> Result<Membership, Status> {
        let change = UpdateWorkspaceRequest { question_log_days: days, ..masked(&["question_log_days"]) };
        self.change(person, change).await
    }

    async fn change(&self, person: &Person, change: UpdateWorkspaceRequest) -> Result<Membership, Status> {
        let message = UpdateWorkspaceRequest { workspace_id: self.workspace(), ..change };
        let response = self.workspaces().update_workspace(person.request(message)).await?;
        Ok(response.into_inner().membership.unwrap())
    }

    async fn delete_workspace(&self, person: &Person) -> Result<(), Status> {
        let request = person.request(DeleteWorkspaceRequest { workspace_id: self.workspace() });
        self.workspaces().delete_workspace(request).await.map(|_| ())
    }
}

fn masked(mask: &[&str]) -> UpdateWorkspaceRequest {
    let paths = mask.iter().map(|path| (*path).to_owned()).collect();
    UpdateWorkspaceRequest { update_mask: Some(FieldMask { paths }), ..UpdateWorkspaceRequest::default() }
}

#[tokio::test]
async fn a_person_sees_their_own_workspaces_by_name() {
    for world in worlds().await {
        let owner = world.owner().await;
        let made = world.create(&owner, " Archive ").await.unwrap();
        assert_eq!(made.role(), ProtoRole::Owner);
        let workspace = made.workspace.clone().unwrap();
        assert_eq!((workspace.name.as_str(), workspace.plan.as_str()), ("Archive", "selfhosted"));

        let names: Vec<_> =
            world.list_workspaces(&owner).await.into_iter().map(|of| of.workspace.unwrap().name).collect();
        assert_eq!(names, ["Archive", "Home"], "{}", world.engine);
        let stranger = world.stranger("stranger@example.com").await;
        assert!(world.list_workspaces(&stranger).await.is_empty());
        assert_eq!(reason(world.get(&stranger, &workspace.id).await), Reason::NotFound);
        assert_eq!(world.get(&owner, &workspace.id).await.unwrap(), made);
        assert_eq!(broken(world.create(&owner, "").await), [("name".to_owned(), "required".to_owned())]);
    }
}

#[tokio::test]
async fn a_token_sees_the_one_workspace_that_it_opens() {
    for world in worlds().await {
        let owner = world.owner().await;
        let other = world.create(&owner, "Other").await.unwrap().workspace.unwrap().id;
        let issued = world.service.tokens.exchange(&world.first.token, &call()).await.unwrap();
        let token = Person { id: owner.id, identity: issued.identity };
        let membership = world.get(&token, &world.workspace()).await.unwrap();
        assert_eq!(membership.role(), ProtoRole::Unspecified);
        assert_eq!(membership.workspace.unwrap().name, "Home");
        assert_eq!(reason(world.get(&token, &other).await), Reason::NotFound);
        let list = world.workspaces().list_workspaces(token.request(ListWorkspacesRequest::default())).await;
        assert_eq!(reason(list), Reason::Forbidden, "{}", world.engine);

        world.delete_workspace(&owner).await.unwrap();
        assert_eq!(reason(world.get(&token, &world.workspace()).await), Reason::NotFound);
    }
}

#[tokio::test]
async fn roles_decide_what_may_be_changed() {
    for world in worlds().await {
        let owner = world.owner().await;
        let admin = world.member("admin@example.com", Role::Admin).await;
        let editor = world.member("editor@example.com", Role::Editor).await;
        let stranger = world.stranger("stranger@example.com").await;

        world.clock.advance(MINUTE);
        let renamed = world.update(&admin, "New", "", &["name"]).await.unwrap();
        assert_eq!(renamed.role(), ProtoRole::Admin);
        let workspace = renamed.workspace.unwrap();
        assert_eq!((workspace.name.as_str(), workspace.plan.as_str()), ("New", "selfhosted"));
        assert_eq!(workspace.updated_at, Some(world.clock.now().to_proto()));
        assert_eq!(reason(world.update(&admin, "", "free", &["plan"]).await), Reason::Forbidden);
        assert_eq!(reason(world.update(&editor, "Mine", "", &["name"]).await), Reason::Forbidden);
        assert_eq!(reason(world.update(&stranger, "Mine", "", &["name"]).await), Reason::NotFound);
        assert_eq!(reason(world.delete_workspace(&admin).await), Reason::Forbidden);
        assert_eq!(reason(world.delete_workspace(&stranger).await), Reason::NotFound);

        let both = world.update(&owner, "Both", "team", &["name", "plan"]).await.unwrap().workspace.unwrap();
        assert_eq!((both.name.as_str(), both.plan.as_str()), ("Both", "team"));
        world.delete_workspace(&owner).await.unwrap();
        assert_eq!(reason(world.delete_workspace(&owner).await), Reason::NotFound, "{}", world.engine);
        assert_eq!(reason(world.get(&owner, &world.workspace()).await), Reason::NotFound);
        assert!(world.list_workspaces(&owner).await.is_empty());
    }
}

#[tokio::test]
async fn a_bad_change_is_told_everything_at_once() {
    for world in worlds().await {
        let owner = world.owner().await;
        let found = broken(world.update(&owner, "", "gold", &["name", "plan", "colour"]).await);
        let expected = [("updateMask", "unknown_field"), ("name", "required"), ("plan", "invalid")];
        assert_eq!(found, expected.map(|(path, code)| (path.to_owned(), code.to_owned())));
        assert_eq!(broken(world.update(&owner, "x", "free", &[]).await)[0].1, "required");
        assert_eq!(world.get(&owner, &world.workspace()).await.unwrap().workspace.unwrap().name, "Home");
    }
}

#[tokio::test]
async fn who_may_publish_follows_the_setting_and_the_role() {
    for world in worlds().await {
        let owner = world.owner().await;
        let editor = world.member("editor@example.com", Role::Editor).await;
        let (_, of_owner) = world.token(&owner, &super::tokens::EVERYTHING).await;
        let (_, reads) = world.token(&owner, &[Permission::Read]).await;
        let (_, of_editor) = world.token(&editor, &super::tokens::EVERYTHING).await;
        let may = async |secret: &str| world.exchange(secret).await.unwrap().may_publish;
        assert!(may(&of_owner).await && !may(&reads).await && !may(&of_editor).await, "{}", world.engine);

        assert_eq!(reason(world.update(&editor, "", "", &["publishers"]).await), Reason::Forbidden);
        let changed = world.update(&owner, "", "", &["publishers"]).await.unwrap().workspace.unwrap();
        assert_eq!(changed.publishers(), ProtoPublishers::Editors);
        assert!(may(&of_owner).await && !may(&reads).await && may(&of_editor).await, "{}", world.engine);
        let lower = "UPDATE members SET role = 'contributor' WHERE user_id = $1";
        let id = editor.id.to_string();
        cairn_chassis::on_db!(world.service.db.writer(), |c| sqlx::query(lower)
            .bind(&id)
            .execute(c)
            .await
            .map(|_| ()))
        .unwrap();
        assert!(!may(&of_editor).await, "{}: the role of now counts", world.engine);
    }
}

#[tokio::test]
async fn questions_are_kept_only_when_an_owner_says_so() {
    for world in worlds().await {
        let owner = world.owner().await;
        let admin = world.member("keeper@example.com", Role::Admin).await;
        let (_, token) = world.token(&admin, &[Permission::Read]).await;
        let kept = async || world.exchange(&token).await.unwrap().question_log_days;
        assert_eq!(kept().await, None, "{}", world.engine);
        assert_eq!(reason(world.keep(&admin, Some(7)).await), Reason::Forbidden);
        assert_eq!(kept().await, None, "{}", world.engine);

        let changed = world.keep(&owner, Some(30)).await.unwrap().workspace.unwrap();
        assert_eq!((changed.question_log_days, changed.publishers()), (Some(30), ProtoPublishers::Admins));
        let identity = world.exchange(&token).await.unwrap();
        assert_eq!((identity.question_log_days, identity.on_behalf_of), (Some(30), Some(admin.id)));
        assert_eq!(identity.person(), Some(admin.id));
        let renamed = world.update(&owner, "Kept", "", &["name"]).await.unwrap().workspace.unwrap();
        assert_eq!(renamed.question_log_days, Some(30), "{}: another change leaves it", world.engine);

        for days in [0, 1, 31, 365, u32::MAX] {
            let found = broken(world.keep(&owner, Some(days)).await);
            assert_eq!(found, [("questionLogDays".to_owned(), "invalid".to_owned())], "{days}");
        }
        assert_eq!(world.keep(&owner, None).await.unwrap().workspace.unwrap().question_log_days, None);
        assert_eq!(kept().await, None, "{}", world.engine);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_owns_so_many_workspaces_and_deleted_ones_do_not_count() {
    for world in worlds().await {
        let person = world.stranger("maker@example.com").await;
        let other = world.stranger("other@example.com").await;
        let mut last = String::new();
        for number in 0..20 {
            last = world.create(&person, &number.to_string()).await.unwrap().workspace.unwrap().id;
        }
        let full = problem(world.create(&person, "one more").await);
        assert_eq!(full.reason, Reason::LimitExceeded);
        assert!(full.message.contains("20 of at most 20 workspaces"), "{full}");
        world.create(&other, "theirs").await.unwrap();
        let message = person.request(DeleteWorkspaceRequest { workspace_id: last });
        world.workspaces().delete_workspace(message).await.unwrap();
        let (one, two) = tokio::join!(world.create(&person, "a"), world.create(&person, "b"));
        assert!(one.is_ok() != two.is_ok(), "{}: {one:?} {two:?}", world.engine);
    }
}

#[tokio::test]
async fn an_operator_may_keep_plans_to_themselves() {
    for storage in engines().await {
        let settings = Config { plan_changes: PlanChanges::Operator, ..config(&storage) };
        let entropy: Arc<dyn Entropy> = Arc::new(OsEntropy);
        let service = Service::open(settings, clock(), entropy).await.unwrap();
        let first = service.bootstrap(wanted(), |_| Ok(())).await.unwrap().unwrap();
        let (owner, _) = store::users::find_account(&service.db, &first.email).await.unwrap().unwrap();
        let change = |plan: Option<&str>, name: Option<&str>| crate::model::workspaces::Changes {
            plan: plan.map(ToOwned::to_owned),
            name: name.map(ToOwned::to_owned),
            ..Default::default()
        };
        let refused = service
            .workspaces
            .update(owner.id, first.workspace_id, change(Some("pro"), None))
            .await
            .unwrap_err();
        assert!(matches!(refused, crate::Error::PlanIsOperators), "{refused}");
        service.workspaces.update(owner.id, first.workspace_id, change(None, Some("New"))).await.unwrap();

        let set = crate::set_plan(&storage.config, first.workspace_id, "pro", clock().now())
            .await
            .unwrap()
            .unwrap();
        assert_eq!((set.name.as_str(), set.plan.as_str()), ("New", "pro"), "{}", storage.engine);
        let listed = crate::workspace_plans(&storage.config).await.unwrap().unwrap();
        assert_eq!(listed, [set]);
        assert!(crate::set_plan(&storage.config, first.workspace_id, "gold", clock().now()).await.is_err());
        let nowhere = "0199c0de-0000-7000-8000-000000000009".parse().unwrap();
        assert!(crate::set_plan(&storage.config, nowhere, "pro", clock().now()).await.unwrap().is_none());
    }
}
