//! A fake svc-content with one database and one record, with a value of every type; user content is hostile.

use cairn_chassis::status::{Problem, Reason, Violation};
use cairn_proto::content::v1 as content;
use cairn_proto::content::v1::database_service_server::DatabaseService;
use cairn_proto::content::v1::record_service_server::RecordService;
use cairn_proto::domain::PropertyType;
use prost_types::Timestamp;
use serde_json::{Map, Value, json};
use tonic::{Request, Response, Status};

use super::console::HOSTILE;
use super::{FILE, WORKSPACE};

/// The id of the one database that exists.
pub(crate) const DATABASE: &str = "0199c0de-0000-7000-8000-0000000000d1";
/// The id of its one record.
pub(crate) const RECORD: &str = "0199c0de-0000-7000-8000-0000000000d2";
/// The id of the view that is not the default one.
pub(crate) const VIEW: &str = "0199c0de-0000-7000-8000-0000000000d3";
/// The version that the record has.
pub(crate) const VERSION: u64 = 2;
const AT: Option<Timestamp> = Some(Timestamp { seconds: 1_800_000_000, nanos: 0 });

type Answered<T> = Result<Response<T>, Status>;

/// The id of the property of a type.
pub(crate) fn property_id(kind: PropertyType) -> String {
    format!("0199c0de-0000-7000-8000-0000000001{:02x}", kind.number())
}

fn property(position: u32, kind: PropertyType) -> content::Property {
    let option = content::PropertyOption {
        id: "o".to_owned(),
        name: HOSTILE.to_owned(),
        color: Some("red".to_owned()),
    };
    let config = content::PropertyConfig {
        options: if kind.has_options() { vec![option] } else { Vec::new() },
        multiple: kind == PropertyType::FileReference,
        relation_database_id: (kind == PropertyType::Relation).then(|| DATABASE.to_owned()),
    };
    content::Property {
        id: property_id(kind),
        name: format!("{HOSTILE} {position}"),
        r#type: kind.number(),
        is_primary: position == 0,
        position,
        config: Some(config),
    }
}

fn database() -> content::Database {
    let view = |id: &str, is_default: bool| content::View {
        id: id.to_owned(),
        name: HOSTILE.to_owned(),
        is_default,
        ..content::View::default()
    };
    let narrow = content::View {
        filters: vec![content::Condition {
            field_id: property_id(PropertyType::Number),
            operator: content::Operator::Gte.into(),
            value_json: Some("1".to_owned()),
        }],
        sorts: vec![content::Sort {
            field_id: property_id(PropertyType::Number),
            order: content::SortOrder::Desc.into(),
        }],
        hidden_field_ids: vec![property_id(PropertyType::Url)],
        ..view(VIEW, false)
    };
    content::Database {
        id: DATABASE.to_owned(),
        workspace_id: WORKSPACE.to_owned(),
        name: HOSTILE.to_owned(),
        description: Some(HOSTILE.to_owned()),
        properties: (0..).zip(PropertyType::ALL).map(|(position, kind)| property(position, kind)).collect(),
        views: vec![view("0199c0de-0000-7000-8000-0000000000d4", true), narrow],
        record_count: 120,
        created_at: AT,
        updated_at: AT,
        ..content::Database::default()
    }
}

fn record() -> content::Record {
    let value = |kind: PropertyType| match kind {
        PropertyType::Text | PropertyType::Select => json!(HOSTILE),
        PropertyType::Number => json!(1.5),
        PropertyType::Boolean => json!(true),
        PropertyType::Date => json!("2026-11-20"),
        PropertyType::MultiSelect => json!([HOSTILE]),
        PropertyType::Url => json!("https://a.example/\"'<b>"),
        PropertyType::Relation => json!([RECORD]),
        PropertyType::FileReference => json!([FILE]),
        PropertyType::AssetReference => json!(FILE),
    };
    let values: Map<String, Value> =
        PropertyType::ALL.into_iter().map(|kind| (property_id(kind), value(kind))).collect();
    content::Record {
        id: RECORD.to_owned(),
        database_id: DATABASE.to_owned(),
        values_json: Value::Object(values).to_string(),
        content_file_id: Some(FILE.to_owned()),
        title: HOSTILE.to_owned(),
        version: VERSION,
        created_at: AT,
        updated_at: AT,
    }
}

