//! Memories over the generated client: permissions, and callers without an identity.

use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::identity::Permission;
use cairn_chassis::server;
use cairn_chassis::status::{Problem, Reason};
use cairn_chassis::testing::identity::Issuer;
use cairn_proto::content::v1 as proto;
use cairn_proto::content::v1::memory_service_client::MemoryServiceClient;
use tonic::{Request, Status};

use super::*;
use crate::service::{ACCESS, SERVICE_NAMES, Service};

fn reason(status: &Status) -> Reason {
    Problem::from_status(status).reason
}

#[tokio::test]
async fn permissions_and_identities_are_checked_here() {
    for test in engines().await {
        let issuer = Issuer::new().unwrap();
        let service = Service::open(config(&test), issuer.ambient()).await.unwrap();
        let verifier = issuer.ambient().verifier;
        let composed = server::compose(service.routes(), SERVICE_NAMES, &[ACCESS], &verifier).await.unwrap();
        let mut memories = MemoryServiceClient::new(ServiceChannel::local(composed.routes));
        let workspace = caller(1).workspace;
        let create = proto::CreateMemoryRequest { name: "M".into(), is_public: true, ..Default::default() };
        let made = memories.create_memory(issuer.request(workspace, create.clone()).unwrap()).await.unwrap();
        let memory = made.into_inner().memory.unwrap();
        assert_eq!((memory.slug.as_str(), memory.version), ("m", 1), "{}", test.engine);

        let as_with = |permissions: &[Permission]| issuer.token(workspace, permissions, Scope::All);
        let (nobody, reader) = (as_with(&[]), as_with(&[Permission::Read]));
        let writer = as_with(&[Permission::Write]);
        macro_rules! refused {
            ($method:ident, $identity:expr, $message:expr) => {
                let request = issuer.request_as($identity, $message).unwrap();
                assert_eq!(reason(&memories.$method(request).await.unwrap_err()), Reason::Forbidden);
            };
        }
        let removal = proto::UpdateMemoryRequest {
            memory: "m".into(),
            remove_member_ids: vec![missing_file()],
            ..Default::default()
        };
        refused!(create_memory, &reader, create);
        refused!(list_memories, &nobody, proto::ListMemoriesRequest::default());
        refused!(resolve_memory, &writer, proto::ResolveMemoryRequest::default());
        refused!(export_memory, &writer, proto::ExportMemoryRequest::default());
        refused!(update_memory, &reader, proto::UpdateMemoryRequest::default());
        refused!(update_memory, &writer, removal);
        refused!(delete_memory, &writer, proto::DeleteMemoryRequest::default());
        refused!(add_members, &reader, proto::AddMembersRequest::default());
        refused!(move_member, &reader, proto::MoveMemberRequest::default());
        refused!(remove_member, &writer, proto::RemoveMemberRequest::default());

        let export = |named: &str, workspace_id: Option<String>| {
            Request::new(proto::ExportMemoryRequest { memory: named.to_owned(), workspace_id })
        };
        for asked in [export(&memory.id, None), export("m", Some(workspace.to_string()))] {
            let found = memories.export_memory(asked).await.unwrap().into_inner().memory.unwrap();
            assert_eq!(found.memory.unwrap().id, memory.id);
        }
        let unknown = memories.export_memory(export("m", None)).await.unwrap_err();
        assert_eq!(reason(&unknown), Reason::NotFound);
        let mut forged = export(&memory.id, None);
        forged.metadata_mut().insert("authorization", "Bearer x.y.z".parse().unwrap());
        assert_eq!(reason(&memories.export_memory(forged).await.unwrap_err()), Reason::Unauthorized);
        let resolve = Request::new(proto::ResolveMemoryRequest { memory: memory.id, when: None });
        assert_eq!(reason(&memories.resolve_memory(resolve).await.unwrap_err()), Reason::Unauthorized);
    }
}
