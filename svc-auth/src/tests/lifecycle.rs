use std::sync::Mutex;

use cairn_chassis::identity::Verifier;
use cairn_chassis::lifecycle;
use cairn_chassis::on_db;
use cairn_chassis::testing::{server as double, tables_left};
use cairn_proto::auth::v1::{
    DeleteWorkspaceRequest, ListWorkspacesRequest, Membership, RestoreWorkspaceRequest,
};
use cairn_proto::lifecycle::v1::lifecycle_service_server::{LifecycleService, LifecycleServiceServer};
use cairn_proto::lifecycle::v1::{
    PurgeWorkspaceRequest, PurgeWorkspaceResponse, SetWorkspaceStateRequest, SetWorkspaceStateResponse,
    WorkspaceState,
};
use sqlx::AssertSqlSafe;
use tonic::Response;
use tonic::service::Routes;

use super::tokens::EVERYTHING;
use super::*;
use crate::DEFAULT_GRACE;
use crate::lifecycle::SERVICES;
use crate::store::lifecycle::{REMOVALS, Removal};

/// What services were told, in order, and how they are now.
#[derive(Debug, Default)]
struct Told {
    log: Vec<(&'static str, &'static str, u64)>,
    down: Option<&'static str>,
    /// How many calls a removal takes.
    parts: usize,
}

type Shared = Arc<Mutex<Told>>;

#[derive(Debug)]
struct Fake {
    name: &'static str,
    told: Shared,
    verifier: Verifier,
}

impl Fake {
    async fn note<T>(&self, request: &Request<T>, what: &'static str, revision: u64) -> Result<(), Status> {
        let caller = self.verifier.authenticate(request.metadata()).await?;
        caller.require_service()?;
        assert_eq!(caller.principal.id, "auth");
        let mut told = self.told.lock().unwrap();
        if told.down == Some(self.name) {
            return Err(Status::unavailable("down"));
        }
        told.log.push((self.name, what, revision));
        Ok(())
    }
}

#[tonic::async_trait]
impl LifecycleService for Fake {
    async fn set_workspace_state(
        &self,
        request: Request<SetWorkspaceStateRequest>,
    ) -> Result<Response<SetWorkspaceStateResponse>, Status> {
        let is_suspended = request.get_ref().state() == WorkspaceState::Suspended;
        let what = if is_suspended { "suspend" } else { "restore" };
        self.note(&request, what, request.get_ref().revision).await?;
        Ok(Response::new(SetWorkspaceStateResponse {}))
    }

    async fn purge_workspace(
        &self,
        request: Request<PurgeWorkspaceRequest>,
    ) -> Result<Response<PurgeWorkspaceResponse>, Status> {
        self.note(&request, "purge", request.get_ref().revision).await?;
        let told = self.told.lock().unwrap();
        let asked = told.log.iter().filter(|(name, what, _)| *name == self.name && *what == "purge").count();
        Ok(Response::new(PurgeWorkspaceResponse { is_done: asked >= told.parts }))
    }
}

impl World {
    async fn listened_to(&self) -> Shared {
        let told = Shared::default();
        let mut services = Vec::new();
        for name in SERVICES {
            let fake = Fake { name, told: Arc::clone(&told), verifier: self.service.ambient().verifier };
            let routes = Routes::new(LifecycleServiceServer::new(fake));
            let composed = double::compose(routes, &[lifecycle::SERVICE_NAME]).await.unwrap();
            services.push((name, ServiceChannel::local(composed.routes)));
        }
        self.service.connect_services(services);
        told
    }

    async fn close(&self, person: &Person) {
        let request = person.request(DeleteWorkspaceRequest { workspace_id: self.workspace() });
        self.workspaces().delete_workspace(request).await.unwrap();
    }

    async fn reopen(&self, person: &Person) -> Result<Membership, Status> {
        let request = person.request(RestoreWorkspaceRequest { workspace_id: self.workspace() });
        Ok(self.workspaces().restore_workspace(request).await?.into_inner().membership.unwrap())
    }

    async fn deleted(&self, person: &Person) -> Vec<Membership> {
        let request = person.request(ListWorkspacesRequest { deleted: true });
        self.workspaces().list_workspaces(request).await.unwrap().into_inner().memberships
    }

    async fn poll(&self) {
        self.service.lifecycle.poll().await.unwrap();
    }

    async fn rows_left(&self, table: &str) -> i64 {
        let key = if table == "workspaces" { "id" } else { "workspace_id" };
        let sql = AssertSqlSafe(format!("SELECT COUNT(*) FROM {table} WHERE {key} = $1"));
        let workspace = self.workspace();
        on_db!(self.service.db, |c| sqlx::query_scalar(sql).bind(&workspace).fetch_one(c).await).unwrap()
    }
}

fn log(told: &Shared) -> Vec<(&'static str, &'static str, u64)> {
    std::mem::take(&mut told.lock().unwrap().log)
}

