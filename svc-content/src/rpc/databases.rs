//! `cairn.content.v1.DatabaseService`.

use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::identity::{Permission, Verifier};
use cairn_proto::content::v1::database_service_server::{DatabaseService, DatabaseServiceServer};
use cairn_proto::content::v1::{self as proto};
use cairn_proto::domain::Condition;
use tonic::{Request, Response, Status};

use super::filters::{decode_condition, decode_sort, encode_sort};
use super::{Mask, authorize, choosing_ids, patch};
use crate::databases::properties::{OptionDraft, PropertyDraft, PropertyPatch, SettingsDraft};
use crate::databases::schema::Placed;
use crate::databases::views::{ViewDraft, ViewPatch};
use crate::databases::{DatabaseDraft, DatabasePatch, Databases};
use crate::model::{
    Database, PAGES, PageRequest, Property, PropertySettings, PropertyType, View, ViewFilter,
};

const PROPERTY_MASK: [&str; 6] =
    ["name", "config", "config.options", "config.multiple", "config.relation_database_id", "position"];

type Answer<T> = Result<Response<T>, Status>;

pub(crate) fn server(databases: Databases, verifier: Verifier) -> DatabaseServiceServer<Rpc> {
    DatabaseServiceServer::new(Rpc { databases, verifier })
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

#[derive(Debug)]
pub(crate) struct Rpc {
    databases: Databases,
    verifier: Verifier,
}

#[tonic::async_trait]
impl DatabaseService for Rpc {
    async fn create_database(
        &self,
        request: Request<proto::CreateDatabaseRequest>,
    ) -> Answer<proto::CreateDatabaseResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        choosing_ids(&self.verifier, request.metadata(), request.get_ref().new_id.as_deref()).await?;
        let proto::CreateDatabaseRequest { name, description, icon, folder_id, new_id } =
            request.into_inner();
        let draft = DatabaseDraft { name, description, icon, folder_id, new_id };
        let written = self.databases.create(&caller, draft).await?;
        let database = Some(encode(written.item));
        Ok(Response::new(proto::CreateDatabaseResponse { database, change_position: written.position }))
    }

    async fn get_database(
        &self,
        request: Request<proto::GetDatabaseRequest>,
    ) -> Answer<proto::GetDatabaseResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let database = self.databases.get(&caller, &request.get_ref().database_id).await?;
        Ok(Response::new(proto::GetDatabaseResponse { database: Some(encode(database)) }))
    }

    async fn list_databases(
        &self,
        request: Request<proto::ListDatabasesRequest>,
    ) -> Answer<proto::ListDatabasesResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let asked = request.into_inner();
        let ask = PageRequest::new(PAGES, asked.page_size, &asked.page_token)?;
        let page = self.databases.list(&caller, asked.folder_id.as_deref(), ask).await?;
        Ok(Response::new(proto::ListDatabasesResponse {
            databases: page.items.into_iter().map(encode).collect(),
            next_page_token: page.next,
            total_size: page.total,
        }))
    }

    async fn list_trashed_databases(
        &self,
        request: Request<proto::ListTrashedDatabasesRequest>,
    ) -> Answer<proto::ListTrashedDatabasesResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let asked = request.into_inner();
        let page = self
            .databases
            .list_trashed(&caller, PageRequest::new(PAGES, asked.page_size, &asked.page_token)?)
            .await?;
        Ok(Response::new(proto::ListTrashedDatabasesResponse {
            databases: page.items.into_iter().map(encode).collect(),
            next_page_token: page.next,
            total_size: page.total,
        }))
    }

    async fn update_database(
        &self,
        request: Request<proto::UpdateDatabaseRequest>,
    ) -> Answer<proto::UpdateDatabaseResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let (id, patch) = decode_patch(request.into_inner());
        let written = self.databases.update(&caller, &id, patch).await?;
        let database = Some(encode(written.item));
        Ok(Response::new(proto::UpdateDatabaseResponse { database, change_position: written.position }))
    }

    async fn delete_database(
        &self,
        request: Request<proto::DeleteDatabaseRequest>,
    ) -> Answer<proto::DeleteDatabaseResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Delete).await?;
        let change_position = self.databases.delete(&caller, &request.get_ref().database_id).await?;
        Ok(Response::new(proto::DeleteDatabaseResponse { change_position }))
    }

    async fn restore_database(
        &self,
        request: Request<proto::RestoreDatabaseRequest>,
    ) -> Answer<proto::RestoreDatabaseResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Delete).await?;
        let written = self.databases.restore(&caller, &request.get_ref().database_id).await?;
        let database = Some(encode(written.item));
        Ok(Response::new(proto::RestoreDatabaseResponse { database, change_position: written.position }))
    }

    async fn purge_database(
        &self,
        request: Request<proto::PurgeDatabaseRequest>,
    ) -> Answer<proto::PurgeDatabaseResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Delete).await?;
        let change_position = self.databases.purge(&caller, &request.get_ref().database_id).await?;
        Ok(Response::new(proto::PurgeDatabaseResponse { change_position }))
    }

    async fn create_property(
        &self,
        request: Request<proto::CreatePropertyRequest>,
    ) -> Answer<proto::CreatePropertyResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let asked = request.into_inner();
        let kind = PropertyType::from_number(asked.r#type);
        let draft = PropertyDraft { name: asked.name, kind, config: asked.config.map(decode_settings) };
        let written = self.databases.create_property(&caller, &asked.database_id, draft).await?;
        let property = Some(encode_property(written.item));
        Ok(Response::new(proto::CreatePropertyResponse { property, change_position: written.position }))
    }

    async fn update_property(
        &self,
        request: Request<proto::UpdatePropertyRequest>,
    ) -> Answer<proto::UpdatePropertyResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let asked = request.into_inner();
        let (database, property) = (asked.database_id.clone(), asked.property_id.clone());
        let patch = decode_property_patch(asked);
        let written = self.databases.update_property(&caller, &database, &property, patch).await?;
        let property = Some(encode_property(written.item));
        Ok(Response::new(proto::UpdatePropertyResponse { property, change_position: written.position }))
    }

    async fn delete_property(
        &self,
        request: Request<proto::DeletePropertyRequest>,
    ) -> Answer<proto::DeletePropertyResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let asked = request.into_inner();
        let change_position =
            self.databases.delete_property(&caller, &asked.database_id, &asked.property_id).await?;
        Ok(Response::new(proto::DeletePropertyResponse { change_position }))
    }

    async fn create_view(
        &self,
        request: Request<proto::CreateViewRequest>,
    ) -> Answer<proto::CreateViewResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let asked = request.into_inner();
        let draft = ViewDraft {
            name: asked.name,
            filters: asked.filters.into_iter().map(decode_condition).collect(),
            sorts: asked.sorts.into_iter().map(decode_sort).collect(),
            hidden_field_ids: asked.hidden_field_ids,
        };
        let written = self.databases.create_view(&caller, &asked.database_id, draft).await?;
        let view = Some(encode_view(written.item));
        Ok(Response::new(proto::CreateViewResponse { view, change_position: written.position }))
    }

    async fn update_view(
        &self,
        request: Request<proto::UpdateViewRequest>,
    ) -> Answer<proto::UpdateViewResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let asked = request.into_inner();
        let (database, view) = (asked.database_id.clone(), asked.view_id.clone());
        let written = self.databases.update_view(&caller, &database, &view, decode_view_patch(asked)).await?;
        let view = Some(encode_view(written.item));
        Ok(Response::new(proto::UpdateViewResponse { view, change_position: written.position }))
    }

    async fn delete_view(
        &self,
        request: Request<proto::DeleteViewRequest>,
    ) -> Answer<proto::DeleteViewResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let asked = request.into_inner();
        let change_position = self.databases.delete_view(&caller, &asked.database_id, &asked.view_id).await?;
        Ok(Response::new(proto::DeleteViewResponse { change_position }))
    }
}

