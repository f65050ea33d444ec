//! `cairn.content.v1.RecordService`.

use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::identity::{Permission, Verifier};
use cairn_proto::content::v1::record_service_server::{RecordService, RecordServiceServer};
use cairn_proto::content::v1::{self as proto};
use cairn_proto::domain::{DateUnit, GroupOrder};
use serde_json::Value;
use tonic::{Request, Response, Status};

use super::databases::encode as encode_database;
use super::filters::{decode_filter, decode_sort};
use super::{Mask, authorize, choosing_ids};
use crate::databases::DatabaseDraft;
use crate::model::{Listed, PAGES, PageRequest, PropertyType, RecordVersion};
use crate::records::{
    Backlink, DatabaseFromTable, FieldChoice, Imported, PropertyNames, RecordDraft, RecordGroup,
    RecordGroups, RecordGroupsRequest, RecordListRequest, Records, RowProblem, Summary, TableDraft,
    TableField, TableImport, VisibleRecord,
};

type Answer<T> = Result<Response<T>, Status>;

pub(crate) fn server(records: Records, verifier: Verifier) -> RecordServiceServer<Rpc> {
    RecordServiceServer::new(Rpc { records, verifier })
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

#[derive(Debug)]
pub(crate) struct Rpc {
    records: Records,
    verifier: Verifier,
}

#[tonic::async_trait]
impl RecordService for Rpc {
    async fn create_record(
        &self,
        request: Request<proto::CreateRecordRequest>,
    ) -> Answer<proto::CreateRecordResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        choosing_ids(&self.verifier, request.metadata(), request.get_ref().new_id.as_deref()).await?;
        let (database_id, draft) = decode_draft(request.into_inner());
        let allow_names = draft.allow_names;
        let mut written = self.records.create(&caller, &database_id, draft).await?;
        let property_names = names(&mut written.item, allow_names);
        let (record, change_position) = (Some(encode(written.item)), written.position);
        Ok(Response::new(proto::CreateRecordResponse { record, change_position, property_names }))
    }

    async fn import_records(
        &self,
        request: Request<proto::ImportRecordsRequest>,
    ) -> Answer<proto::ImportRecordsResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let asked = request.into_inner();
        let columns = asked.columns.into_iter().map(|column| (column.index, column.property_id)).collect();
        let draft = TableDraft { csv: asked.csv.into(), columns, dry_run: asked.dry_run };
        let imported = self.records.import(&caller, &asked.database_id, &draft).await?;
        Ok(Response::new(encode_imported(imported)))
    }

    async fn create_database_of_table(
        &self,
        request: Request<proto::CreateDatabaseOfTableRequest>,
    ) -> Answer<proto::CreateDatabaseOfTableResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let asked = request.into_inner();
        let database = DatabaseDraft {
            name: asked.name,
            description: asked.description,
            icon: None,
            folder_id: asked.folder_id,
            new_id: None,
        };
        let fields = asked.fields.into_iter().map(decode_choice).collect();
        let draft = DatabaseFromTable { database, csv: asked.csv.into(), fields, dry_run: asked.dry_run };
        Ok(Response::new(encode_made(self.records.create_database(&caller, draft).await?)))
    }

    async fn get_record(
        &self,
        request: Request<proto::GetRecordRequest>,
    ) -> Answer<proto::GetRecordResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let asked = request.into_inner();
        let record = self.records.get(&caller, &asked.database_id, &asked.record_id).await?;
        Ok(Response::new(proto::GetRecordResponse { record: Some(encode(record)) }))
    }

    async fn list_records(
        &self,
        request: Request<proto::ListRecordsRequest>,
    ) -> Answer<proto::ListRecordsResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let (database_id, ask) = decode_list(request.into_inner());
        let listed = self.records.list(&caller, &database_id, ask).await?;
        Ok(Response::new(proto::ListRecordsResponse {
            records: listed.records.into_iter().map(encode_listed).collect(),
            total: listed.total,
            limit: listed.limit,
            offset: listed.offset,
            property_names: listed.property_names,
        }))
    }

    async fn group_records(
        &self,
        request: Request<proto::GroupRecordsRequest>,
    ) -> Answer<proto::GroupRecordsResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let (database_id, ask) = decode_groups(request.into_inner());
        let grouped = self.records.groups(&caller, &database_id, ask).await?;
        Ok(Response::new(encode_groups(grouped)))
    }

    async fn update_record(
        &self,
        request: Request<proto::UpdateRecordRequest>,
    ) -> Answer<proto::UpdateRecordResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let asked = request.into_inner();
        let (database, record) = (asked.database_id.clone(), asked.record_id.clone());
        let allow_names = asked.allow_names;
        let mut written = self.records.update(&caller, &database, &record, decode_update(asked)).await?;
        let property_names = names(&mut written.item, allow_names);
        let (record, change_position) = (Some(encode(written.item)), written.position);
        Ok(Response::new(proto::UpdateRecordResponse { record, change_position, property_names }))
    }

    async fn preview_record(
        &self,
        request: Request<proto::PreviewRecordRequest>,
    ) -> Answer<proto::PreviewRecordResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let proto::PreviewRecordRequest { database_id, record_id, values_json } = request.into_inner();
        let previewed = self.records.preview(&caller, &database_id, &record_id, values_json).await?;
        let document = previewed.document;
        Ok(Response::new(proto::PreviewRecordResponse {
            title: document.title,
            path: document.path,
            content: previewed.content,
            content_hash: document.content_hash,
        }))
    }

    async fn delete_record(
        &self,
        request: Request<proto::DeleteRecordRequest>,
    ) -> Answer<proto::DeleteRecordResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Delete).await?;
        let asked = request.into_inner();
        let change_position = self.records.delete(&caller, &asked.database_id, &asked.record_id).await?;
        Ok(Response::new(proto::DeleteRecordResponse { change_position }))
    }

    async fn restore_record(
        &self,
        request: Request<proto::RestoreRecordRequest>,
    ) -> Answer<proto::RestoreRecordResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let asked = request.into_inner();
        let written = self.records.restore(&caller, &asked.database_id, &asked.record_id).await?;
        let record = Some(encode(written.item));
        Ok(Response::new(proto::RestoreRecordResponse { record, change_position: written.position }))
    }

    async fn purge_record(
        &self,
        request: Request<proto::PurgeRecordRequest>,
    ) -> Answer<proto::PurgeRecordResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Delete).await?;
        let asked = request.into_inner();
        let change_position = self.records.purge(&caller, &asked.database_id, &asked.record_id).await?;
        Ok(Response::new(proto::PurgeRecordResponse { change_position }))
    }

    async fn list_record_versions(
        &self,
        request: Request<proto::ListRecordVersionsRequest>,
    ) -> Answer<proto::ListRecordVersionsResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let asked = request.into_inner();
        let ask = PageRequest::new(PAGES, asked.page_size, &asked.page_token)?;
        let page = self.records.versions(&caller, &asked.database_id, &asked.record_id, ask).await?;
        Ok(Response::new(proto::ListRecordVersionsResponse {
            versions: page.items.into_iter().map(encode_version).collect(),
            next_page_token: page.next,
            total_size: page.total,
        }))
    }

    async fn restore_record_version(
        &self,
        request: Request<proto::RestoreRecordVersionRequest>,
    ) -> Answer<proto::RestoreRecordVersionResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Write).await?;
        let asked = request.into_inner();
        let written = self
            .records
            .restore_version(&caller, &asked.database_id, &asked.record_id, asked.version)
            .await?;
        let record = Some(encode(written.item));
        Ok(Response::new(proto::RestoreRecordVersionResponse { record, change_position: written.position }))
    }

    async fn list_backlinks(
        &self,
        request: Request<proto::ListBacklinksRequest>,
    ) -> Answer<proto::ListBacklinksResponse> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let asked = request.into_inner();
        let ask = PageRequest::new(PAGES, asked.page_size, &asked.page_token)?;
        let page = self.records.backlinks(&caller, &asked.file_id, ask).await?;
        let backlinks = page.items.into_iter().map(encode_backlink).collect();
        Ok(Response::new(proto::ListBacklinksResponse {
            backlinks,
            next_page_token: page.next,
            total_size: page.total,
        }))
    }
}