/// What services were told at once, in no order.
fn told_all(told: &Shared, services: &[&'static str], what: &'static str, revision: u64) -> bool {
    let mut expected: Vec<_> = services.iter().map(|name| (*name, what, revision)).collect();
    let mut log = log(told);
    expected.sort_unstable();
    log.sort_unstable();
    log == expected
}

#[tokio::test]
async fn every_service_is_told_at_once_and_one_that_was_down_later() {
    for world in worlds().await {
        let told = world.listened_to().await;
        let owner = world.owner().await;
        told.lock().unwrap().down = Some("retrieval");
        world.close(&owner).await;
        assert!(told_all(&told, &["content", "ingest", "sync"], "suspend", 1), "{}", world.engine);
        world.poll().await;
        assert_eq!(log(&told), [], "{}: not before its time", world.engine);

        told.lock().unwrap().down = None;
        world.clock.advance(MINUTE);
        world.poll().await;
        assert_eq!(log(&told), [("retrieval", "suspend", 1)], "{}", world.engine);
        world.clock.advance(MINUTE);
        world.poll().await;
        assert_eq!(log(&told), []);
    }
}

#[tokio::test]
async fn an_owner_takes_a_workspace_back_while_there_is_time() {
    for world in worlds().await {
        let told = world.listened_to().await;
        let owner = world.owner().await;
        let editor = world.member("editor@example.com", Role::Editor).await;
        let (_, secret) = world.token(&owner, &EVERYTHING).await;
        assert_eq!(world.reopen(&owner).await.unwrap().workspace.unwrap().id, world.workspace());
        world.close(&owner).await;
        assert_eq!(problem(world.exchange(&secret).await).reason, Reason::Unauthorized);

        let listed = world.deleted(&owner).await;
        let end = world.clock.now().plus(DEFAULT_GRACE);
        let workspace = listed[0].workspace.clone().unwrap();
        assert_eq!((listed.len(), workspace.purge_at), (1, Some(end.to_proto())), "{}", world.engine);
        assert_eq!(workspace.deleted_at, Some(world.clock.now().to_proto()));
        assert!(world.deleted(&editor).await.is_empty());
        assert_eq!(reason(world.reopen(&editor).await), Reason::NotFound, "{}", world.engine);

        log(&told);
        let restored = world.reopen(&owner).await.unwrap().workspace.unwrap();
        assert_eq!((restored.deleted_at, restored.purge_at), (None, None));
        assert!(told_all(&told, &SERVICES, "restore", 2), "{}", world.engine);
        world.exchange(&secret).await.unwrap();
        assert!(world.deleted(&owner).await.is_empty());
        world.clock.advance(2 * DEFAULT_GRACE);
        world.poll().await;
        assert_eq!(log(&told), [], "{}: nothing is removed", world.engine);
    }
}

#[tokio::test]
async fn when_the_time_is_over_everything_goes_service_by_service() {
    for world in worlds().await {
        let told = world.listened_to().await;
        told.lock().unwrap().parts = 2;
        let owner = world.owner().await;
        world.token(&owner, &EVERYTHING).await;
        world.close(&owner).await;
        log(&told);
        world.clock.advance(DEFAULT_GRACE);
        for _ in 0..10 {
            world.poll().await;
        }
        // Identities ended long ago.
        let owner = world.person_of(owner.id);
        assert_eq!(reason(world.reopen(&owner).await), Reason::NotFound, "{}", world.engine);
        let expected: Vec<_> = SERVICES.into_iter().flat_map(|name| [(name, "purge", 2); 2]).collect();
        assert_eq!(log(&told), expected, "{}", world.engine);
        for Removal { table, .. } in REMOVALS {
            assert_eq!(world.rows_left(table).await, 0, "{}: {table}", world.engine);
        }
        assert!(world.deleted(&owner).await.is_empty());
    }
}

#[tokio::test]
async fn a_removal_waits_for_whoever_is_down_and_goes_on() {
    for world in worlds().await {
        let told = world.listened_to().await;
        let owner = world.owner().await;
        world.close(&owner).await;
        log(&told);
        told.lock().unwrap().down = Some("content");
        world.clock.advance(DEFAULT_GRACE);
        world.poll().await;
        assert_eq!(log(&told), [], "{}: what content still has would be indexed again", world.engine);
        assert_eq!(world.rows_left("tokens").await, 1);
        told.lock().unwrap().down = None;
        for _ in 0..5 {
            world.clock.advance(MINUTE);
            world.poll().await;
        }
        assert_eq!(log(&told), SERVICES.map(|name| (name, "purge", 2)), "{}", world.engine);
        assert_eq!(world.rows_left("workspaces").await, 0, "{}", world.engine);
    }
}

#[tokio::test]
async fn what_an_earlier_version_deleted_is_told_too() {
    for world in worlds().await {
        let told = world.listened_to().await;
        let workspace = world.workspace();
        on_db!(world.service.db.writer(), |c| sqlx::query(
            "UPDATE workspaces SET deleted_at = 1 WHERE id = $1"
        )
        .bind(&workspace)
        .execute(c)
        .await
        .map(|_| ()))
        .unwrap();
        world.poll().await;
        assert!(told_all(&told, &SERVICES, "suspend", 1), "{}", world.engine);
        let listed = world.deleted(&world.owner().await).await;
        let end = world.clock.now().plus(DEFAULT_GRACE);
        assert_eq!(listed[0].workspace.clone().unwrap().purge_at, Some(end.to_proto()));
    }
}

/// Whoever adds a table of workspaces' rows says here how they go.
#[tokio::test]
async fn every_table_of_workspaces_is_emptied() {
    let emptied: Vec<&str> = REMOVALS.iter().map(|removal| removal.table).collect();
    for world in worlds().await {
        let left = tables_left(&world.service.db, &emptied).await.unwrap();
        assert!(left.is_empty(), "a deleted workspace leaves rows in {left:?}");
    }
}
