//! The service as its callers see it.

use cairn_chassis::identity::Scope;
use cairn_proto::ids::FolderId;
use cairn_proto::sync::v1::import_service_client::ImportServiceClient;
use cairn_proto::sync::v1::preview_import_request::Part;
use cairn_proto::sync::v1::sync_service_client::SyncServiceClient;
use cairn_proto::sync::v1::{self as proto, ManifestDocument};
use tonic::Status;

use super::*;
use crate::{ACCESS, SERVICE_NAMES};

impl Bench {
    async fn client(&self) -> SyncServiceClient<ServiceChannel> {
        let verifier = self.issuer.ambient().verifier;
        let routes = self.service.routes();
        let composed = server::compose(routes, SERVICE_NAMES, &[ACCESS], &verifier).await.unwrap();
        SyncServiceClient::new(ServiceChannel::local(composed.routes))
    }

    async fn imports_client(&self) -> ImportServiceClient<ServiceChannel> {
        let verifier = self.issuer.ambient().verifier;
        let routes = self.service.routes();
        let composed = server::compose(routes, SERVICE_NAMES, &[ACCESS], &verifier).await.unwrap();
        ImportServiceClient::new(ServiceChannel::local(composed.routes))
    }

    fn request_of<T>(&self, permissions: &[Permission], message: T) -> Request<T> {
        let identity = self.issuer.token(workspace(), permissions, Scope::All);
        self.issuer.request_as(&identity, message).unwrap()
    }
}

fn manifest() -> proto::PreviewSyncRequest {
    let document = ManifestDocument { path: "a.md".into(), content: "# A".into(), ..Default::default() };
    proto::PreviewSyncRequest { name: "docs".into(), documents: vec![document], ..Default::default() }
}

fn refused<T: std::fmt::Debug>(result: Result<T, Status>) -> Reason {
    Problem::from_status(&result.unwrap_err()).reason
}

#[tokio::test]
async fn a_run_from_preview_to_rollback() {
    for bench in benches().await {
        let mut client = bench.client().await;
        let write = [Permission::Write];
        let previewed = client.preview_sync(bench.request_of(&write, manifest())).await.unwrap().into_inner();
        let run = previewed.run.unwrap();
        assert_eq!((run.status(), run.would_create), (proto::RunStatus::Ready, 1), "{}", bench.engine);
        assert_eq!(run.conflict_policy(), proto::ConflictPolicy::Update);
        let run_id = run.id;
        let start = proto::StartSyncRequest { run_id: run_id.clone() };
        client.start_sync(bench.request_of(&write, start)).await.unwrap();
        bench.work().await;
        let get = proto::GetSyncRequest { run_id: run_id.clone() };
        let run = client.get_sync(bench.request_of(&[Permission::Read], get.clone())).await.unwrap();
        let run = run.into_inner().run.unwrap();
        assert_eq!(run.status(), proto::RunStatus::Completed);
        assert_eq!(run.results[0].action(), proto::SyncAction::Created);
        assert!(run.rollback_until.is_some() && run.finished_at.is_some());
        let back = proto::RollBackSyncRequest { run_id: run_id.clone() };
        assert_eq!(
            refused(client.roll_back_sync(bench.request_of(&write, back.clone())).await),
            Reason::Forbidden
        );
        client.roll_back_sync(bench.request_of(&[Permission::Delete], back)).await.unwrap();
        bench.work().await;
        let run = client.get_sync(bench.request_of(&[Permission::Read], get)).await.unwrap();
        assert_eq!(run.into_inner().run.unwrap().status(), proto::RunStatus::RolledBack);
        let listed =
            client.list_syncs(bench.request_of(&[Permission::Read], proto::ListSyncsRequest::default()));
        assert_eq!(listed.await.unwrap().into_inner().total_size, 1);
        let delete = proto::DeleteSyncRequest { run_id };
        client.delete_sync(bench.request_of(&write, delete.clone())).await.unwrap();
        assert_eq!(refused(client.delete_sync(bench.request_of(&write, delete)).await), Reason::NotFound);
    }
}

