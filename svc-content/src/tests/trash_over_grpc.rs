//! Trash, versions, batches and locations over the generated clients: the permission that each call requires, and
//! which callers may make it.

use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::identity::{Identity, Permission};
use cairn_chassis::server;
use cairn_chassis::status::{Problem, Reason};
use cairn_chassis::testing::identity::Issuer;
use cairn_proto::content::v1 as proto;
use cairn_proto::content::v1::batch_item::Write;
use cairn_proto::content::v1::batch_service_client::BatchServiceClient;
use cairn_proto::content::v1::change_items_request::{Change as ItemsChange, Selection};
use cairn_proto::content::v1::file_service_client::FileServiceClient;
use cairn_proto::content::v1::file_version_service_client::FileVersionServiceClient;
use cairn_proto::content::v1::folder_service_client::FolderServiceClient;
use cairn_proto::content::v1::location_service_client::LocationServiceClient;
use cairn_proto::content::v1::trash_service_client::TrashServiceClient;
use cairn_proto::feed::v1::Kind;
use tonic::{Request, Status};

use super::*;
use crate::service::{ACCESS, SERVICE_NAMES, Service};

fn refused<T: std::fmt::Debug>(result: Result<T, Status>) -> Reason {
    Problem::from_status(&result.unwrap_err()).reason
}

struct Served {
    _test: TestDb,
    issuer: Issuer,
    channel: ServiceChannel,
}

impl Served {
    async fn new(test: TestDb) -> Self {
        let issuer = Issuer::new().unwrap();
        let service = Service::open(config(&test), issuer.ambient()).await.unwrap();
        let verifier = issuer.ambient().verifier;
        let composed = server::compose(service.routes(), SERVICE_NAMES, &[ACCESS], &verifier).await.unwrap();
        Self { _test: test, issuer, channel: ServiceChannel::local(composed.routes) }
    }

    fn with<T>(&self, permissions: &[Permission], message: T) -> Request<T> {
        let identity = self.issuer.token(caller(1).workspace, permissions, Scope::All);
        self.issuer.request_as(&identity, message).unwrap()
    }
}

fn item(file: &str) -> proto::RestoreItemRequest {
    proto::RestoreItemRequest { kind: Kind::File.into(), item_id: file.to_owned() }
}

fn batch(writes: Vec<Write>) -> proto::BatchWriteRequest {
    let writes = writes
        .into_iter()
        .map(|write| proto::BatchItem { write: Some(write), ..Default::default() })
        .collect();
    proto::BatchWriteRequest { writes }
}

