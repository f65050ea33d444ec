//! Databases, records and memories over the generated clients: who may call, and what a refusal carries.

use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::identity::Permission;
use cairn_chassis::server;
use cairn_chassis::status::{Problem, Reason};
use cairn_chassis::testing::identity::Issuer;
use cairn_proto::content::v1 as proto;
use cairn_proto::content::v1::database_service_client::DatabaseServiceClient;
use cairn_proto::content::v1::folder_service_client::FolderServiceClient;
use cairn_proto::content::v1::memory_service_client::MemoryServiceClient;
use cairn_proto::content::v1::record_service_client::RecordServiceClient;
use serde_json::json;
use tonic::Status;

use super::*;
use crate::service::{ACCESS, SERVICE_NAMES, Service};

struct Served {
    test: TestDb,
    issuer: Issuer,
    databases: DatabaseServiceClient<ServiceChannel>,
    records: RecordServiceClient<ServiceChannel>,
    memories: MemoryServiceClient<ServiceChannel>,
    folders: FolderServiceClient<ServiceChannel>,
    workspace: WorkspaceId,
}

impl Served {
    async fn each() -> Vec<Self> {
        let mut all = Vec::new();
        for test in engines().await {
            let issuer = Issuer::new().unwrap();
            let service = Service::open(config(&test), issuer.ambient()).await.unwrap();
            let verifier = issuer.ambient().verifier;
            let composed =
                server::compose(service.routes(), SERVICE_NAMES, &[ACCESS], &verifier).await.unwrap();
            let channel = ServiceChannel::local(composed.routes);
            all.push(Self {
                databases: DatabaseServiceClient::new(channel.clone()),
                records: RecordServiceClient::new(channel.clone()),
                memories: MemoryServiceClient::new(channel.clone()),
                folders: FolderServiceClient::new(channel),
                workspace: caller(1).workspace,
                test,
                issuer,
            });
        }
        all
    }

    fn ask<T>(&self, message: T) -> tonic::Request<T> {
        self.issuer.request(self.workspace, message).unwrap()
    }

    async fn database(&mut self, folder_id: Option<String>) -> proto::Database {
        let asked = proto::CreateDatabaseRequest { name: "Tasks".into(), folder_id, ..Default::default() };
        let request = self.ask(asked);
        self.databases.create_database(request).await.unwrap().into_inner().database.unwrap()
    }

    async fn record(&mut self, database: &proto::Database, name: &str) -> proto::Record {
        let values_json = json!({database.properties[0].id.as_str(): name}).to_string();
        let asked = proto::CreateRecordRequest {
            database_id: database.id.clone(),
            values_json,
            ..Default::default()
        };
        let request = self.ask(asked);
        self.records.create_record(request).await.unwrap().into_inner().record.unwrap()
    }

    async fn folder(&mut self, name: &str) -> String {
        let request = self.ask(proto::CreateFolderRequest { name: name.into(), parent_id: None });
        self.folders.create_folder(request).await.unwrap().into_inner().folder.unwrap().id
    }
}

fn reason(status: &Status) -> Reason {
    Problem::from_status(status).reason
}

fn paths(status: &Status) -> Vec<String> {
    let problem = Problem::from_status(status);
    assert_eq!(problem.reason, Reason::ValidationError, "{status:?}");
    let mut paths: Vec<_> = problem.violations.into_iter().map(|violation| violation.path).collect();
    paths.sort();
    paths
}

/// Calls `$method` with `$message` as `$identity`; the answer must be a refusal for `$reason`.
macro_rules! refused {
    ($served:ident, $identity:expr, $reason:expr, $($client:ident.$method:ident($message:expr)),+ $(,)?) => {$(
        let request = $served.issuer.request_as($identity, $message).unwrap();
        let refusal = $served.$client.$method(request).await.unwrap_err();
        assert_eq!(reason(&refusal), $reason, "{} {} {refusal:?}", $served.test.engine, stringify!($method));
    )+};
}

