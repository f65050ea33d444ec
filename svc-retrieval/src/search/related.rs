//! Files similar to a given one, with the reasons (spec 4.12).

mod near;
mod shared;

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::call::Call;
use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::identity::Identity;
use cairn_chassis::status::{Problem, Violation};
use cairn_chassis::wording;
use cairn_index::StoredChunk;
use cairn_proto::content::v1::GetFileRequest;
use cairn_proto::content::v1::file_service_client::FileServiceClient;
use cairn_proto::document::v1::ConfirmedDocument;
use cairn_proto::domain::limits::RELATED;
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::WorkspaceId;
use cairn_proto::retrieval::v1::{GetRelatedFilesRequest, GetRelatedFilesResponse, RelatedFile};
use uuid::Uuid;

use self::near::Near;
use super::evidence::own_lines;
use super::request::{After, max_wait};
use super::tuning::RELATED_CONFIRMED_PER_ROUND;
use super::{Searcher, catch_up, citation, confirm};
use crate::error::Error;
use crate::generations::Generation;
use crate::kinds;

const DEFAULT_LIMIT: usize = 5;

/// A checked request for related files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RelatedRequest {
    /// As it was given, for errors.
    file_id: String,
    /// Files at most.
    limit: usize,
    after: Vec<After>,
    max_wait: Duration,
}

impl TryFrom<GetRelatedFilesRequest> for RelatedRequest {
    type Error = Error;

    fn try_from(request: GetRelatedFilesRequest) -> Result<Self, Error> {
        let limit = match usize::try_from(request.limit).unwrap_or(usize::MAX) {
            0 => DEFAULT_LIMIT,
            limit => limit,
        };
        if limit > RELATED {
            let message = wording::between(1, RELATED);
            return Err(Error::Invalid(vec![Violation::new("limit", "out_of_range", message)]));
        }
        let max_wait = max_wait(request.max_wait.as_ref());
        let after = request.after.into_iter().map(After::from).collect();
        Ok(Self { file_id: request.file_id, limit, after, max_wait })
    }
}

impl Searcher {
    /// The files nearest to a file that the caller may see, each confirmed by its owner for the caller's scope.
    ///
    /// # Errors
    /// NOT_FOUND or OUT_OF_SCOPE for the file itself, as its owner says; UNAVAILABLE when an owner cannot confirm.
    pub(crate) async fn related(
        &self,
        identity: &Identity,
        call: &Call,
        request: RelatedRequest,
    ) -> Result<GetRelatedFilesResponse, Error> {
        let workspace = identity.workspace_id()?;
        let generation = self.generations.current();
        let coverage = catch_up(&generation, workspace, &request.after, request.max_wait).await;
        let file = self.known_file(&generation, call, &request.file_id).await?;
        let containers = self.scope(identity, call).await?;
        let found = near::documents(generation.engine.as_ref(), workspace.0, containers, file).await?;
        let files = confirmed_files(&generation, workspace, call, &found, request.limit).await?;
        Ok(GetRelatedFilesResponse { files, coverage })
    }

    /// The id of a file that exists and that the caller may see.
    async fn known_file(&self, generation: &Generation, call: &Call, given: &str) -> Result<Uuid, Error> {
        let missing = || Problem::not_found(format!("there is no file {given}"));
        let id = Uuid::try_parse(given).map_err(|_| missing())?;
        let asked = std::iter::once((Kind::File, id));
        if confirm::confirm_documents(generation, call, asked).await?.get(id).is_some() {
            return Ok(id);
        }
        // The owner returns the right error: the file does not exist, or the caller may not see it.
        let mut files =
            FileServiceClient::new(self.content.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        let asked = GetFileRequest { file_id: id.hyphenated().to_string() };
        match files.get_file(call.request(asked)).await {
            Ok(_) => Err(missing().into()),
            Err(status) => Err(status.into()),
        }
    }
}

/// The nearest documents that are existing files in scope.
async fn confirmed_files(
    generation: &Generation,
    workspace: WorkspaceId,
    call: &Call,
    found: &[Near],
    limit: usize,
) -> Result<Vec<RelatedFile>, Error> {
    let mut files = Vec::new();
    for some in found.chunks(RELATED_CONFIRMED_PER_ROUND) {
        let ids = some.iter().flat_map(|near| [near.from, near.to]).collect();
        let chunks = confirm::stored(generation, workspace, ids).await?;
        let is_file = |chunk: &&StoredChunk| kinds::of_chunk(chunk) == Kind::File;
        let asked = chunks.iter().filter(is_file).map(|chunk| (Kind::File, chunk.id.document));
        let confirmed = confirm::confirm_documents(generation, call, asked).await?;
        let chunk_of = |id| chunks.iter().find(|chunk| chunk.id == id);
        let live = |chunk: &StoredChunk| {
            let document = confirmed.get(chunk.id.document)?;
            (document.content_hash == chunk.content_hash).then_some(Arc::clone(document))
        };
        for near in some {
            let (Some(from), Some(to)) = (chunk_of(near.from), chunk_of(near.to)) else { continue };
            let (Some(known), Some(document)) = (live(from), live(to)) else { continue };
            files.push(related_file(near, (from, known.as_ref()), (to, document.as_ref())));
            if files.len() == limit {
                return Ok(files);
            }
        }
    }
    Ok(files)
}

fn related_file(
    near: &Near,
    (from, known): (&StoredChunk, &ConfirmedDocument),
    (to, document): (&StoredChunk, &ConfirmedDocument),
) -> RelatedFile {
    RelatedFile {
        id: to.id.document.hyphenated().to_string(),
        name: document.title.clone(),
        path: document.path.clone(),
        folder_id: document.folder_id.clone(),
        score: f64::from(near.score()),
        whole_score: f64::from(near.whole),
        passage_score: f64::from(near.passage),
        from: Some(citation::of_chunk(from, known)),
        to: Some(citation::of_chunk(to, document)),
        content: own_lines(to).to_owned(),
        shared_words: shared::words(own_lines(from), own_lines(to)),
        updated_at: document.updated_at,
    }
}
