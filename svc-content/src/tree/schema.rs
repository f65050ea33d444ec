//! The schema of a database as Markdown, for agents that browse its records.

use crate::model::{Database, Property, PropertyType};

/// Options that are listed by name; the rest is only counted.
const MAX_OPTIONS: usize = 100;

/// The text, in Markdown.
pub(super) fn text(database: &Database) -> String {
    let mut text = format!("# {}\n\n", one_line(&database.name));
    if let Some(description) = database.description.as_deref().filter(|text| !text.trim().is_empty()) {
        text.push_str(&format!("{}\n\n", description.trim()));
    }
    text.push_str(&format!("Database id: {}\n\n", database.id));
    text.push_str("| Field | Type | Values | Field id |\n|---|---|---|---|\n");
    for property in &database.properties {
        let kind = property.kind.as_str();
        let title = if property.is_primary { " (titles the record)" } else { "" };
        let (name, values) = (cell(&property.name), cell(&values(property)));
        text.push_str(&format!("| {name} | {kind}{title} | {values} | {} |\n", property.id));
    }
    text.push_str("\nViews: ");
    let views: Vec<String> =
        database.views.iter().map(|view| format!("{} ({})", one_line(&view.name), view.id)).collect();
    text.push_str(&views.join(", "));
    text.push_str(
        "\n\nEach record is a file beside this one: its fields as front matter, then its page. To filter, sort or count \
         records use the tool query_database with this database id.\n",
    );
    text
}

fn values(property: &Property) -> String {
    let several = if property.config.multiple { ", one or several" } else { "" };
    match property.kind {
        PropertyType::Select | PropertyType::MultiSelect => {
            let options = &property.config.options;
            let names: Vec<&str> =
                options.iter().take(MAX_OPTIONS).map(|option| option.name.as_str()).collect();
            let more = options.len().saturating_sub(MAX_OPTIONS);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{}{more}", names.join(", "))
        }
        PropertyType::Relation => {
            let database = property.config.relation_database_id;
            database.map_or_else(|| "record ids".to_owned(), |id| format!("record ids of the database {id}"))
        }
        PropertyType::FileReference => format!("file ids{several}"),
        PropertyType::AssetReference => format!("asset ids{several}"),
        PropertyType::Date => "2026-11-20 or 2026-11-20T12:00:00Z".to_owned(),
        PropertyType::Boolean => "true or false".to_owned(),
        PropertyType::Text | PropertyType::Number | PropertyType::Url => String::new(),
    }
}

fn cell(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}

fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}