#[tokio::test]
async fn a_token_that_is_bound_to_folders_and_one_without_the_right_are_refused() {
    for bench in benches().await {
        let mut client = bench.client().await;
        let read = [Permission::Read];
        assert_eq!(
            refused(client.preview_sync(bench.request_of(&read, manifest())).await),
            Reason::Forbidden
        );
        let run_id = Uuid::from_u128(7).to_string();
        let folders = [FolderId(Uuid::from_u128(9))];
        let bound = |message| bench.issuer.scoped_request(workspace(), &folders, message).unwrap();
        assert_eq!(
            refused(client.preview_sync(bound(manifest())).await),
            Reason::OutOfScope,
            "{}",
            bench.engine
        );
        let get = proto::GetSyncRequest { run_id };
        let bound = bench.issuer.scoped_request(workspace(), &folders, get).unwrap();
        assert_eq!(refused(client.get_sync(bound).await), Reason::OutOfScope);
        let odd = proto::PreviewSyncRequest { conflict_policy: 9, ..manifest() };
        let problem = client.preview_sync(bench.request_of(&[Permission::Write], odd)).await.unwrap_err();
        assert_eq!(Problem::from_status(&problem).violations[0].path, "conflictPolicy");
    }
}

fn upload(draft: proto::ImportDraft) -> Vec<proto::PreviewImportRequest> {
    let file = super::imports::archive(&[("Note.md", b"# Note")]);
    let end = proto::ImportEnd { size_bytes: file.len() as u64 };
    let parts = [Part::Bytes(file.into()), Part::Draft(draft), Part::End(end)];
    parts.into_iter().map(|part| proto::PreviewImportRequest { part: Some(part) }).collect()
}

#[tokio::test]
async fn who_imports_may_be_said_behind_the_archive() {
    for bench in benches().await {
        let mut client = bench.imports_client().await;
        let identity = |permissions: &[Permission]| {
            let identity = bench.issuer.token(workspace(), permissions, Scope::All);
            Some(bench.issuer.sign(&identity).unwrap())
        };
        let draft = |identity| proto::ImportDraft {
            provider: proto::ImportProvider::ObsidianZip.into(),
            file_name: "dir/My vault.zip".into(),
            identity,
            ..Default::default()
        };
        let nobody = Identity { workspace: None, ..bench.issuer.token(workspace(), &[], Scope::All) };
        let asked = |draft| {
            let parts = futures::stream::iter(upload(draft));
            bench.issuer.request_as(&nobody, parts).unwrap()
        };
        let refused = client.preview_import(asked(draft(identity(&[Permission::Read])))).await;
        assert_eq!(self::refused(refused), Reason::Forbidden, "{}", bench.engine);
        assert!(client.preview_import(asked(draft(None))).await.is_err(), "of no workspace");
        let odd = proto::ImportDraft { provider: 9, ..draft(identity(&[Permission::Write])) };
        let odd = Problem::from_status(&client.preview_import(asked(odd)).await.unwrap_err());
        assert_eq!(odd.violations[0].path, "provider");
        let run = client.preview_import(asked(draft(identity(&[Permission::Write])))).await.unwrap();
        let run = run.into_inner().run.unwrap();
        assert_eq!((run.file_name.as_str(), run.would_create), ("My vault.zip", 1));
        let report = proto::ReadImportReportRequest { run_id: run.id.clone() };
        let report = client.read_import_report(bench.request_of(&[Permission::Read], report)).await.unwrap();
        let report = report.into_inner().message().await.unwrap().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report.bytes).unwrap();
        assert_eq!(
            (&report["phase"], &report["runId"]),
            (&serde_json::json!("dry_run"), &serde_json::json!(run.id))
        );
        let start = proto::StartImportRequest { run_id: run.id };
        let started = client.start_import(bench.request_of(&[Permission::Read], start.clone())).await;
        assert_eq!(self::refused(started), Reason::Forbidden);
        client.start_import(bench.request_of(&[Permission::Write], start)).await.unwrap();
        bench.work().await;
        let list = proto::ListImportsRequest::default();
        let listed = client.list_imports(bench.request_of(&[Permission::Read], list)).await.unwrap();
        assert_eq!(listed.into_inner().runs[0].status(), proto::RunStatus::Completed);
    }
}