fn known(database_id: &str, record_id: &str) -> Result<(), Status> {
    if database_id == DATABASE && record_id == RECORD {
        return Ok(());
    }
    Err(Problem::not_found("there is no such record").into())
}

/// The first condition of a tree without an operator.
fn is_misread(filter: &content::Filter) -> bool {
    match &filter.tree {
        Some(content::filter::Tree::Condition(condition)) => condition.operator == 0,
        Some(content::filter::Tree::All(all) | content::filter::Tree::Any(all)) => {
            all.filters.iter().any(is_misread)
        }
        None => false,
    }
}

pub(super) struct Databases;

#[tonic::async_trait]
impl DatabaseService for Databases {
    async fn create_database(
        &self,
        _: Request<content::CreateDatabaseRequest>,
    ) -> Answered<content::CreateDatabaseResponse> {
        Err(Status::unimplemented(""))
    }

    async fn get_database(
        &self,
        request: Request<content::GetDatabaseRequest>,
    ) -> Answered<content::GetDatabaseResponse> {
        if request.into_inner().database_id != DATABASE {
            return Err(Problem::not_found("there is no such database").into());
        }
        Ok(Response::new(content::GetDatabaseResponse { database: Some(database()) }))
    }

    async fn list_databases(
        &self,
        request: Request<content::ListDatabasesRequest>,
    ) -> Answered<content::ListDatabasesResponse> {
        drop(request);
        Ok(Response::new(content::ListDatabasesResponse {
            databases: vec![database()],
            next_page_token: "next".to_owned(),
            total_size: 70,
        }))
    }

    async fn list_trashed_databases(
        &self,
        _: Request<content::ListTrashedDatabasesRequest>,
    ) -> Answered<content::ListTrashedDatabasesResponse> {
        Err(Status::unimplemented(""))
    }

    async fn update_database(
        &self,
        _: Request<content::UpdateDatabaseRequest>,
    ) -> Answered<content::UpdateDatabaseResponse> {
        Err(Status::unimplemented(""))
    }

    async fn delete_database(
        &self,
        request: Request<content::DeleteDatabaseRequest>,
    ) -> Answered<content::DeleteDatabaseResponse> {
        drop(request);
        Ok(Response::new(content::DeleteDatabaseResponse { change_position: 7 }))
    }

    async fn restore_database(
        &self,
        _: Request<content::RestoreDatabaseRequest>,
    ) -> Answered<content::RestoreDatabaseResponse> {
        Err(Status::unimplemented(""))
    }

    async fn purge_database(
        &self,
        _: Request<content::PurgeDatabaseRequest>,
    ) -> Answered<content::PurgeDatabaseResponse> {
        Err(Status::unimplemented(""))
    }

    async fn create_property(
        &self,
        request: Request<content::CreatePropertyRequest>,
    ) -> Answered<content::CreatePropertyResponse> {
        let name = request.into_inner().name;
        if name.contains('\n') {
            return Err(
                Problem::validation(vec![Violation::new("name", "invalid", "has a line break")]).into()
            );
        }
        Ok(Response::new(content::CreatePropertyResponse {
            property: Some(property(1, PropertyType::Text)),
            change_position: 7,
        }))
    }

    async fn update_property(
        &self,
        _: Request<content::UpdatePropertyRequest>,
    ) -> Answered<content::UpdatePropertyResponse> {
        Err(Status::unimplemented(""))
    }

    async fn delete_property(
        &self,
        _: Request<content::DeletePropertyRequest>,
    ) -> Answered<content::DeletePropertyResponse> {
        Err(Status::unimplemented(""))
    }

    async fn create_view(
        &self,
        _: Request<content::CreateViewRequest>,
    ) -> Answered<content::CreateViewResponse> {
        Err(Status::unimplemented(""))
    }

    async fn update_view(
        &self,
        _: Request<content::UpdateViewRequest>,
    ) -> Answered<content::UpdateViewResponse> {
        Err(Status::unimplemented(""))
    }

    async fn delete_view(
        &self,
        _: Request<content::DeleteViewRequest>,
    ) -> Answered<content::DeleteViewResponse> {
        Err(Status::unimplemented(""))
    }
}

