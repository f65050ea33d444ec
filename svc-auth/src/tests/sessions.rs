use cairn_proto::auth::v1::{
    ChangePasswordRequest, CreateSessionRequest, CreateSessionResponse, CreateWorkspaceRequest,
    DeleteSessionRequest, DeleteSessionsRequest, EndSessionRequest, ExchangeSessionRequest,
    GetSessionRequest, ListSessionsRequest, Role as ProtoRole,
};

use super::*;

const THIRTY_DAYS: Duration = Duration::from_secs(30 * 24 * 60 * 60);

impl World {
    async fn sign_in(&self, email: &str, password: &str) -> Result<CreateSessionResponse, Status> {
        let (email, password) = (email.to_owned(), password.to_owned());
        let request = Request::new(CreateSessionRequest {
            email,
            password,
            source_address: None,
            agent: String::new(),
        });
        Ok(self.sessions().create_session(request).await?.into_inner())
    }

    async fn exchange_session(&self, secret: &str) -> Result<String, Status> {
        self.exchange_session_in(secret, None).await
    }

    async fn exchange_session_in(&self, secret: &str, workspace: Option<&str>) -> Result<String, Status> {
        let workspace_id = workspace.map(ToOwned::to_owned);
        let request =
            Request::new(ExchangeSessionRequest { session_secret: secret.to_owned(), workspace_id });
        Ok(self.sessions().exchange_session(request).await?.into_inner().identity)
    }
}

#[tokio::test]
async fn a_session_lives_from_sign_in_to_sign_out() {
    for world in worlds().await {
        let session = world.sign_in(" OWNER@localhost", PASSWORD).await.unwrap();
        assert_eq!(session.user.as_ref().unwrap().email, "owner@localhost");
        assert_eq!(session.memberships.len(), 1);
        assert_eq!(session.memberships[0].role(), ProtoRole::Owner);
        assert_eq!(session.expires_at, Some(world.clock.now().plus(THIRTY_DAYS).to_proto()));

        let signed = world.exchange_session(&session.session_secret).await.unwrap();
        let identity = world.read(&signed).await.unwrap();
        assert_eq!(identity.principal.kind, PrincipalKind::User);
        assert_eq!(identity.user_id().unwrap(), world.owner().await.id);
        assert_eq!((identity.workspace, identity.permissions), (None, PermissionSet::default()));
        assert_eq!(identity.expires_at, world.clock.now().plus(5 * MINUTE));

        let request = Call::within(MINUTE).with_identity(&signed).request(GetSessionRequest {});
        let profile = world.sessions().get_session(request).await.unwrap().into_inner();
        assert_eq!(profile.user, session.user);
        assert_eq!(profile.memberships, session.memberships);

        for _ in 0..2 {
            let session_secret = session.session_secret.clone();
            let request = Request::new(DeleteSessionRequest { session_secret });
            world.sessions().delete_session(request).await.unwrap();
        }
        let ended = world.exchange_session(&session.session_secret).await;
        assert_eq!(reason(ended), Reason::Unauthorized, "{}", world.engine);
    }
}

#[tokio::test]
async fn a_session_in_a_workspace_carries_the_role_there() {
    for world in worlds().await {
        let session = world.sign_in("owner@localhost", PASSWORD).await.unwrap();
        let secret = &session.session_secret;
        let owner = world.owner().await;
        let first = world.workspace();
        let signed = world.exchange_session_in(secret, Some(&first)).await.unwrap();
        let identity = world.read(&signed).await.unwrap();
        assert_eq!(identity.workspace, Some(world.first.workspace_id));
        assert_eq!(identity.permissions, PermissionSet::all());
        assert_eq!((identity.principal.kind, identity.scope), (PrincipalKind::User, Scope::All));
        assert_eq!(identity.plan.as_deref(), Some("selfhosted"));

        let stranger = world.stranger("somebody@example.com").await;
        let made = async || {
            let message = stranger.request(CreateWorkspaceRequest { name: "Theirs".to_owned() });
            let answer = world.workspaces().create_workspace(message).await.unwrap().into_inner();
            answer.membership.unwrap().workspace.unwrap().id
        };
        let theirs = made().await;
        for foreign in [theirs.as_str(), "0199c0de-0000-7000-8000-000000000009", "x", ""] {
            assert_eq!(reason(world.exchange_session_in(secret, Some(foreign)).await), Reason::NotFound);
        }
        for role in [Role::Viewer, Role::Contributor, Role::Editor] {
            let another = made().await;
            world.join(owner.id, another.parse().unwrap(), role).await;
            let signed = world.exchange_session_in(secret, Some(&another)).await.unwrap();
            let identity = world.read(&signed).await.unwrap();
            assert_eq!(identity.permissions, role.permissions(), "{} {role:?}", world.engine);
        }
        let refused = world.exchange_session_in("no such secret", Some(&first)).await;
        assert_eq!(reason(refused), Reason::Unauthorized, "the session comes first");
    }
}