#[tokio::test]
async fn every_permission_is_checked_by_databases_and_records() {
    for mut served in Served::each().await {
        let with =
            |permissions: &[Permission]| served.issuer.token(served.workspace, permissions, Scope::All);
        let (writer, reader) = (with(&[Permission::Write]), with(&[Permission::Read]));
        refused!(
            served,
            &writer,
            Reason::Forbidden,
            databases.get_database(proto::GetDatabaseRequest::default()),
            databases.list_databases(proto::ListDatabasesRequest::default()),
            databases.list_trashed_databases(proto::ListTrashedDatabasesRequest::default()),
            databases.delete_database(proto::DeleteDatabaseRequest::default()),
            databases.restore_database(proto::RestoreDatabaseRequest::default()),
            databases.purge_database(proto::PurgeDatabaseRequest::default()),
            records.get_record(proto::GetRecordRequest::default()),
            records.list_records(proto::ListRecordsRequest::default()),
            records.group_records(proto::GroupRecordsRequest::default()),
            records.list_record_versions(proto::ListRecordVersionsRequest::default()),
            records.list_backlinks(proto::ListBacklinksRequest::default()),
            records.delete_record(proto::DeleteRecordRequest::default()),
            records.purge_record(proto::PurgeRecordRequest::default()),
        );
        refused!(
            served,
            &reader,
            Reason::Forbidden,
            databases.create_database(proto::CreateDatabaseRequest::default()),
            databases.update_database(proto::UpdateDatabaseRequest::default()),
            databases.create_property(proto::CreatePropertyRequest::default()),
            databases.update_property(proto::UpdatePropertyRequest::default()),
            databases.delete_property(proto::DeletePropertyRequest::default()),
            databases.create_view(proto::CreateViewRequest::default()),
            databases.update_view(proto::UpdateViewRequest::default()),
            databases.delete_view(proto::DeleteViewRequest::default()),
            records.create_record(proto::CreateRecordRequest::default()),
            records.update_record(proto::UpdateRecordRequest::default()),
            records.restore_record(proto::RestoreRecordRequest::default()),
            records.restore_record_version(proto::RestoreRecordVersionRequest::default()),
        );
        // A service without a workspace has no databases.
        let service = served.issuer.service("retrieval");
        refused!(
            served,
            &service,
            Reason::Forbidden,
            databases.list_databases(proto::ListDatabasesRequest::default()),
            records.list_records(proto::ListRecordsRequest::default()),
            memories.list_memories(proto::ListMemoriesRequest::default()),
        );
        let unsigned = served.databases.list_databases(proto::ListDatabasesRequest::default()).await;
        assert_eq!(reason(&unsigned.unwrap_err()), Reason::Unauthorized);
        let unsigned = served.records.list_records(proto::ListRecordsRequest::default()).await;
        assert_eq!(reason(&unsigned.unwrap_err()), Reason::Unauthorized);
        let unsigned = served.memories.list_memories(proto::ListMemoriesRequest::default()).await;
        assert_eq!(reason(&unsigned.unwrap_err()), Reason::Unauthorized);
    }
}

#[tokio::test]
async fn another_workspace_has_none_of_it() {
    for mut served in Served::each().await {
        let database = served.database(None).await;
        let record = served.record(&database, "r").await;
        let all = [Permission::Read, Permission::Write, Permission::Delete];
        let stranger = served.issuer.token(caller(2).workspace, &all, Scope::All);
        let own = served.issuer.token(served.workspace, &all, Scope::All);
        let (id, record_id) = (database.id.clone(), record.id.clone());
        let property_id = database.properties[0].id.clone();
        // Not there, spelled wrong, or no id at all: the same answer.
        for (identity, id) in
            [(&stranger, &id), (&own, &missing_file()), (&own, &"x\0".to_owned()), (&own, &String::new())]
        {
            let (database_id, record_id) = (id.clone(), record_id.clone());
            refused!(
                served,
                identity,
                Reason::NotFound,
                databases.get_database(proto::GetDatabaseRequest { database_id: database_id.clone() }),
                databases.delete_database(proto::DeleteDatabaseRequest { database_id: database_id.clone() }),
                databases
                    .restore_database(proto::RestoreDatabaseRequest { database_id: database_id.clone() }),
                databases.purge_database(proto::PurgeDatabaseRequest { database_id: database_id.clone() }),
                databases.delete_property(proto::DeletePropertyRequest {
                    database_id: database_id.clone(),
                    property_id: property_id.clone(),
                }),
                records.list_records(proto::ListRecordsRequest {
                    database_id: database_id.clone(),
                    ..Default::default()
                }),
                records.get_record(proto::GetRecordRequest {
                    database_id: database_id.clone(),
                    record_id: record_id.clone()
                }),
                records.create_record(proto::CreateRecordRequest {
                    database_id: database_id.clone(),
                    ..Default::default()
                }),
                records.update_record(proto::UpdateRecordRequest {
                    database_id: database_id.clone(),
                    record_id: record_id.clone(),
                    ..Default::default()
                }),
                records.delete_record(proto::DeleteRecordRequest {
                    database_id: database_id.clone(),
                    record_id
                }),
            );
        }
        for record_id in [missing_file(), "x".to_owned(), String::new()] {
            let database_id = id.clone();
            refused!(
                served,
                &own,
                Reason::NotFound,
                records.get_record(proto::GetRecordRequest {
                    database_id: database_id.clone(),
                    record_id: record_id.clone()
                }),
                records.restore_record(proto::RestoreRecordRequest {
                    database_id: database_id.clone(),
                    record_id: record_id.clone()
                }),
                records.purge_record(proto::PurgeRecordRequest {
                    database_id: database_id.clone(),
                    record_id: record_id.clone()
                }),
                records.restore_record_version(proto::RestoreRecordVersionRequest {
                    database_id,
                    record_id,
                    version: 1
                }),
            );
        }
        let request = served.issuer.request_as(&stranger, proto::ListDatabasesRequest::default()).unwrap();
        assert_eq!(served.databases.list_databases(request).await.unwrap().into_inner().total_size, 0);
    }
}

