use cairn_proto::auth::v1::{IssueTokenViewRequest, IssueTokenViewResponse, TokenScope, UpdateTokenRequest};

use super::*;

const FOLDER: &str = "0199c0de-0000-7000-8000-0000000000f1";

impl World {
    async fn view(
        &self,
        person: &Person,
        message: IssueTokenViewRequest,
    ) -> Result<IssueTokenViewResponse, Status> {
        let message = IssueTokenViewRequest { workspace_id: self.workspace(), ..message };
        Ok(self.tokens().issue_token_view(person.request(message)).await?.into_inner())
    }
}

fn wished(permissions: &[Permission], folders: Option<&[&str]>) -> IssueTokenViewRequest {
    IssueTokenViewRequest {
        permissions: permissions.iter().map(|one| (*one).into()).collect(),
        scope: folders
            .map(|folders| TokenScope { folder_ids: folders.iter().map(ToString::to_string).collect() }),
        ..IssueTokenViewRequest::default()
    }
}

#[tokio::test]
async fn a_view_is_the_person_cut_to_what_the_token_reads() {
    for world in worlds().await {
        let owner = world.owner().await;
        let asked = wished(&[Permission::Read, Permission::Write], Some(&[FOLDER]));
        let view = world.view(&owner, asked).await.unwrap();
        assert_eq!(
            view.permissions,
            [i32::from(Permission::Read), i32::from(Permission::Write)],
            "{}",
            world.engine
        );
        assert_eq!(view.scope.unwrap().folder_ids, [FOLDER]);
        let identity = world.read(&view.identity).await.unwrap();
        assert_eq!((identity.principal.kind, identity.user_id().unwrap()), (PrincipalKind::User, owner.id));
        assert_eq!(identity.scope, Scope::Folders(vec![FOLDER.parse().unwrap()].into()));
        assert_eq!(identity.permissions.numbers(), [i32::from(Permission::Read)], "it changes nothing");
        assert_eq!((identity.role, identity.may_publish), (None, false));
        assert_eq!(identity.workspace, Some(world.first.workspace_id));

        let writes = world.view(&owner, wished(&[Permission::Write], None)).await.unwrap();
        let identity = world.read(&writes.identity).await.unwrap();
        assert_eq!((identity.permissions, identity.scope), (PermissionSet::default(), Scope::All));
        let viewer = world.member("v@example.com", Role::Viewer).await;
        let seen = world.view(&viewer, wished(&[Permission::Read, Permission::Delete], None)).await.unwrap();
        assert_eq!(seen.permissions, [i32::from(Permission::Read)], "never more than the person may");
        let wrong = world.view(&owner, wished(&[Permission::Read], Some(&["x"]))).await;
        assert_eq!(broken(wrong), [("scope.folderIds[0]".to_owned(), "invalid".to_owned())]);
        assert!(
            world.view(&owner, wished(&[Permission::Read], Some(&[]))).await.is_err(),
            "never everything"
        );
        let stranger = world.stranger("s@example.com").await;
        assert_eq!(reason(world.view(&stranger, wished(&[], None)).await), Reason::NotFound);
    }
}

#[tokio::test]
async fn people_look_through_tokens_that_they_may_manage() {
    for world in worlds().await {
        let owner = world.owner().await;
        let editor = world.member("e@example.com", Role::Editor).await;
        let other = world.member("o@example.com", Role::Editor).await;
        let (token, _) = world.token(&editor, &[Permission::Read, Permission::Write]).await;
        let of = |id: &str| IssueTokenViewRequest { token_id: id.to_owned(), ..Default::default() };
        for person in [&owner, &editor] {
            let view = world.view(person, of(&token.id)).await.unwrap();
            assert_eq!(view.permissions.len(), 2, "{}", world.engine);
        }
        for id in [token.id.as_str(), "nonsense"] {
            assert_eq!(reason(world.view(&other, of(id)).await), Reason::NotFound, "{id}");
        }
        let renamed = UpdateTokenRequest {
            workspace_id: world.workspace(),
            token_id: token.id.clone(),
            active: None,
            name: Some(" other ".to_owned()),
        };
        let changed = world.tokens().update_token(editor.request(renamed.clone())).await.unwrap();
        let changed = changed.into_inner().token.unwrap();
        assert_eq!((changed.name.as_str(), changed.active), ("other", true));
        assert_eq!(
            reason(world.tokens().update_token(other.request(renamed.clone())).await),
            Reason::NotFound
        );
        let wrong = UpdateTokenRequest { name: Some("\0".to_owned()), ..renamed };
        assert!(!broken(world.tokens().update_token(editor.request(wrong)).await).is_empty());
    }
}