fn decode_patch(request: proto::UpdateDatabaseRequest) -> (String, DatabasePatch) {
    (request.database_id, patch!(request => DatabasePatch { name, description, icon, folder_id }))
}

fn decode_property_patch(request: proto::UpdatePropertyRequest) -> PropertyPatch {
    let mut asked = request.update_mask.unwrap_or_default();
    let names_type = asked.paths.iter().any(|path| path == "type");
    // It has an error message of its own.
    asked.paths.retain(|path| path != "type");
    let mask = Mask::read(Some(asked), &PROPERTY_MASK);
    let given = request.config.unwrap_or_default();
    // An empty field was not given, unless the mask names it.
    let has_config = |field, is_given: bool| mask.names(field) || (mask.names("config") && is_given);
    let (has_options, has_multiple) = (!given.options.is_empty(), given.multiple);
    let config = SettingsDraft {
        options: has_config("config.options", has_options)
            .then(|| given.options.into_iter().map(decode_option).collect()),
        multiple: has_config("config.multiple", has_multiple).then_some(given.multiple),
        relation_database_id: given
            .relation_database_id
            .filter(|_| has_config("config.relation_database_id", true)),
    };
    PropertyPatch {
        name: mask.names("name").then_some(request.name),
        config: mask.named.iter().any(|field| field.starts_with("config")).then_some(config),
        position: mask.names("position").then_some(request.position),
        names_type,
        unknown_fields: mask.unknown,
    }
}