/// For callers that refer to properties by their names.
fn names(shown: &mut VisibleRecord, allow_names: bool) -> PropertyNames {
    if allow_names { std::mem::take(&mut shown.property_names) } else { PropertyNames::new() }
}

fn decode_list(request: proto::ListRecordsRequest) -> (String, RecordListRequest) {
    let ask = RecordListRequest {
        record_id: request.record_id,
        search: request.search,
        sorts: request.sorts.into_iter().map(decode_sort).collect(),
        filters: request.filters.into_iter().map(decode_filter).collect(),
        view_id: request.view_id,
        limit: request.limit,
        offset: request.offset,
        allow_names: request.allow_names,
    };
    (request.database_id, ask)
}

fn decode_groups(request: proto::GroupRecordsRequest) -> (String, RecordGroupsRequest) {
    let ask = RecordGroupsRequest {
        search: request.search,
        filters: request.filters.into_iter().map(decode_filter).collect(),
        view_id: request.view_id,
        group_by: request.group_by,
        date_unit: DateUnit::from_number(request.date_unit).unwrap_or_default(),
        order: GroupOrder::from_number(request.order),
        summarize: request.summarize,
        allow_names: request.allow_names,
    };
    (request.database_id, ask)
}

fn encode_groups(grouped: RecordGroups) -> proto::GroupRecordsResponse {
    let group = |group: RecordGroup| proto::Group {
        value_json: group.value.map(|value| value.to_string()),
        label: group.label,
        is_beginning: group.is_beginning,
        count: group.count,
        summaries: group.summaries.into_iter().map(encode_summary).collect(),
    };
    proto::GroupRecordsResponse {
        property_id: grouped.property.to_string(),
        groups: grouped.groups.into_iter().map(group).collect(),
        total: grouped.total,
        summaries: grouped.summaries.into_iter().map(encode_summary).collect(),
        other_groups: grouped.others.groups,
        other_records: grouped.others.records,
    }
}

