//! The numbers of kinds as SQL literals: `concat!` takes only literals. A test compares them with the protobuf enums.

/// The kind of a member of a memory.
macro_rules! member_kind {
    (file) => {
        "1"
    };
    (folder) => {
        "2"
    };
    (database) => {
        "4"
    };
}
pub(super) use member_kind;

/// The kind of an item in trash.
macro_rules! trash_kind {
    (record) => {
        "5"
    };
}
pub(super) use trash_kind;

#[cfg(test)]
mod tests {
    use cairn_proto::domain::{MemberKind, TrashKind};

    #[test]
    fn the_numbers_are_the_contracts() {
        assert_eq!(member_kind!(file), MemberKind::File.number().to_string());
        assert_eq!(member_kind!(folder), MemberKind::Folder.number().to_string());
        assert_eq!(member_kind!(database), MemberKind::Database.number().to_string());
        assert_eq!(trash_kind!(record), TrashKind::Record.number().to_string());
    }
}