#[tonic::async_trait]
impl RecordService for Databases {
    async fn create_record(
        &self,
        _: Request<content::CreateRecordRequest>,
    ) -> Answered<content::CreateRecordResponse> {
        Err(Status::unimplemented(""))
    }

    async fn preview_record(
        &self,
        _: Request<content::PreviewRecordRequest>,
    ) -> Answered<content::PreviewRecordResponse> {
        Err(Status::unimplemented(""))
    }

    async fn import_records(
        &self,
        request: Request<content::ImportRecordsRequest>,
    ) -> Answered<content::ImportRecordsResponse> {
        let asked = request.into_inner();
        let table = String::from_utf8(asked.csv.to_vec()).unwrap();
        if !table.contains('\n') {
            let wrong = Violation::new("csv", "required", "needs a first row with the names of its columns");
            return Err(Problem::validation(vec![wrong]).into());
        }
        let is_wrong = table.contains("wrong");
        if is_wrong && !asked.dry_run {
            return Err(Problem::validation(vec![Violation::new(
                "rows[2].a",
                "wrong_type",
                "must be a number",
            )])
            .into());
        }
        let column =
            |property_id: Option<String>| content::TableColumn { name: HOSTILE.to_owned(), property_id };
        let problem = content::RowProblem {
            row: 2,
            column: HOSTILE.to_owned(),
            code: "wrong_type".to_owned(),
            message: "must be a number".to_owned(),
        };
        Ok(Response::new(content::ImportRecordsResponse {
            columns: vec![column(Some(property_id(PropertyType::Number))), column(None)],
            rows: 1,
            first_rows: vec![content::TableRow { cells: vec![HOSTILE.repeat(9)] }],
            problems: if is_wrong { vec![problem] } else { Vec::new() },
            wrong_rows: u64::from(is_wrong),
            created: u64::from(!asked.dry_run),
            change_position: 1,
        }))
    }

    async fn create_database_of_table(
        &self,
        request: Request<content::CreateDatabaseOfTableRequest>,
    ) -> Answered<content::CreateDatabaseOfTableResponse> {
        let asked = request.into_inner();
        let table = String::from_utf8(asked.csv.to_vec()).unwrap();
        let refused =
            |path: &str| Err(Problem::validation(vec![Violation::new(path, "invalid", "is wrong")]).into());
        if !table.contains('\n') {
            return refused("csv");
        }
        if asked.fields.iter().any(|field| field.name.as_deref() == Some("wrong")) {
            return refused("fields[1].name");
        }
        if asked.name == "full" && !asked.dry_run {
            return Err(Problem::new(Reason::LimitExceeded, "the plan has no room").into());
        }
        let field = |kind: PropertyType, is_primary: bool| content::TableField {
            column: HOSTILE.to_owned(),
            name: HOSTILE.to_owned(),
            r#type: kind.number(),
            is_left_out: false,
            is_primary,
            options: 0,
        };
        Ok(Response::new(content::CreateDatabaseOfTableResponse {
            fields: vec![field(PropertyType::Text, true), field(PropertyType::Number, false)],
            rows: 1,
            first_rows: vec![content::TableRow { cells: vec![HOSTILE.repeat(9)] }],
            problems: Vec::new(),
            wrong_rows: 0,
            database: (!asked.dry_run).then(database),
            change_position: 1,
        }))
    }

    async fn get_record(
        &self,
        request: Request<content::GetRecordRequest>,
    ) -> Answered<content::GetRecordResponse> {
        let asked = request.into_inner();
        known(&asked.database_id, &asked.record_id)?;
        Ok(Response::new(content::GetRecordResponse { record: Some(record()) }))
    }

    async fn list_records(
        &self,
        request: Request<content::ListRecordsRequest>,
    ) -> Answered<content::ListRecordsResponse> {
        let asked = request.into_inner();
        if let Some(id) = &asked.record_id {
            known(&asked.database_id, id)?;
        }
        if asked.filters.iter().any(is_misread) {
            let broken = Violation::new("filters[0].and[0].operator", "invalid_value", "must be known");
            return Err(Problem::validation(vec![broken]).into());
        }
        Ok(Response::new(content::ListRecordsResponse {
            records: vec![record()],
            total: 120,
            limit: asked.limit,
            offset: asked.offset,
            ..content::ListRecordsResponse::default()
        }))
    }