#[tokio::test]
async fn a_folder_scope_holds_without_the_gateway() {
    for mut served in Served::each().await {
        let (inside, outside) = (served.folder("in").await, served.folder("out").await);
        let mine = served.database(Some(inside.clone())).await;
        let (root, other) = (served.database(None).await, served.database(Some(outside.clone())).await);
        let all = [Permission::Read, Permission::Write, Permission::Delete];
        let scope = Scope::Folders([inside.parse().unwrap()].into());
        let scoped = served.issuer.token(served.workspace, &all, scope);
        for database_id in [root.id.clone(), other.id.clone()] {
            refused!(
                served,
                &scoped,
                Reason::OutOfScope,
                databases.get_database(proto::GetDatabaseRequest { database_id: database_id.clone() }),
                databases.delete_database(proto::DeleteDatabaseRequest { database_id: database_id.clone() }),
                records.list_records(proto::ListRecordsRequest {
                    database_id: database_id.clone(),
                    ..Default::default()
                }),
                records.create_record(proto::CreateRecordRequest {
                    database_id: database_id.clone(),
                    ..Default::default()
                }),
                databases.create_property(proto::CreatePropertyRequest {
                    database_id: database_id.clone(),
                    name: "p".into(),
                    r#type: proto::PropertyType::Text.into(),
                    config: None,
                }),
                memories.create_memory(proto::CreateMemoryRequest {
                    name: "m".into(),
                    members: vec![proto::MemberInput {
                        kind: proto::MemberKind::Database.into(),
                        database_id: Some(database_id),
                        ..Default::default()
                    }],
                    ..Default::default()
                }),
            );
        }
        refused!(
            served,
            &scoped,
            Reason::OutOfScope,
            databases
                .create_database(proto::CreateDatabaseRequest { name: "x".into(), ..Default::default() }),
        );
        let request = served.issuer.request_as(&scoped, proto::ListDatabasesRequest::default()).unwrap();
        let listed = served.databases.list_databases(request).await.unwrap().into_inner();
        assert_eq!((listed.total_size, listed.databases[0].id.as_str()), (1, mine.id.as_str()));
    }
}

#[tokio::test]
async fn a_refusal_names_every_path_at_once() {
    for mut served in Served::each().await {
        let database = served.database(None).await;
        let name = database.properties[0].id.clone();
        let request = served.ask(proto::CreatePropertyRequest {
            database_id: database.id.clone(),
            name: "Points".into(),
            r#type: proto::PropertyType::Number.into(),
            config: None,
        });
        let made = served.databases.create_property(request).await.unwrap().into_inner();
        let points = made.property.unwrap().id;
        let request = served.ask(proto::CreateRecordRequest {
            database_id: database.id.clone(),
            values_json: json!({name.as_str(): 5, points.as_str(): "x", "Points": 1}).to_string(),
            content_file_id: Some("no id".into()),
            ..Default::default()
        });
        let refusal = served.records.create_record(request).await.unwrap_err();
        let mut expected = vec![
            "contentFileId".to_owned(),
            "values.Points".to_owned(),
            format!("values.{name}"),
            format!("values.{points}"),
        ];
        expected.sort();
        assert_eq!(paths(&refusal), expected, "{}", served.test.engine);
        let request = served.ask(proto::CreateRecordRequest {
            database_id: database.id.clone(),
            values_json: "[".into(),
            ..Default::default()
        });
        assert_eq!(paths(&served.records.create_record(request).await.unwrap_err()), ["values"]);
        let record = served.record(&database, "r").await;
        let request = served.ask(proto::UpdateRecordRequest {
            database_id: database.id.clone(),
            record_id: record.id,
            update_mask: Some(prost_types::FieldMask { paths: vec!["values".into(), "version".into()] }),
            values_json: json!({name.as_str(): "x".repeat(100_001)}).to_string(),
            ..Default::default()
        });
        let refusal = served.records.update_record(request).await.unwrap_err();
        assert_eq!(paths(&refusal), ["updateMask".to_owned(), format!("values.{name}")]);
        let request = served.ask(proto::CreateDatabaseRequest {
            name: "a/b".into(),
            description: Some("\0".into()),
            icon: Some("x".repeat(2_001)),
            folder_id: Some("x".into()),
            new_id: None,
        });
        let refusal = served.databases.create_database(request).await.unwrap_err();
        assert_eq!(paths(&refusal), ["description", "folderId", "icon", "name"]);
        let request = served.ask(proto::CreatePropertyRequest {
            database_id: database.id,
            name: " ".into(),
            r#type: proto::PropertyType::Unspecified.into(),
            config: None,
        });
        assert_eq!(paths(&served.databases.create_property(request).await.unwrap_err()), ["name", "type"]);
        let request = served.ask(proto::CreateMemoryRequest {
            slug: Some("No Slug".into()),
            members: vec![proto::MemberInput::default()],
            ..Default::default()
        });
        let refusal = served.memories.create_memory(request).await.unwrap_err();
        assert_eq!(paths(&refusal), ["members[0].kind", "name", "slug"], "{}", served.test.engine);
    }
}

