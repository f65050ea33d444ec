//! The services behind the gateway, and their clients with the mesh's message limit.

use cairn_chassis::channel::{MAX_MESSAGE_BYTES, ServiceChannel};
use cairn_proto::auth::v1::feedback_service_client::FeedbackServiceClient;
use cairn_proto::auth::v1::grant_service_client::GrantServiceClient;
use cairn_proto::auth::v1::invitation_service_client::InvitationServiceClient;
use cairn_proto::auth::v1::member_service_client::MemberServiceClient;
use cairn_proto::auth::v1::oauth_service_client::OauthServiceClient;
use cairn_proto::auth::v1::oidc_service_client::OidcServiceClient;
use cairn_proto::auth::v1::session_service_client::SessionServiceClient;
use cairn_proto::auth::v1::token_service_client::TokenServiceClient;
use cairn_proto::auth::v1::workspace_service_client::WorkspaceServiceClient;
use cairn_proto::content::v1::activity_service_client::ActivityServiceClient;
use cairn_proto::content::v1::asset_service_client::AssetServiceClient;
use cairn_proto::content::v1::batch_service_client::BatchServiceClient;
use cairn_proto::content::v1::database_service_client::DatabaseServiceClient;
use cairn_proto::content::v1::file_service_client::FileServiceClient;
use cairn_proto::content::v1::file_version_service_client::FileVersionServiceClient;
use cairn_proto::content::v1::folder_service_client::FolderServiceClient;
use cairn_proto::content::v1::location_service_client::LocationServiceClient;
use cairn_proto::content::v1::memory_service_client::MemoryServiceClient;
use cairn_proto::content::v1::name_service_client::NameServiceClient;
use cairn_proto::content::v1::overview_service_client::OverviewServiceClient;
use cairn_proto::content::v1::record_service_client::RecordServiceClient;
use cairn_proto::content::v1::trash_service_client::TrashServiceClient;
use cairn_proto::content::v1::usage_service_client::UsageServiceClient;
use cairn_proto::feed::v1::change_service_client::ChangeServiceClient;
use cairn_proto::feed::v1::feed_service_client::FeedServiceClient;
use cairn_proto::ingest::v1::ingest_service_client::IngestServiceClient;
use cairn_proto::ingest::v1::location_service_client::LocationServiceClient as DocumentLocationServiceClient;
use cairn_proto::ingest::v1::source_service_client::SourceServiceClient;
use cairn_proto::ingest::v1::webhook_service_client::WebhookServiceClient;
use cairn_proto::retrieval::v1::analytics_service_client::AnalyticsServiceClient;
use cairn_proto::retrieval::v1::browse_service_client::BrowseServiceClient;
use cairn_proto::retrieval::v1::golden_service_client::GoldenServiceClient;
use cairn_proto::retrieval::v1::index_service_client::IndexServiceClient;
use cairn_proto::retrieval::v1::question_service_client::QuestionServiceClient;
use cairn_proto::retrieval::v1::related_service_client::RelatedServiceClient;
use cairn_proto::retrieval::v1::search_service_client::SearchServiceClient;
use cairn_proto::sync::v1::import_service_client::ImportServiceClient;
use cairn_proto::sync::v1::sync_service_client::SyncServiceClient;

/// Channels to the services of the mesh.
#[derive(Debug, Clone)]
pub struct Upstreams {
    /// svc-auth.
    pub auth: ServiceChannel,
    /// svc-content.
    pub content: ServiceChannel,
    /// svc-ingest.
    pub ingest: ServiceChannel,
    /// svc-retrieval.
    pub retrieval: ServiceChannel,
    /// svc-sync.
    pub sync: ServiceChannel,
    /// svc-content again, over a channel that authenticates as a service: its feed is for services only.
    pub content_feed: ServiceChannel,
    /// svc-ingest, likewise.
    pub ingest_feed: ServiceChannel,
}

macro_rules! clients {
    ($($method:ident: $client:ident on $channel:ident),+ $(,)?) => {
        impl Upstreams {
            $(
                pub(crate) fn $method(&self) -> $client<ServiceChannel> {
                    $client::new(self.$channel.clone())
                        .max_decoding_message_size(MAX_MESSAGE_BYTES)
                }
            )+
        }
    };
}

clients!(
    tokens: TokenServiceClient on auth,
    sessions: SessionServiceClient on auth,
    workspaces: WorkspaceServiceClient on auth,
    oauth: OauthServiceClient on auth,
    oidc: OidcServiceClient on auth,
    grants: GrantServiceClient on auth,
    feedback: FeedbackServiceClient on auth,
    members: MemberServiceClient on auth,
    invitations: InvitationServiceClient on auth,
    activity: ActivityServiceClient on content,
    assets: AssetServiceClient on content,
    batches: BatchServiceClient on content,
    databases: DatabaseServiceClient on content,
    records: RecordServiceClient on content,
    files: FileServiceClient on content,
    file_versions: FileVersionServiceClient on content,
    folders: FolderServiceClient on content,
    locations: LocationServiceClient on content,
    memories: MemoryServiceClient on content,
    names: NameServiceClient on content,
    trash: TrashServiceClient on content,
    overviews: OverviewServiceClient on content,
    usage: UsageServiceClient on content,
    ingest_documents: IngestServiceClient on ingest,
    document_locations: DocumentLocationServiceClient on ingest,
    sources: SourceServiceClient on ingest,
    webhooks: WebhookServiceClient on ingest,
    syncs: SyncServiceClient on sync,
    imports: ImportServiceClient on sync,
    search: SearchServiceClient on retrieval,
    browse: BrowseServiceClient on retrieval,
    related: RelatedServiceClient on retrieval,
    index: IndexServiceClient on retrieval,
    golden: GoldenServiceClient on retrieval,
    analytics: AnalyticsServiceClient on retrieval,
    questions: QuestionServiceClient on retrieval,
    seen_content: ChangeServiceClient on content,
    seen_ingest: ChangeServiceClient on ingest,
    content_changes: FeedServiceClient on content_feed,
    ingest_changes: FeedServiceClient on ingest_feed,
);

impl Upstreams {
    /// Every service by name, in a fixed order.
    pub(crate) fn named(&self) -> [(&'static str, &ServiceChannel); 5] {
        [
            ("auth", &self.auth),
            ("content", &self.content),
            ("ingest", &self.ingest),
            ("retrieval", &self.retrieval),
            ("sync", &self.sync),
        ]
    }
}
