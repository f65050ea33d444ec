//! Databases and assets, which take a call each. The calls are idempotent: a retry finds what exists.

use cairn_chassis::channel::{MAX_MESSAGE_BYTES, ServiceChannel};
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::content::v1::asset_service_client::AssetServiceClient;
use cairn_proto::content::v1::database_service_client::DatabaseServiceClient;
use cairn_proto::content::v1::{self as proto};
use cairn_proto::domain::PropertyType;
use prost_types::FieldMask;
use uuid::Uuid;

use super::{BatchOutcome, ContentSession, Payload, Property, Work, problem};
use crate::model::{Kind, Step, Write};

impl ContentSession {
    fn databases(&self) -> DatabaseServiceClient<ServiceChannel> {
        DatabaseServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// Executes steps one by one; those that were done before are skipped.
    pub(super) async fn write_tables(&self, work: &mut [Work]) -> Result<BatchOutcome, Problem> {
        let mut refused = Vec::new();
        for (place, (step, payload)) in work.iter_mut().enumerate() {
            match self.write_one(step, payload).await {
                Ok(version) => step.after = version.or(step.after),
                Err(problem) => {
                    let (code, message) = refusal(problem)?;
                    refused.push((place, code.to_owned(), message));
                }
            }
        }
        if refused.is_empty() { Ok(BatchOutcome::Done) } else { Ok(BatchOutcome::Refused(refused)) }
    }

    /// Executes a step; returns the version after it, if there is one.
    async fn write_one(&self, step: &Step, payload: &Payload) -> Result<Option<u64>, Problem> {
        match (step.kind, &step.write) {
            // Done by an attempt in which another step of the batch was refused.
            (_, _) if step.after.is_some() => Ok(step.after),
            (Kind::Database, Write::Create { name, folder, .. }) => {
                self.make_database(step.id, name, *folder).await?;
                self.complete(step.id, payload).await.map(Some)
            }
            (Kind::Database, Write::Update | Write::Relate) => {
                self.complete(step.id, payload).await.map(Some)
            }
            (Kind::Database, Write::Trash) => {
                let database_id = step.id.to_string();
                let request = self.request(proto::DeleteDatabaseRequest { database_id });
                gone(self.databases().delete_database(request).await.map(drop).map_err(problem))
            }
            (Kind::Asset, Write::Trash) => {
                let mut assets = AssetServiceClient::new(self.channel.clone());
                let request = self.request(proto::DeleteAssetRequest { asset_id: step.id.to_string() });
                gone(assets.delete_asset(request).await.map(drop).map_err(problem))
            }
            _ => Ok(None),
        }
    }

    async fn make_database(&self, id: Uuid, name: &str, folder: Option<Uuid>) -> Result<(), Problem> {
        let database_id = id.to_string();
        let get = self.request(proto::GetDatabaseRequest { database_id: database_id.clone() });
        match self.databases().get_database(get).await.map(drop).map_err(problem) {
            Err(problem) if problem.reason == Reason::NotFound => {}
            found => return found,
        }
        let request = self.request(proto::CreateDatabaseRequest {
            name: name.to_owned(),
            folder_id: folder.map(|id| id.to_string()),
            new_id: Some(database_id),
            ..Default::default()
        });
        self.databases().create_database(request).await.map(drop).map_err(problem)
    }

    /// Adds the properties that a database lacks, and the options that its selects lack; returns its version.
    async fn complete(&self, id: Uuid, payload: &Payload) -> Result<u64, Problem> {
        let Payload::Schema(properties) = payload else { return self.version_of(id).await };
        let database_id = id.to_string();
        let get = self.request(proto::GetDatabaseRequest { database_id: database_id.clone() });
        let found = self.databases().get_database(get).await.map_err(problem)?.into_inner();
        let there = found.database.map(|database| database.properties).unwrap_or_default();
        let is_new = found_is_new(&there);
        for (place, property) in properties.iter().enumerate() {
            let known = there.iter().find(|one| one.name == property.name);
            let primary = there.iter().find(|one| one.is_primary).filter(|_| place == 0 && is_new);
            match (known, primary) {
                (Some(known), _) => self.add_options(&database_id, known, property).await?,
                (None, Some(primary)) => self.rename(&database_id, &primary.id, &property.name).await?,
                (None, None) => self.add_property(&database_id, property).await?,
            }
        }
        self.version_of(id).await
    }

    async fn add_property(&self, database_id: &str, property: &Property) -> Result<(), Problem> {
        let option = |name: &String| proto::PropertyOption { name: name.clone(), ..Default::default() };
        let request = self.request(proto::CreatePropertyRequest {
            database_id: database_id.to_owned(),
            name: property.name.clone(),
            r#type: property.kind.into(),
            config: Some(proto::PropertyConfig {
                options: property.options.iter().map(option).collect(),
                multiple: property.kind == PropertyType::AssetReference,
                relation_database_id: property.relation.map(|id| id.to_string()),
            }),
        });
        self.databases().create_property(request).await.map(drop).map_err(problem)
    }

    async fn add_options(
        &self,
        database_id: &str,
        known: &proto::Property,
        wanted: &Property,
    ) -> Result<(), Problem> {
        let mut options = known.config.clone().unwrap_or_default().options;
        let before = options.len();
        for name in &wanted.options {
            let folded = name.to_lowercase();
            if !options.iter().any(|option| option.name.to_lowercase() == folded) {
                options.push(proto::PropertyOption { name: name.clone(), ..Default::default() });
            }
        }
        if options.len() == before || known.r#type != i32::from(wanted.kind) {
            return Ok(());
        }
        let request = self.request(proto::UpdatePropertyRequest {
            database_id: database_id.to_owned(),
            property_id: known.id.clone(),
            config: Some(proto::PropertyConfig { options, ..Default::default() }),
            update_mask: Some(FieldMask { paths: vec!["config.options".to_owned()] }),
            ..Default::default()
        });
        self.databases().update_property(request).await.map(drop).map_err(problem)
    }

