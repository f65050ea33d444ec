//! Which versions of a record this service wrote. Records have no content hash, so only the authors of their versions tell a write of
//! this service from somebody's edit.

use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::identity::PrincipalKind;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::content::v1::record_service_client::RecordServiceClient;
use cairn_proto::content::v1::{ListRecordVersionsRequest, RecordVersion};
use uuid::Uuid;

use super::{ContentSession, problem};
use crate::model::Step;
use crate::plan::States;

/// The principal id of this service in delegated identities.
const SERVICE: &str = "sync";
/// How many of the latest versions of a record are searched. A write with more edits on top of it is treated as somebody's, which leaves
/// the record as it is.
const MAX_VERSIONS: u32 = 100;

impl ContentSession {
    /// The states of the objects of steps, with the versions of records that this service wrote.
    pub(crate) async fn states_of(&self, steps: &[Step]) -> Result<States, Problem> {
        let mut states = self.states(steps.iter().map(|step| (step.kind, step.id))).await?;
        self.read_own_versions(steps, &mut states).await?;
        Ok(states)
    }

    /// Adds to the states which versions this service wrote of the records that these steps may have changed.
    pub(crate) async fn read_own_versions(&self, steps: &[Step], states: &mut States) -> Result<(), Problem> {
        for step in steps {
            let Some(state) = states.get_mut(&step.id) else { continue };
            // The versions of a trashed record cannot be listed.
            let is_changed = !state.in_trash && state.version > step.version;
            let Some(database) = state.parent.filter(|_| is_changed && step.changes_record()) else {
                continue;
            };
            state.own_versions = self.own_versions(database, step.id).await?;
        }
        Ok(())
    }

    async fn own_versions(&self, database: Uuid, record: Uuid) -> Result<Vec<u64>, Problem> {
        let request = self.request(ListRecordVersionsRequest {
            database_id: database.to_string(),
            record_id: record.to_string(),
            page_size: MAX_VERSIONS,
            page_token: String::new(),
        });
        let mut records =
            RecordServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        match records.list_record_versions(request).await.map_err(problem) {
            Ok(listed) => {
                let versions = listed.into_inner().versions;
                Ok(versions.iter().filter(|version| is_own(version)).map(|version| version.version).collect())
            }
            // Deleted since its state was read, or in a deleted database; or the page does not fit into a message. The write is
            // treated as somebody's, so that the run does not fail.
            Err(problem) if matches!(problem.reason, Reason::NotFound | Reason::PayloadTooLarge) => {
                Ok(Vec::new())
            }
            Err(problem) => Err(problem),
        }
    }
}

fn is_own(version: &RecordVersion) -> bool {
    let author = version.created_by.as_ref();
    author.is_some_and(|author| author.kind == PrincipalKind::Service.as_str() && author.id == SERVICE)
}