#[tokio::test]
async fn limits_hold_exactly() {
    for mut served in Served::each().await {
        let database = served.database(None).await;
        for number in 0..3 {
            served.record(&database, &number.to_string()).await;
        }
        let list = |limit, offset| proto::ListRecordsRequest {
            database_id: database.id.clone(),
            limit,
            offset,
            ..Default::default()
        };
        for (limit, offset, said, found) in
            [(0, 0, 50, 3), (1, 0, 1, 1), (200, 0, 200, 3), (2, 2, 2, 1), (2, 3, 2, 0), (2, 1 << 40, 2, 0)]
        {
            let request = served.ask(list(limit, offset));
            let page = served.records.list_records(request).await.unwrap().into_inner();
            assert_eq!((page.limit, page.offset, page.total), (said, offset, 3), "{}", served.test.engine);
            assert_eq!(page.records.len(), found, "{limit} {offset}");
        }
        for (limit, offset, path) in [(201, 0, "limit"), (1, u64::MAX, "offset")] {
            let request = served.ask(list(limit, offset));
            assert_eq!(paths(&served.records.list_records(request).await.unwrap_err()), [path]);
        }
        let member = proto::MemberInput {
            kind: proto::MemberKind::Database.into(),
            database_id: Some(database.id.clone()),
            ..Default::default()
        };
        let request = served.ask(proto::CreateMemoryRequest { name: "m".into(), ..Default::default() });
        let memory = served.memories.create_memory(request).await.unwrap().into_inner().memory.unwrap().id;
        for (count, refused) in [(0, true), (1, false), (100, false), (101, true)] {
            let members = vec![member.clone(); count];
            let request = served.ask(proto::AddMembersRequest { memory: memory.clone(), members });
            match served.memories.add_members(request).await {
                Ok(added) => assert!(!refused && added.into_inner().members.len() == count, "{count}"),
                Err(refusal) => {
                    assert!(refused, "{count} {refusal:?}");
                    assert_eq!(paths(&refusal), ["members"]);
                }
            }
        }
    }
}

#[tokio::test]
async fn a_stale_version_is_a_conflict() {
    for mut served in Served::each().await {
        let database = served.database(None).await;
        let record = served.record(&database, "r").await;
        let update = |name: &str, if_version| proto::UpdateRecordRequest {
            database_id: database.id.clone(),
            record_id: record.id.clone(),
            values_json: json!({database.properties[0].id.as_str(): name}).to_string(),
            update_mask: Some(prost_types::FieldMask { paths: vec!["values".into()] }),
            if_version,
            ..Default::default()
        };
        let request = served.ask(update("s", vec![1]));
        let changed = served.records.update_record(request).await.unwrap().into_inner().record.unwrap();
        assert_eq!((changed.version, changed.title.as_str()), (2, "s"));
        let request = served.ask(update("t", vec![1]));
        let refusal = served.records.update_record(request).await.unwrap_err();
        assert_eq!(reason(&refusal), Reason::VersionConflict, "{}", served.test.engine);
        let request = served.ask(update("t", vec![1, 2]));
        assert_eq!(
            served.records.update_record(request).await.unwrap().into_inner().record.unwrap().version,
            3
        );
    }
}