    async fn rename(&self, database_id: &str, property_id: &str, name: &str) -> Result<(), Problem> {
        let request = self.request(proto::UpdatePropertyRequest {
            database_id: database_id.to_owned(),
            property_id: property_id.to_owned(),
            name: name.to_owned(),
            update_mask: Some(FieldMask { paths: vec!["name".to_owned()] }),
            ..Default::default()
        });
        self.databases().update_property(request).await.map(drop).map_err(problem)
    }

    async fn version_of(&self, id: Uuid) -> Result<u64, Problem> {
        let states = self.states([(Kind::Database, id)]).await?;
        Ok(states.get(&id).map_or(0, |state| state.version))
    }
}

/// Whether a database has only the properties that it is created with.
fn found_is_new(properties: &[proto::Property]) -> bool {
    matches!(properties, [only] if only.is_primary)
}

/// Treats the removal of something that no longer exists as a success.
fn gone(done: Result<(), Problem>) -> Result<Option<u64>, Problem> {
    match done {
        Err(problem) if problem.reason != Reason::NotFound => Err(problem),
        Ok(()) | Err(_) => Ok(None),
    }
}

/// The code and message of a refusal of one step; any other problem ends the batch.
pub(super) fn refusal(problem: Problem) -> Result<(&'static str, String), Problem> {
    let known = [
        (Reason::ValidationError, "invalid"),
        (Reason::NotFound, "not_found"),
        (Reason::VersionConflict, "version_conflict"),
        (Reason::PayloadTooLarge, "too_large"),
    ];
    let Some((_, code)) = known.into_iter().find(|(reason, _)| *reason == problem.reason) else {
        return Err(problem);
    };
    let said =
        problem.violations.first().map(|violation| format!("{}: {}", violation.path, violation.message));
    Ok((code, said.unwrap_or(problem.message)))
}
