//! Compiles the contracts with protox, so that no protoc is needed, and stores their descriptors for reflection. Messages
//! that are also JSON responses get their serde and schema attributes here: from their types, and from `answers.rs`.

mod answers;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorSet};
use tonic_prost_build::Builder;

use self::answers::{ANSWERS, As, WORDS};

const TIMESTAMP: &str = ".google.protobuf.Timestamp";
const ANSWER: &str = "#[derive(serde::Serialize)] #[serde(rename_all = \"camelCase\")] \
    #[cfg_attr(feature = \"schema\", derive(utoipa::ToSchema))]";

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let mut files = Vec::new();
    collect(&root.join("cairn"), &mut files)?;
    files.sort();

    // tonic-prost-build does not emit these itself when given a descriptor set.
    println!("cargo:rerun-if-changed=cairn");
    for file in &files {
        println!("cargo:rerun-if-changed={}", file.display());
    }

    let descriptors = protox::compile(&files, [&root])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    let builder = tonic_prost_build::configure().bytes(".").codec_path("crate::codec::MessageCodec");
    with_answers(builder, &descriptors)?.compile_fds(descriptors)?;
    Ok(())
}

/// A name in the table that the contracts lack is an error, so the table cannot become stale.
fn with_answers(mut builder: Builder, descriptors: &FileDescriptorSet) -> Result<Builder, Box<dyn Error>> {
    println!("cargo:rerun-if-changed=answers.rs");
    for (name, told) in ANSWERS {
        let message = message(descriptors, name).ok_or_else(|| format!("there is no message {name}"))?;
        builder = builder.type_attribute(format!(".{name}"), ANSWER);
        for (field, _) in *told {
            let is_there = message.field.iter().any(|one| one.name() == *field);
            is_there.then_some(()).ok_or_else(|| format!("there is no field {name}.{field}"))?;
        }
        for field in &message.field {
            let told =
                told.iter().find(|(of, _)| *of == field.name()).map_or([].as_slice(), |(_, told)| told);
            let attributes = attributes(field, told)?;
            builder = builder.field_attribute(format!(".{name}.{}", field.name()), attributes);
        }
    }
    Ok(builder)
}

fn message<'a>(descriptors: &'a FileDescriptorSet, name: &str) -> Option<&'a DescriptorProto> {
    let (package, name) = name.rsplit_once('.')?;
    let files = descriptors.file.iter().filter(|file| file.package() == package);
    files.flat_map(|file| &file.message_type).find(|message| message.name() == name)
}

/// The serde and schema attributes of a field.
fn attributes(field: &FieldDescriptorProto, told: &[As]) -> Result<String, Box<dyn Error>> {
    let is_null = told.iter().any(|one| matches!(one, As::Null));
    let is_list = field.label() == Label::Repeated;
    let is_message = field.r#type() == Type::Message;
    let is_time = field.type_name() == TIMESTAMP;
    let is_absent = field.proto3_optional() || (is_time && is_null);
    let (mut serde, mut schema) = (Vec::new(), Vec::new());
    if is_absent && is_null {
        schema.push("required = true".to_owned());
    } else if is_absent {
        serde.push("skip_serializing_if = \"Option::is_none\"".to_owned());
    }
    if is_time {
        let (with, of) = if is_absent { ("optional_time", "Option<String>") } else { ("time", "String") };
        serde.push(format!("serialize_with = \"crate::json::{with}\""));
        schema.push(format!("value_type = {of}, format = DateTime"));
    } else if is_message && !is_list && !is_absent {
        let of = field.type_name().rsplit('.').next().unwrap_or_default();
        schema.push(format!("required = true, value_type = {of}"));
    } else if field.r#type() == Type::Enum {
        let word = WORDS.iter().find(|(of, _)| *of == field.type_name()).map(|(_, word)| word);
        let word = word.ok_or_else(|| format!("no word stands for {}", field.type_name()))?;
        let (with, of) = if is_list { ("words", "Vec<") } else { ("word", "") };
        let end = if is_list { ">" } else { "" };
        serde.push(format!("serialize_with = \"crate::json::{with}::<crate::domain::{word}, _>\""));
        schema.push(format!("value_type = {of}crate::domain::{word}{end}"));
    }
    for one in told {
        match one {
            As::Null => {}
            As::Uuid => schema.push("format = \"uuid\"".to_owned()),
            As::Schema(words) => schema.push((*words).to_owned()),
            As::Spare => {
                let test = if is_list { "Vec::is_empty" } else { "std::ops::Not::not" };
                serde.push(format!("skip_serializing_if = \"{test}\""));
                schema.push("required = false".to_owned());
            }
        }
    }
    let mut text = String::new();
    if !serde.is_empty() {
        text.push_str(&format!("#[serde({})] ", serde.join(", ")));
    }
    if !schema.is_empty() {
        text.push_str(&format!("#[cfg_attr(feature = \"schema\", schema({}))]", schema.join(", ")));
    }
    Ok(text)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "proto") {
            files.push(path);
        }
    }
    Ok(())
}