#[tokio::test]
async fn each_call_takes_its_permission() {
    const READ: &[Permission] = &[Permission::Read];
    const WRITE: &[Permission] = &[Permission::Read, Permission::Write];
    const DELETE: &[Permission] = &[Permission::Delete];
    for test in engines().await {
        let served = Served::new(test).await;
        let mut trash = TrashServiceClient::new(served.channel.clone());
        let mut files = FileServiceClient::new(served.channel.clone());
        let mut versions = FileVersionServiceClient::new(served.channel.clone());
        let mut batches = BatchServiceClient::new(served.channel.clone());
        let create = proto::CreateFileRequest {
            name: "a".into(),
            file_type: proto::FileType::Text.into(),
            ..Default::default()
        };

        let made =
            batches.batch_write(served.with(WRITE, batch(vec![Write::CreateFile(create.clone())]))).await;
        let made = made.unwrap().into_inner();
        assert_eq!((made.first_change_position, made.change_position), (1, 1));
        let file = made.results[0].id.clone();
        let deleting = batch(vec![
            Write::CreateFile(create),
            Write::DeleteFile(proto::DeleteFileRequest { file_id: file.clone() }),
        ]);
        assert_eq!(refused(batches.batch_write(served.with(WRITE, deleting)).await), Reason::Forbidden);
        let empty = proto::BatchWriteRequest { writes: vec![proto::BatchItem::default()] };
        assert_eq!(refused(batches.batch_write(served.with(WRITE, empty)).await), Reason::ValidationError);

        let list = proto::ListFileVersionsRequest { file_id: file.clone(), ..Default::default() };
        let listed = versions.list_file_versions(served.with(READ, list.clone())).await.unwrap().into_inner();
        let author = listed.versions[0].created_by.clone().unwrap();
        assert_eq!((author.kind.as_str(), author.name.as_str()), ("token", "test"));
        assert_eq!(refused(versions.list_file_versions(served.with(DELETE, list)).await), Reason::Forbidden);
        let back =
            proto::RestoreFileVersionRequest { file_id: file.clone(), version: 1, ..Default::default() };
        let restored = versions.restore_file_version(served.with(READ, back.clone())).await;
        assert_eq!(refused(restored), Reason::Forbidden);
        versions.restore_file_version(served.with(&[Permission::Write], back)).await.unwrap();

        let delete = proto::DeleteFileRequest { file_id: file.clone() };
        files.delete_file(served.with(DELETE, delete)).await.unwrap();
        let ask = proto::ListTrashRequest::default();
        assert_eq!(refused(trash.list_trash(served.with(DELETE, ask.clone())).await), Reason::Forbidden);
        let listed = trash.list_trash(served.with(READ, ask)).await.unwrap().into_inner().items;
        let by = listed[0].deleted_by.clone().unwrap();
        assert_eq!((listed.len(), by.kind.as_str(), by.name.as_str()), (1, "token", "test"));
        let of =
            |id: &str| proto::ListTrashRequest { principal_id: Some(id.to_owned()), ..Default::default() };
        for (id, total) in [(by.id.as_str(), 1), ("somebody else", 0), ("", 0), ("\0", 0)] {
            let page = trash.list_trash(served.with(READ, of(id))).await.unwrap().into_inner();
            assert_eq!((page.items.len() as u64, page.total_size), (total, total), "of {id:?}");
        }
        let who = proto::ListDeletersRequest {};
        assert_eq!(refused(trash.list_deleters(served.with(DELETE, who)).await), Reason::Forbidden);
        let deleters = trash.list_deleters(served.with(READ, who)).await.unwrap().into_inner().deleters;
        assert_eq!(deleters, [by]);
        let one = proto::GetTrashItemRequest { kind: Kind::File.into(), item_id: file.clone() };
        let got = trash.get_trash_item(served.with(READ, one.clone())).await.unwrap().into_inner();
        assert_eq!(got.item.as_ref(), listed.first());
        assert_eq!(refused(trash.get_trash_item(served.with(DELETE, one)).await), Reason::Forbidden);
        assert_eq!(refused(trash.restore_item(served.with(WRITE, item(&file))).await), Reason::Forbidden);
        let removal = proto::DeleteItemPermanentlyRequest { kind: Kind::File.into(), item_id: file.clone() };
        let removed = trash.delete_item_permanently(served.with(WRITE, removal.clone())).await;
        assert_eq!(refused(removed), Reason::Forbidden);
        let of_no_kind = proto::RestoreItemRequest { kind: 99, item_id: file.clone() };
        assert_eq!(refused(trash.restore_item(served.with(DELETE, of_no_kind)).await), Reason::NotFound);
        let back = trash.restore_item(served.with(DELETE, item(&file))).await.unwrap().into_inner();
        assert_eq!((back.path.as_str(), back.item_count, back.change_position), ("/a", 1, 3));
        assert_eq!(
            refused(trash.delete_item_permanently(served.with(DELETE, removal)).await),
            Reason::NotFound
        );
        assert_eq!(refused(trash.restore_item(Request::new(item(&file))).await), Reason::Unauthorized);
    }
}

#[tokio::test]
async fn what_went_along_is_told_with_what_it_went_along_with() {
    for test in engines().await {
        let served = Served::new(test).await;
        let mut trash = TrashServiceClient::new(served.channel.clone());
        let mut folders = FolderServiceClient::new(served.channel.clone());
        let mut files = FileServiceClient::new(served.channel.clone());
        let all = &Permission::ALL;
        let create = proto::CreateFolderRequest { name: "Old".into(), ..Default::default() };
        let folder = folders.create_folder(served.with(all, create)).await.unwrap().into_inner();
        let folder = folder.folder.unwrap().id;
        let create = proto::CreateFileRequest {
            name: "a".into(),
            file_type: proto::FileType::Text.into(),
            folder_id: Some(folder.clone()),
            ..Default::default()
        };
        let file = files.create_file(served.with(all, create)).await.unwrap().into_inner().file.unwrap().id;
        let of = |kind: Kind, id: &str| proto::GetTrashItemRequest { kind: kind.into(), item_id: id.into() };
        let live = trash.get_trash_item(served.with(all, of(Kind::File, &file))).await;
        assert_eq!(refused(live), Reason::NotFound);
        let delete = proto::DeleteFolderRequest { folder_id: folder.clone() };
        folders.delete_folder(served.with(all, delete)).await.unwrap();
        for (kind, id) in [(Kind::File, &file), (Kind::Folder, &folder)] {
            let got = trash.get_trash_item(served.with(all, of(kind, id))).await.unwrap().into_inner();
            let item = got.item.unwrap();
            assert_eq!((item.kind(), item.id, item.name.as_str()), (Kind::Folder, folder.clone(), "Old"));
        }
        for (kind, id) in [(Kind::File, "\0"), (Kind::Memory, file.as_str()), (Kind::Unspecified, &file)] {
            let got = trash.get_trash_item(served.with(all, of(kind, id))).await;
            assert_eq!(refused(got), Reason::NotFound);
        }
        // The former folder must not be disclosed to a scoped token.
        let bound = served.issuer.scoped_request(caller(1).workspace, &[], of(Kind::File, &file)).unwrap();
        assert_eq!(refused(trash.get_trash_item(bound).await), Reason::OutOfScope);
    }
}