    async fn group_records(
        &self,
        request: Request<content::GroupRecordsRequest>,
    ) -> Answered<content::GroupRecordsResponse> {
        let asked = request.into_inner();
        let of = |property_id: &String| content::Summary {
            property_id: property_id.clone(),
            count: 3,
            sum: Some(4.5),
            average: Some(1.5),
            min_json: Some(json!(HOSTILE).to_string()),
            max_json: Some("2".to_owned()),
        };
        let summaries: Vec<content::Summary> = asked.summarize.iter().map(of).collect();
        let group = |value: Option<&str>, is_beginning: bool| content::Group {
            value_json: value.map(|value| json!(value).to_string()),
            label: value.unwrap_or_default().to_owned(),
            is_beginning,
            count: 3,
            summaries: summaries.clone(),
        };
        Ok(Response::new(content::GroupRecordsResponse {
            property_id: asked.group_by,
            groups: vec![group(Some(HOSTILE), false), group(Some("long"), true), group(None, false)],
            total: 120,
            summaries: summaries.clone(),
            other_groups: 2,
            other_records: 1_200,
        }))
    }

    async fn update_record(
        &self,
        request: Request<content::UpdateRecordRequest>,
    ) -> Answered<content::UpdateRecordResponse> {
        let asked = request.into_inner();
        known(&asked.database_id, &asked.record_id)?;
        if !asked.if_version.is_empty() && !asked.if_version.contains(&VERSION) {
            return Err(Problem::version_conflict("the record has changed").into());
        }
        let number = property_id(PropertyType::Number);
        let values: Value = serde_json::from_str(&asked.values_json).unwrap();
        if values[&number].is_string() {
            let path = format!("values.{number}");
            return Err(
                Problem::validation(vec![Violation::new(path, "wrong_type", "must be a number")]).into()
            );
        }
        Ok(Response::new(content::UpdateRecordResponse {
            record: Some(record()),
            change_position: 8,
            ..content::UpdateRecordResponse::default()
        }))
    }

    async fn delete_record(
        &self,
        request: Request<content::DeleteRecordRequest>,
    ) -> Answered<content::DeleteRecordResponse> {
        let asked = request.into_inner();
        known(&asked.database_id, &asked.record_id)?;
        Ok(Response::new(content::DeleteRecordResponse { change_position: 9 }))
    }

    async fn restore_record(
        &self,
        _: Request<content::RestoreRecordRequest>,
    ) -> Answered<content::RestoreRecordResponse> {
        Err(Status::unimplemented(""))
    }

    async fn purge_record(
        &self,
        _: Request<content::PurgeRecordRequest>,
    ) -> Answered<content::PurgeRecordResponse> {
        Err(Status::unimplemented(""))
    }

    async fn list_record_versions(
        &self,
        request: Request<content::ListRecordVersionsRequest>,
    ) -> Answered<content::ListRecordVersionsResponse> {
        drop(request);
        let version = |version: u64, values: Value| content::RecordVersion {
            version,
            values_json: values.to_string(),
            content_file_id: (version > 1).then(|| FILE.to_owned()),
            created_at: AT,
            created_by: Some(content::Author {
                kind: "token".to_owned(),
                id: "t".to_owned(),
                name: HOSTILE.to_owned(),
            }),
        };
        let (was, is) = (json!({HOSTILE: HOSTILE}), json!({property_id(PropertyType::Text): HOSTILE}));
        Ok(Response::new(content::ListRecordVersionsResponse {
            versions: vec![version(2, is), version(1, was)],
            next_page_token: String::new(),
            total_size: 2,
        }))
    }

    async fn restore_record_version(
        &self,
        _: Request<content::RestoreRecordVersionRequest>,
    ) -> Answered<content::RestoreRecordVersionResponse> {
        Err(Status::unimplemented(""))
    }

    async fn list_backlinks(
        &self,
        _: Request<content::ListBacklinksRequest>,
    ) -> Answered<content::ListBacklinksResponse> {
        Err(Status::unimplemented(""))
    }
}
