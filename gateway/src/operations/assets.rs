//! Assets: of the token's workspace for programs; for people by id alone, which requires searching their workspaces.

use std::pin::pin;

use axum::body::Bytes;
use cairn_chassis::call::Call;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::auth::v1::{GetSessionRequest, Membership};
use cairn_proto::content::v1 as proto;
use cairn_proto::content::v1::download_asset_response::Part;
use cairn_proto::ids::{AssetId, WorkspaceId};
use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use tonic::{Status, Streaming};

use super::person::Person;
use super::{Context, Page, Paging, answered, present};
use crate::answers::Asset;
use crate::auth::TokenCache;
use crate::error;

/// How many workspaces of a person are asked concurrently.
pub(super) const CONCURRENT_WORKSPACES: usize = 8;

/// The metadata of the workspace's assets.
pub(crate) async fn list(context: &Context, paging: Paging) -> Result<Page<Asset>, Problem> {
    let request = context.call.request(proto::ListAssetsRequest {
        page_size: paging.limit.unwrap_or_default(),
        page_token: paging.cursor.unwrap_or_default(),
    });
    let listed = answered(context.upstreams.assets().list_assets(request).await)?;
    Ok(Page::read(listed.assets, listed.next_page_token, listed.total_size))
}

/// An asset of the workspace and its byte stream; a failure midway truncates the stream.
pub(crate) async fn open(
    context: &Context,
    id: AssetId,
) -> Result<(proto::Asset, impl Stream<Item = Result<Bytes, Status>> + Send + 'static), Problem> {
    let message = proto::DownloadAssetRequest { asset_id: id.to_string(), offset: 0, length: None };
    let request = context.call.request(message);
    let mut coming = answered(context.upstreams.assets().download_asset(request).await)?;
    let first = coming.message().await.map_err(|status| error::from_upstream(&status))?;
    let asset = first.and_then(|message| match message.part {
        Some(Part::Asset(asset)) => Some(asset),
        Some(Part::Bytes(_)) | None => None,
    });
    Ok((present(asset)?, bytes_of(coming)))
}

fn bytes_of(
    coming: Streaming<proto::DownloadAssetResponse>,
) -> impl Stream<Item = Result<Bytes, Status>> + Send + 'static {
    coming.try_filter_map(async |message| {
        Ok(match message.part {
            Some(Part::Bytes(bytes)) => Some(bytes),
            Some(Part::Asset(_)) | None => None,
        })
    })
}

/// An asset found in one of the person's workspaces, and a call with their role there.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) call: Call,
    pub(crate) asset: proto::Asset,
}

/// Finds an asset in the person's workspaces, or in the given ones. `session` is the session secret.
pub(crate) async fn find(
    person: &Person,
    tokens: &TokenCache,
    session: &str,
    named: Option<Vec<WorkspaceId>>,
    id: AssetId,
) -> Result<Found, Problem> {
    let workspaces = match named {
        Some(named) => named,
        None => workspaces_of(person).await?,
    };
    let asked = workspaces.into_iter().map(|workspace| find_in(person, tokens, session, workspace, id));
    let mut asked = pin!(stream::iter(asked).buffered(CONCURRENT_WORKSPACES));
    while let Some(found) = asked.try_next().await? {
        if let Some(found) = found {
            return Ok(found);
        }
    }
    Err(Problem::not_found(format!("no asset {id}")))
}

/// The person's workspaces, newest first: people mostly look for something in a recent one, and they are asked in
/// that order.
pub(super) async fn workspaces_of(person: &Person) -> Result<Vec<WorkspaceId>, Problem> {
    let request = person.call.request(GetSessionRequest {});
    let session = answered(person.upstreams.sessions().get_session(request).await)?;
    let id = |membership: Membership| membership.workspace.and_then(|workspace| workspace.id.parse().ok());
    let mut workspaces: Vec<WorkspaceId> = session.memberships.into_iter().filter_map(id).collect();
    // Ids are time-ordered.
    workspaces.sort_unstable_by_key(|id| std::cmp::Reverse(*id));
    Ok(workspaces)
}

/// `None` whether the person is no member or the asset does not exist: the two are indistinguishable.
async fn find_in(
    person: &Person,
    tokens: &TokenCache,
    session: &str,
    workspace: WorkspaceId,
    id: AssetId,
) -> Result<Option<Found>, Problem> {
    let is_unknown = |problem: &Problem| problem.reason == Reason::NotFound;
    let identity = match tokens.session_in(session, workspace, &person.call).await {
        Err(problem) if is_unknown(&problem) => return Ok(None),
        identity => identity?,
    };
    let call = person.call.clone().with_identity(&identity.signed);
    let request = call.request(proto::GetAssetRequest { asset_id: id.to_string() });
    match answered(person.upstreams.assets().get_asset(request).await) {
        Err(problem) if is_unknown(&problem) => Ok(None),
        answer => Ok(Some(Found { call, asset: present(answer?.asset)? })),
    }
}

/// The byte stream of the asset; a failure midway truncates it.
pub(crate) async fn download(
    person: &Person,
    found: &Found,
    offset: u64,
    length: u64,
) -> Result<impl Stream<Item = Result<Bytes, Status>> + Send + 'static, Problem> {
    let id = found.asset.id.clone();
    let message = proto::DownloadAssetRequest { asset_id: id, offset, length: Some(length) };
    let request = found.call.request(message);
    let mut coming = answered(person.upstreams.assets().download_asset(request).await)?;
    // The first message repeats the metadata.
    coming.message().await.map_err(|status| error::from_upstream(&status))?;
    Ok(bytes_of(coming))
}
