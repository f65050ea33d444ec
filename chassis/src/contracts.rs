//! An index of the protobuf descriptors: the methods of all services, and the fields of all messages.

use std::collections::HashMap;
use std::sync::OnceLock;

use prost::Message as _;
use prost_types::field_descriptor_proto::Type;
use prost_types::method_options::IdempotencyLevel;
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorSet, MethodOptions, ServiceDescriptorProto,
};

/// A message in [`Contracts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageId(usize);

/// A method of the contracts.
#[derive(Debug)]
pub(crate) struct Method {
    /// The request message; absent when its file is not among the descriptors.
    pub(crate) request: Option<MessageId>,
    /// Whether the client streams messages.
    pub(crate) takes_stream: bool,
    /// Whether it may be retried (`idempotency_level = NO_SIDE_EFFECTS`).
    pub(crate) is_idempotent: bool,
}

/// How a length-delimited field is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Text or bytes: one element, however long.
    Whole,
    /// Numbers, possibly packed: each byte may be one.
    Packed,
    /// A message.
    Message(MessageId),
}

/// The methods and messages of all services.
#[derive(Debug, Default)]
pub(crate) struct Contracts {
    /// Looked up with every call. A fast hash is safe, since no input becomes a key.
    methods: foldhash::HashMap<String, Method>,
    /// The fields of each message, by number. They are few, so a linear scan is fast.
    messages: Vec<Vec<(u32, Content)>>,
    /// Whether all descriptors were decoded.
    is_complete: bool,
}

impl Contracts {
    /// The contracts of this build.
    pub(crate) fn get() -> &'static Self {
        static CONTRACTS: OnceLock<Contracts> = OnceLock::new();
        CONTRACTS.get_or_init(|| {
            let sets = [
                cairn_proto::DESCRIPTORS,
                tonic_health::pb::FILE_DESCRIPTOR_SET,
                tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
                tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
            ];
            let read: Vec<FileDescriptorSet> =
                sets.into_iter().filter_map(|set| FileDescriptorSet::decode(set).ok()).collect();
            let is_complete = read.len() == sets.len();
            Self { is_complete, ..Self::read(read.into_iter()) }
        })
    }

    /// Whether all descriptors were decoded; otherwise the build is broken.
    pub(crate) const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The method at that path, with the path as it is stored.
    pub(crate) fn method(&self, path: &str) -> Option<(&str, &Method)> {
        self.methods.get_key_value(path).map(|(path, method)| (path.as_str(), method))
    }

    /// The paths of all methods.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.methods.keys().map(String::as_str)
    }

    /// The encoding of a field. Unknown fields are opaque: the decoder skips them.
    pub(crate) fn field(&self, message: MessageId, number: u32) -> Content {
        let mut fields = self.messages.get(message.0).into_iter().flatten();
        fields.find(|(known, _)| *known == number).map_or(Content::Whole, |(_, content)| *content)
    }

    fn read(sets: impl Iterator<Item = FileDescriptorSet>) -> Self {
        let mut described = Vec::new();
        let mut services = Vec::new();
        for file in sets.flat_map(|set| set.file) {
            let package = format!(".{}", file.package());
            for message in file.message_type {
                collect(&package, message, &mut described);
            }
            services.extend(file.service.into_iter().map(|service| (package.clone(), service)));
        }
        let ids: HashMap<String, MessageId> =
            described.iter().enumerate().map(|(place, (name, _))| (name.clone(), MessageId(place))).collect();
        let methods =
            services.iter().flat_map(|(package, service)| methods_of(package, service, &ids)).collect();
        let fields_of = |message: &DescriptorProto| {
            message.field.iter().map(|field| (field.number().unsigned_abs(), content(field, &ids))).collect()
        };
        let messages = described.iter().map(|(_, message)| fields_of(message)).collect();
        Self { methods, messages, is_complete: true }
    }
}

/// Collects a message and its nested messages by their full names.
fn collect(parent: &str, mut message: DescriptorProto, all: &mut Vec<(String, DescriptorProto)>) {
    let name = format!("{parent}.{}", message.name());
    for nested in std::mem::take(&mut message.nested_type) {
        collect(&name, nested, all);
    }
    all.push((name, message));
}

fn methods_of<'a>(
    package: &'a str,
    service: &'a ServiceDescriptorProto,
    ids: &'a HashMap<String, MessageId>,
) -> impl Iterator<Item = (String, Method)> {
    let prefix = format!("/{}.{}", package.trim_start_matches('.'), service.name());
    service.method.iter().map(move |method| {
        let request = ids.get(method.input_type()).copied();
        let level = method.options.as_ref().map(MethodOptions::idempotency_level);
        let is_idempotent = level == Some(IdempotencyLevel::NoSideEffects);
        let takes_stream = method.client_streaming();
        (format!("{prefix}/{}", method.name()), Method { request, takes_stream, is_idempotent })
    })
}

fn content(field: &FieldDescriptorProto, ids: &HashMap<String, MessageId>) -> Content {
    match field.r#type() {
        Type::Message => ids.get(field.type_name()).map_or(Content::Whole, |id| Content::Message(*id)),
        // Groups are always rejected.
        Type::String | Type::Bytes | Type::Group => Content::Whole,
        Type::Double
        | Type::Float
        | Type::Int64
        | Type::Uint64
        | Type::Int32
        | Type::Fixed64
        | Type::Fixed32
        | Type::Bool
        | Type::Uint32
        | Type::Enum
        | Type::Sfixed32
        | Type::Sfixed64
        | Type::Sint32
        | Type::Sint64 => Content::Packed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_and_what_they_take_are_known() {
        let contracts = Contracts::get();
        assert!(contracts.is_complete());
        let (path, method) = contracts.method("/cairn.content.v1.BatchService/BatchWrite").unwrap();
        assert_eq!(path, "/cairn.content.v1.BatchService/BatchWrite");
        assert!(!method.takes_stream);
        assert!(!method.is_idempotent);
        let writes = contracts.field(method.request.unwrap(), 1);
        let Content::Message(item) = writes else { panic!("writes are messages, not {writes:?}") };
        assert!(matches!(contracts.field(item, 1), Content::Message(_)), "an item holds a request");
        assert_eq!(contracts.field(item, 60_000), Content::Whole);

        let (_, read) = contracts.method("/cairn.content.v1.FileService/GetFile").unwrap();
        assert!(read.is_idempotent);
        let (_, upload) = contracts.method("/cairn.content.v1.AssetService/UploadAsset").unwrap();
        assert!(upload.takes_stream);
        assert!(contracts.method("/grpc.health.v1.Health/Check").is_some());
        assert!(contracts.method("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo").is_some());
        assert!(contracts.method("/cairn.content.v1.BatchService/Made-up").is_none());
    }

    #[test]
    fn every_request_is_described() {
        for (path, method) in &Contracts::get().methods {
            assert!(method.request.is_some(), "{path} takes something that is not described");
        }
    }
}