#[tokio::test]
async fn a_wrong_email_and_a_wrong_password_are_told_alike() {
    for world in worlds().await {
        world.stranger("elsewhere@example.com").await;
        let attempts = [
            ("owner@localhost", "wrong password"),
            ("owner@localhost", ""),
            ("nobody@localhost", PASSWORD),
            ("not an email", PASSWORD),
            ("nul\0@localhost", PASSWORD),
        ];
        let mut texts = Vec::new();
        for (email, password) in attempts {
            let problem = problem(world.sign_in(email, password).await);
            assert_eq!(problem.reason, Reason::Unauthorized, "{email}");
            texts.push(problem.message);
        }
        texts.dedup();
        assert_eq!(texts.len(), 1, "{texts:?}");
    }
}

#[tokio::test]
async fn a_session_ends_after_thirty_days_and_is_forgotten() {
    for world in worlds().await {
        let old = world.sign_in("owner@localhost", PASSWORD).await.unwrap();
        world.clock.advance(THIRTY_DAYS - MINUTE);
        let fresh = world.sign_in("owner@localhost", PASSWORD).await.unwrap();
        let identity = world.read(&world.exchange_session(&old.session_secret).await.unwrap()).await.unwrap();
        assert_eq!(identity.expires_at, world.clock.now().plus(MINUTE), "not beyond the session's own end");

        world.clock.advance(MINUTE);
        assert_eq!(reason(world.exchange_session(&old.session_secret).await), Reason::Unauthorized);
        assert_eq!(world.service.sessions.purge().await.unwrap(), 1, "{}", world.engine);
        world.exchange_session(&fresh.session_secret).await.unwrap();
    }
}

#[tokio::test]
async fn no_session_opens_for_a_guess() {
    for world in worlds().await {
        for guess in ["", "x", &"0".repeat(64), "nul\0"] {
            assert_eq!(reason(world.exchange_session(guess).await), Reason::Unauthorized, "{guess}");
        }
        let nobody = world.sessions().get_session(Request::new(GetSessionRequest {})).await;
        assert_eq!(reason(nobody), Reason::Unauthorized);
        let gone = world.person_of("0199c0de-0000-7000-8000-000000000009".parse().unwrap());
        let of_gone = world.sessions().get_session(gone.request(GetSessionRequest {})).await;
        assert_eq!(reason(of_gone), Reason::Unauthorized);
    }
}

impl World {
    async fn change_password(
        &self,
        person: &Person,
        current: &str,
        new: &str,
        kept: Option<&str>,
    ) -> Result<(), Status> {
        let message = ChangePasswordRequest {
            current_password: current.to_owned(),
            new_password: new.to_owned(),
            session_secret: kept.map(ToOwned::to_owned),
            source_address: None,
        };
        self.sessions().change_password(person.request(message)).await.map(drop)
    }
}

#[tokio::test]
async fn a_new_password_ends_the_other_sessions() {
    const NEW: &str = "another horse battery";
    for world in worlds().await {
        let owner = world.owner().await;
        let mut open = Vec::new();
        for _ in 0..3 {
            open.push(world.sign_in("owner@localhost", PASSWORD).await.unwrap().session_secret);
        }
        let found = broken(world.change_password(&owner, "wrong one", "short", None).await);
        assert_eq!(
            found,
            [("newPassword".into(), "too_short".into()), ("currentPassword".into(), "wrong".into())]
        );
        for secret in &open {
            world.exchange_session(secret).await.unwrap();
        }

        world.change_password(&owner, PASSWORD, NEW, Some(&open[1])).await.unwrap();
        world.exchange_session(&open[1]).await.unwrap();
        for ended in [&open[0], &open[2]] {
            assert_eq!(reason(world.exchange_session(ended).await), Reason::Unauthorized, "{}", world.engine);
        }
        assert_eq!(reason(world.sign_in("owner@localhost", PASSWORD).await), Reason::Unauthorized);
        world.sign_in("owner@localhost", NEW).await.unwrap();
        world.change_password(&owner, NEW, PASSWORD, None).await.unwrap();
        assert_eq!(reason(world.exchange_session(&open[1]).await), Reason::Unauthorized);
    }
}

