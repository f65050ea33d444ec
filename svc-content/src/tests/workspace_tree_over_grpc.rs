//! The tree over the generated client: only services of the mesh may read it.

use cairn_chassis::channel::{MAX_MESSAGE_BYTES, ServiceChannel};
use cairn_chassis::server;
use cairn_chassis::testing::identity::Issuer;
use cairn_proto::content::v1::text_ref::Text;
use cairn_proto::content::v1::tree_service_client::TreeServiceClient;
use cairn_proto::content::v1::{
    ListTreeRequest, ReadFoldersRequest, ReadPastTreeRequest, ReadTextsRequest, ReadTreeChangesRequest,
    TextRef, read_past_tree_request::When,
};
use tonic::Code;

use super::tables::named;
use super::*;
use crate::databases::Databases;
use crate::service::{ACCESS, SERVICE_NAMES, Service};

#[tokio::test]
async fn services_of_the_mesh_read_it_and_nobody_else() {
    for bench in benches().await {
        let folder = bench.folder("a", None).await;
        let file = bench.file("one.md", Some(folder.id)).await;
        let issuer = Issuer::new().unwrap();
        let service = Service::open(config(&bench.test), issuer.ambient()).await.unwrap();
        let verifier = issuer.ambient().verifier;
        let composed = server::compose(service.routes(), SERVICE_NAMES, &[ACCESS], &verifier).await.unwrap();
        let mut client = TreeServiceClient::new(ServiceChannel::local(composed.routes))
            .max_decoding_message_size(MAX_MESSAGE_BYTES);
        let (mesh, workspace_id) = (issuer.service("retrieval"), bench.caller.workspace.to_string());
        let list = ListTreeRequest { workspace_id: workspace_id.clone(), page_token: String::new() };
        let changes = ReadTreeChangesRequest { workspace_id: workspace_id.clone(), after: 1 };
        let refs = [
            Text::BodyHash(file.content_hash.clone()),
            Text::RecordId("nonsense".into()),
            Text::DatabaseId(missing_file()),
        ];
        let refs = refs.map(|text| TextRef { text: Some(text) }).into_iter().chain([TextRef::default()]);
        let texts = ReadTextsRequest { workspace_id, refs: refs.collect() };

        let listed = client.list_tree(issuer.request_as(&mesh, list.clone()).unwrap()).await.unwrap();
        let listed = listed.into_inner();
        let items = listed.items.unwrap();
        assert_eq!((listed.position, listed.next_page_token.as_str()), (2, ""));
        let (told, file_id) = (&items.files[0], file.id.to_string());
        assert_eq!(
            (told.id.clone(), told.folder_id.clone()),
            (file.id.to_string(), Some(folder.id.to_string()))
        );
        assert_eq!((&told.content_hash, told.size_bytes), (&file.content_hash, file.size_bytes));
        let changed = client.read_tree_changes(issuer.request_as(&mesh, changes.clone()).unwrap()).await;
        let changed = changed.unwrap().into_inner();
        assert_eq!((changed.position, changed.head, changed.items.unwrap().files.len()), (2, 2, 1));
        let asked = |after| ReadFoldersRequest {
            workspace_id: bench.caller.workspace.to_string(),
            after,
            page_token: String::new(),
        };
        for (after, unchanged) in [(0, false), (1, true), (2, true), (3, false)] {
            let request = issuer.request_as(&mesh, asked(after)).unwrap();
            let read = client.read_folders(request).await.unwrap().into_inner();
            assert_eq!((read.unchanged, read.position), (unchanged, 2), "after {after}");
            let names: Vec<&str> = read.folders.iter().map(|folder| folder.name.as_str()).collect();
            assert_eq!(names.is_empty(), unchanged, "{names:?}");
        }
        let databases = Databases::new(bench.context.clone());
        let database = databases.create(&bench.caller, named("Tasks", None)).await.unwrap().item;
        let request = issuer.request_as(&mesh, asked(2)).unwrap();
        let read = client.read_folders(request).await.unwrap().into_inner();
        let told: Vec<(&str, &str)> =
            read.databases.iter().map(|database| (database.id.as_str(), database.name.as_str())).collect();
        assert_eq!((read.unchanged, read.folders.len(), read.position), (false, 1, 3));
        assert_eq!(told, [(database.id.to_string().as_str(), "Tasks")]);
        let paged = |page_token: String| ReadFoldersRequest { page_token, ..asked(0) };
        for (token, databases) in
            [(format!("folders:{}", folder.id), 1), (format!("databases:{}", database.id), 0)]
        {
            let request = issuer.request_as(&mesh, paged(token)).unwrap();
            let read = client.read_folders(request).await.unwrap().into_inner();
            assert_eq!((read.folders.len(), read.databases.len(), read.unchanged), (0, databases, false));
        }
        let request = issuer.request_as(&mesh, paged(format!("memories:{}", folder.id))).unwrap();
        assert_eq!(client.read_folders(request).await.unwrap_err().code(), Code::InvalidArgument);
        let request = issuer.request(bench.caller.workspace, asked(0)).unwrap();
        assert_eq!(client.read_folders(request).await.unwrap_err().code(), Code::PermissionDenied);
        let past = |when| ReadPastTreeRequest { workspace_id: bench.caller.workspace.to_string(), when };
        let first = past(Some(When::AfterChange(1)));
        let told = client.read_past_tree(issuer.request_as(&mesh, first.clone()).unwrap()).await;
        let told = told.unwrap().into_inner();
        let gone: Vec<&str> = told.gone.iter().map(|one| one.id.as_str()).collect();
        assert_eq!((gone, told.unknown, told.at.is_some()), (vec![file_id.as_str()], 0, true));
        let unsaid = client.read_past_tree(issuer.request_as(&mesh, past(None)).unwrap()).await;
        assert_eq!(unsaid.unwrap_err().code(), Code::InvalidArgument);
        let request = issuer.request(bench.caller.workspace, first).unwrap();
        assert_eq!(client.read_past_tree(request).await.unwrap_err().code(), Code::PermissionDenied);
        let read =
            client.read_texts(issuer.request_as(&mesh, texts.clone()).unwrap()).await.unwrap().into_inner();
        assert_eq!((read.read, read.texts.len(), &*read.texts[0].content), (4, 1, &b"content of one.md"[..]));

        let caller = |message: ListTreeRequest| issuer.request(bench.caller.workspace, message).unwrap();
        let refused = client.list_tree(caller(list)).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
        let request = issuer.request(bench.caller.workspace, changes).unwrap();
        assert_eq!(client.read_tree_changes(request).await.unwrap_err().code(), Code::PermissionDenied);
        let request = issuer.request(bench.caller.workspace, texts).unwrap();
        assert_eq!(client.read_texts(request).await.unwrap_err().code(), Code::PermissionDenied);
        service.close().await;
    }
}