#[tokio::test]
async fn people_find_the_workspace_of_an_item_among_those_that_they_name() {
    for test in engines().await {
        let served = Served::new(test).await;
        let mut locations = LocationServiceClient::new(served.channel.clone());
        let mut files = FileServiceClient::new(served.channel.clone());
        let create = proto::CreateFileRequest {
            name: "a".into(),
            file_type: proto::FileType::Text.into(),
            ..Default::default()
        };
        let made = files.create_file(served.with(&Permission::ALL, create)).await.unwrap();
        let file = made.into_inner().file.unwrap().id;
        let here = caller(1).workspace.to_string();
        let ask = |kind: Kind, id: &str, among: &[&str]| proto::LocateItemRequest {
            kind: kind.into(),
            item_id: id.into(),
            workspace_ids: among.iter().map(|&id| id.to_owned()).collect(),
        };
        let elsewhere = caller(2).workspace.to_string();
        let person = Identity {
            workspace: None,
            role: None,
            ..served.issuer.member(caller(1).workspace, cairn_chassis::identity::Role::Viewer)
        };
        let by_person = |message| served.issuer.request_as(&person, message).unwrap();
        let both = ask(Kind::File, &file, &["x", &elsewhere, &here]);
        for is_in_trash in [false, true] {
            let found = locations.locate_item(by_person(both.clone())).await.unwrap().into_inner();
            assert_eq!(found.workspace_id, here, "{is_in_trash}");
            let delete = proto::DeleteFileRequest { file_id: file.clone() };
            let _ = files.delete_file(served.with(&Permission::ALL, delete)).await;
        }
        for unknown in [
            ask(Kind::File, &file, &[&elsewhere]),
            ask(Kind::File, &file, &[]),
            ask(Kind::Folder, &file, &[&here]),
            ask(Kind::Ingested, &file, &[&here]),
            ask(Kind::File, "\0", &[&here]),
        ] {
            assert_eq!(refused(locations.locate_item(by_person(unknown)).await), Reason::NotFound);
        }
        let many = ask(Kind::File, &file, &vec![here.as_str(); 201]);
        assert_eq!(refused(locations.locate_item(by_person(many)).await), Reason::ValidationError);
        let token = locations.locate_item(served.with(&Permission::ALL, both.clone())).await;
        assert_eq!(refused(token), Reason::Forbidden);
        assert_eq!(refused(locations.locate_item(Request::new(both)).await), Reason::Unauthorized);
    }
}

#[tokio::test]
async fn what_becomes_of_many_items_takes_the_permission_of_that() {
    const WRITE: &[Permission] = &[Permission::Read, Permission::Write];
    const DELETE: &[Permission] = &[Permission::Read, Permission::Delete];
    for test in engines().await {
        let served = Served::new(test).await;
        let mut files = FileServiceClient::new(served.channel.clone());
        let mut batches = BatchServiceClient::new(served.channel.clone());
        let create = proto::CreateFileRequest {
            name: "a".into(),
            file_type: proto::FileType::Text.into(),
            ..Default::default()
        };
        let made = files.create_file(served.with(&Permission::ALL, create)).await.unwrap();
        let file = made.into_inner().file.unwrap().id;
        let asked = |kind: Kind, change: ItemsChange| proto::ChangeItemsRequest {
            selection: Some(Selection::Items(proto::ItemList {
                items: vec![proto::ItemName { kind: kind.into(), item_id: file.clone() }],
            })),
            change: Some(change),
            dry_run: false,
        };
        let tag = ItemsChange::Tag(proto::TagItems { add: vec!["t".into()], ..Default::default() });
        let trash = ItemsChange::Trash(proto::TrashItems {});
        let restore = ItemsChange::Restore(proto::RestoreItems {});
        for (permissions, refuses) in [(WRITE, &trash), (WRITE, &restore), (DELETE, &tag)] {
            let request = served.with(permissions, asked(Kind::File, refuses.clone()));
            assert_eq!(refused(batches.change_items(request).await), Reason::Forbidden, "{refuses:?}");
        }
        for (permissions, change) in [(WRITE, tag), (DELETE, trash), (DELETE, restore.clone())] {
            let request = served.with(permissions, asked(Kind::File, change));
            let done = batches.change_items(request).await.unwrap().into_inner();
            assert_eq!((done.changed_count, done.skipped.len()), (1, 0), "{done:?}");
            assert!(done.write_id.is_some() && done.change_position > 0, "{done:?}");
        }
        // Restoring a record requires the permission to write it; this is no record.
        let request = served.with(WRITE, asked(Kind::Record, restore.clone()));
        let done = batches.change_items(request).await.unwrap().into_inner();
        assert_eq!(done.skipped[0].reason(), cairn_proto::common::v1::ErrorReason::NotFound);
        let anybody = Request::new(asked(Kind::File, restore));
        assert_eq!(refused(batches.change_items(anybody).await), Reason::Unauthorized);
        let nothing = served.with(WRITE, proto::ChangeItemsRequest::default());
        assert_eq!(refused(batches.change_items(nothing).await), Reason::ValidationError);
    }
}