fn encode_summary(summary: Summary) -> proto::Summary {
    proto::Summary {
        property_id: summary.property.to_string(),
        count: summary.count,
        sum: summary.sum,
        average: summary.average,
        min_json: summary.least.map(|value| value.to_string()),
        max_json: summary.greatest.map(|value| value.to_string()),
    }
}

/// The id of the database, and its planned contents.
fn encode_imported(imported: Imported) -> proto::ImportRecordsResponse {
    let columns = imported.columns.into_iter().map(|column| proto::TableColumn {
        name: column.name,
        property_id: column.property.map(|id| id.to_string()),
    });
    proto::ImportRecordsResponse {
        columns: columns.collect(),
        rows: imported.rows,
        first_rows: imported.first_rows.into_iter().map(|cells| proto::TableRow { cells }).collect(),
        problems: imported.problems.into_iter().map(encode_problem).collect(),
        wrong_rows: imported.wrong_rows,
        created: imported.created,
        change_position: imported.position,
    }
}

fn encode_problem(problem: RowProblem) -> proto::RowProblem {
    let RowProblem { row, column, code, message } = problem;
    proto::RowProblem { row, column, code, message }
}

fn decode_choice(choice: proto::FieldChoice) -> FieldChoice {
    FieldChoice {
        index: choice.index,
        name: choice.name,
        kind: PropertyType::from_number(choice.r#type),
        is_left_out: choice.is_left_out,
        is_primary: choice.is_primary,
    }
}

fn encode_made(made: TableImport) -> proto::CreateDatabaseOfTableResponse {
    let TableImport { fields, imported, database } = made;
    let field = |field: TableField| proto::TableField {
        column: field.column,
        name: field.name,
        r#type: field.kind.into(),
        is_left_out: field.is_left_out,
        is_primary: field.is_primary,
        options: u32::try_from(field.options.len()).unwrap_or(u32::MAX),
    };
    proto::CreateDatabaseOfTableResponse {
        fields: fields.into_iter().map(field).collect(),
        rows: imported.rows,
        first_rows: imported.first_rows.into_iter().map(|cells| proto::TableRow { cells }).collect(),
        problems: imported.problems.into_iter().map(encode_problem).collect(),
        wrong_rows: imported.wrong_rows,
        database: database.map(encode_database),
        change_position: imported.position,
    }
}

pub(super) fn decode_draft(request: proto::CreateRecordRequest) -> (String, RecordDraft) {
    let draft = RecordDraft {
        new_id: request.new_id,
        values: request.values_json,
        content_file_id: request.content_file_id.map(Some),
        allow_names: request.allow_names,
        ..RecordDraft::default()
    };
    (request.database_id, draft)
}

pub(super) fn decode_update(request: proto::UpdateRecordRequest) -> RecordDraft {
    let mask = Mask::read(request.update_mask, &["values", "content_file_id"]);
    RecordDraft {
        new_id: None,
        values: if mask.names("values") { request.values_json } else { String::new() },
        content_file_id: mask.names("content_file_id").then_some(request.content_file_id),
        allow_names: request.allow_names,
        if_version: request.if_version,
        unknown_fields: mask.unknown,
    }
}

fn encode(shown: VisibleRecord) -> proto::Record {
    encode_listed(shown.into())
}

fn encode_listed(record: Listed) -> proto::Record {
    proto::Record {
        id: record.id.to_string(),
        database_id: record.database_id.to_string(),
        values_json: record.values,
        content_file_id: record.content_file_id.map(|id| id.to_string()),
        title: record.title,
        version: record.version,
        created_at: Some(record.created_at.to_proto()),
        updated_at: Some(record.updated_at.to_proto()),
    }
}

fn encode_version(version: RecordVersion) -> proto::RecordVersion {
    let author = version.author;
    proto::RecordVersion {
        version: version.version,
        values_json: Value::Object(version.values).to_string(),
        content_file_id: version.content_file_id.map(|id| id.to_string()),
        created_at: Some(version.created_at.to_proto()),
        created_by: Some(super::author(author)),
    }
}

fn encode_backlink(backlink: Backlink) -> proto::Backlink {
    let (property_id, property_name) = backlink.property.unzip();
    proto::Backlink {
        database_id: backlink.database_id,
        database_name: backlink.database_name,
        record_id: backlink.record_id,
        record_title: backlink.record_title,
        property_id,
        property_name,
    }
}
