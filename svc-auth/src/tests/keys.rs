use cairn_chassis::identity::{RemoteKeys, ServiceIdentitySource, Verifier};
use cairn_proto::auth::v1::key_service_client::KeyServiceClient;
use cairn_proto::auth::v1::{IssueServiceIdentityRequest, IssueServiceIdentityResponse, ListKeysRequest};
use tokio::task::JoinSet;

use super::*;

impl World {
    async fn issue(&self, service: &str, mesh_secret: &str) -> Result<IssueServiceIdentityResponse, Status> {
        let (service, mesh_secret) = (service.to_owned(), mesh_secret.to_owned());
        let request = Request::new(IssueServiceIdentityRequest { service, mesh_secret });
        Ok(KeyServiceClient::new(self.channel.clone()).issue_service_identity(request).await?.into_inner())
    }
}

#[tokio::test]
async fn services_of_the_mesh_get_an_identity_and_strangers_none() {
    for world in worlds().await {
        let issued = world.issue("retrieval", MESH_SECRET).await.unwrap();
        let identity = world.read(&issued.identity).await.unwrap();
        identity.require_service().unwrap();
        assert_eq!(identity.principal.id, "retrieval");
        assert_eq!(identity.expires_at, world.clock.now().plus(5 * MINUTE));

        for wrong in ["", "a mesh secret for test", "a mesh secret for tests "] {
            assert_eq!(reason(world.issue("retrieval", wrong).await), Reason::Unauthorized, "{wrong}");
        }
        for odd in ["", "Retrieval", "a b", &"x".repeat(41)] {
            assert_eq!(broken(world.issue(odd, MESH_SECRET).await)[0].0, "service", "{odd}");
        }
    }
}

#[tokio::test]
async fn other_processes_check_identities_over_a_channel() {
    for world in worlds().await {
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&world.clock);
        let verifier = Verifier::new(Arc::new(RemoteKeys(world.channel.clone())), Arc::clone(&clock));
        let source =
            ServiceIdentitySource::new("content", MESH_SECRET.to_owned(), world.channel.clone(), clock);
        let signed = source.identity().await.unwrap();
        let mut metadata = MetadataMap::new();
        metadata.insert("authorization", format!("Bearer {signed}").parse().unwrap());
        let identity = verifier.authenticate(&metadata).await.unwrap();
        assert_eq!(identity.principal.id, "content", "{}", world.engine);

        let keys =
            KeyServiceClient::new(world.channel.clone()).list_keys(Request::new(ListKeysRequest {})).await;
        let keys = keys.unwrap().into_inner().keys;
        assert_eq!(keys.len(), 1);
        assert_eq!(keys[0].public_key.len(), 32);
    }
}

#[tokio::test]
async fn processes_that_start_together_and_later_ones_sign_with_one_key() {
    for storage in engines().await {
        let clock = clock();
        // The tables first: SQLite belongs to one process, and only its tables are made by the first opening.
        let opened = storage.open(store::SERVICE, store::MIGRATIONS).await.unwrap();
        let mut starts = JoinSet::new();
        for _ in 0..8 {
            let (config, clock) = (config(&storage), Arc::<ManualClock>::clone(&clock));
            starts.spawn(async move { Service::open(config, clock, Arc::new(OsEntropy)).await.unwrap() });
        }
        let services = starts.join_all().await;
        let keys = store::keys::list_public(&opened).await.unwrap();
        assert_eq!(keys.len(), 1, "{}", storage.engine);

        let later = open(&storage, &clock).await.unwrap();
        for service in services {
            let issued = service.service_identities.issue("sync", MESH_SECRET).unwrap();
            let mut metadata = MetadataMap::new();
            metadata.insert("authorization", format!("Bearer {}", issued.identity).parse().unwrap());
            later.ambient().verifier.authenticate(&metadata).await.unwrap();
        }
    }
}