#[tokio::test]
async fn signing_out_everywhere_ends_the_sessions_of_one_person() {
    for world in worlds().await {
        let owner = world.owner().await;
        let invited = world.invite(&owner, "b@example.com", ProtoRole::Viewer).await.secret;
        let other =
            world.service.invitations.accept(&Device::default(), &invited, "B", PASSWORD).await.unwrap();
        let one = world.sign_in("owner@localhost", PASSWORD).await.unwrap().session_secret;
        let two = world.sign_in("owner@localhost", PASSWORD).await.unwrap().session_secret;
        world.sessions().delete_sessions(owner.request(DeleteSessionsRequest {})).await.unwrap();
        for ended in [&one, &two] {
            assert_eq!(reason(world.exchange_session(ended).await), Reason::Unauthorized, "{}", world.engine);
        }
        world.exchange_session(&other.secret).await.unwrap();
        let nobody = world.sessions().delete_sessions(Request::new(DeleteSessionsRequest {})).await;
        assert_eq!(reason(nobody), Reason::Unauthorized);
    }
}

#[tokio::test]
async fn a_person_sees_their_sessions_and_ends_one() {
    for world in worlds().await {
        let owner = world.owner().await;
        let open = async |agent: &str, host: u8| {
            let request = Request::new(CreateSessionRequest {
                email: "owner@localhost".to_owned(),
                password: PASSWORD.to_owned(),
                source_address: Some(format!("203.0.113.{host}")),
                agent: agent.to_owned(),
            });
            world.sessions().create_session(request).await.unwrap().into_inner().session_secret
        };
        let (first, second) = (open("Firefox", 1).await, open("Chrome", 2).await);
        let list = async |person: &Person, secret: Option<&String>| {
            let message = ListSessionsRequest { session_secret: secret.cloned() };
            world.sessions().list_sessions(person.request(message)).await.unwrap().into_inner().sessions
        };
        let before = list(&owner, Some(&first)).await;
        let of = |agent: &str| before.iter().find(|one| one.agent == agent).unwrap().clone();
        assert_eq!((of("Firefox").current, of("Chrome").current), (true, false), "{}", world.engine);
        assert_eq!((of("Chrome").place.as_str(), of("Chrome").last_used_at), ("203.0.113.0/24", None));

        world.clock.advance(MINUTE);
        world.exchange_session(&second).await.unwrap();
        let used = Some(world.clock.now().to_proto());
        for is_written in [false, true] {
            if is_written {
                world.service.sessions.flush_last_use().await.unwrap();
            }
            let now = list(&owner, None).await;
            let chrome = now.iter().find(|one| one.agent == "Chrome").unwrap();
            assert_eq!((chrome.last_used_at, chrome.current), (used, false), "{}", world.engine);
        }

        let stranger = world.stranger("somebody@example.com").await;
        assert!(list(&stranger, Some(&first)).await.iter().all(|one| !one.current), "not of theirs");
        let end = async |person: &Person, id: &str| {
            let message = EndSessionRequest { session_id: id.to_owned() };
            world.sessions().end_session(person.request(message)).await
        };
        let chrome = of("Chrome").id;
        assert_eq!(reason(end(&stranger, &chrome).await), Reason::NotFound);
        assert_eq!(reason(end(&owner, "nonsense").await), Reason::NotFound);
        end(&owner, &chrome).await.unwrap();
        assert_eq!(reason(world.exchange_session(&second).await), Reason::Unauthorized);
        assert_eq!(reason(end(&owner, &chrome).await), Reason::NotFound);
        world.exchange_session(&first).await.unwrap();
        world.clock.advance(THIRTY_DAYS);
        let owner = world.owner().await;
        assert!(list(&owner, None).await.is_empty(), "those that ended are not told");
    }
}

/// Each page of the console asks for all of this before it asks for anything of its own.
#[tokio::test]
async fn what_every_page_asks_is_one_statement_each() {
    for world in worlds().await {
        let session = world.sign_in("owner@localhost", PASSWORD).await.unwrap();
        let owner = world.owner().await;
        for _ in 0..3 {
            world.token(&owner, &[Permission::Read]).await;
        }
        let (db, service) = (&world.service.db, &world.service);
        let before = db.statements_read();
        let workspace = world.first.workspace_id;
        service.sessions.exchange(&session.session_secret, Some(workspace)).await.unwrap();
        assert_eq!(service.sessions.get(owner.id).await.unwrap().memberships.len(), 1);
        assert_eq!(service.tokens.list(owner.id, workspace).await.unwrap().len(), 4);
        let (Some(before), Some(after)) = (before, db.statements_read()) else { continue };
        assert_eq!(after - before, 3, "{}", world.engine);
    }
}