fn decode_view_patch(request: proto::UpdateViewRequest) -> ViewPatch {
    patch!(request => ViewPatch { name, filters: decode_condition, sorts: decode_sort, hidden_field_ids, position })
}

fn decode_option(option: proto::PropertyOption) -> OptionDraft {
    OptionDraft { id: option.id, name: option.name, color: option.color }
}

fn decode_settings(config: proto::PropertyConfig) -> SettingsDraft {
    SettingsDraft {
        options: Some(config.options.into_iter().map(decode_option).collect()),
        multiple: Some(config.multiple),
        relation_database_id: config.relation_database_id,
    }
}

fn encode_settings(config: PropertySettings) -> proto::PropertyConfig {
    let options = config.options.into_iter().map(|option| proto::PropertyOption {
        id: option.id,
        name: option.name,
        color: Some(option.color).filter(|color| !color.is_empty()),
    });
    proto::PropertyConfig {
        options: options.collect(),
        multiple: config.multiple,
        relation_database_id: config.relation_database_id.map(|id| id.to_string()),
    }
}

fn encode_property(placed: Placed<Property>) -> proto::Property {
    let property = placed.item;
    proto::Property {
        id: property.id.to_string(),
        name: property.name,
        r#type: property.kind.into(),
        is_primary: property.is_primary,
        position: u32::try_from(placed.position).unwrap_or(u32::MAX),
        config: Some(encode_settings(property.config)),
    }
}

/// In their order.
pub(super) fn encode_properties(properties: Vec<Property>) -> Vec<proto::Property> {
    let placed = properties.into_iter().enumerate();
    placed.map(|(position, item)| encode_property(Placed { item, position })).collect()
}

fn encode_view(placed: Placed<View>) -> proto::View {
    let view = placed.item;
    let filter = |filter: ViewFilter| proto::Condition::from(Condition::from(filter));
    proto::View {
        id: view.id.to_string(),
        name: view.name,
        filters: view.filters.into_iter().map(filter).collect(),
        sorts: view.sorts.into_iter().map(encode_sort).collect(),
        hidden_field_ids: view.hidden_field_ids.iter().map(ToString::to_string).collect(),
        position: u32::try_from(placed.position).unwrap_or(u32::MAX),
        is_default: view.is_default,
    }
}

pub(super) fn encode(database: Database) -> proto::Database {
    let views = database.views.into_iter().enumerate();
    proto::Database {
        id: database.id.to_string(),
        workspace_id: database.workspace_id.to_string(),
        folder_id: database.folder_id.map(|id| id.to_string()),
        name: database.name,
        description: database.description,
        icon: database.icon,
        properties: encode_properties(database.properties),
        views: views.map(|(position, item)| encode_view(Placed { item, position })).collect(),
        record_count: database.record_count,
        created_at: Some(database.created_at.to_proto()),
        updated_at: Some(database.updated_at.to_proto()),
        deleted_at: database.deleted_at.map(|at| at.to_proto()),
    }
}
