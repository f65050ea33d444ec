//! Trees as they grow, and what is seen of them.

mod asked;
mod grown;
mod outside;
mod seen;

use cairn_proto::content::v1::MemberKind;
use cairn_shell::tree::Node;
use uuid::Uuid;

use super::base::{Base, Fixed};
use super::grow::Inconsistent;
use super::names;
use super::rows::{Member, Memory, Place, Row, Rows, Text, What};

/// Ids of different numbers end alike when the numbers differ by a multiple of eight.
fn id(number: u128) -> Uuid {
    Uuid::from_u128((number << 64) | (number % 8))
}

fn text(seed: u8) -> Text {
    Text { hash: [seed; 32], size: u64::from(seed) }
}

fn folder(number: u128, parent: Option<u128>, name: &str) -> Row {
    Row {
        id: id(number),
        place: Place::Folder(parent.map(id)),
        segment: names::of_name(name).into(),
        updated: 1_000,
        what: What::Folder,
    }
}

fn file(number: u128, parent: Option<u128>, name: &str, seed: u8) -> Row {
    Row { what: What::File(text(seed)), updated: 2_000 + i64::from(seed), ..folder(number, parent, name) }
}

fn database(number: u128, parent: Option<u128>, name: &str) -> Row {
    Row {
        place: Place::Databases,
        what: What::Database {
            folder: parent.map(id),
            description: Some(format!("about {name}").into()),
            schema: text(9),
        },
        ..folder(number, None, name)
    }
}

fn record(number: u128, database: u128, title: &str, body: Option<u128>) -> Row {
    Row {
        id: id(number),
        place: Place::Database(id(database)),
        segment: names::of_title(title).into(),
        updated: 3_000,
        what: What::Record {
            title: None,
            body: body.map(id),
            front: text(20),
            bare: Some(Box::new(text(10))),
        },
    }
}

fn memory(number: u128, slug: &str, members: &[(MemberKind, u128)]) -> Row {
    let member =
        |(kind, target): &(MemberKind, u128)| Member { kind: *kind, target: id(*target), is_query: false };
    Row {
        place: Place::Memories,
        what: What::Memory(Box::new(Memory {
            name: format!("The {slug}").into(),
            description: None,
            use_when: Some(format!("for {slug}").into()),
            members: members.iter().map(member).collect(),
        })),
        ..folder(number, None, slug)
    }
}

fn rows(rows: impl IntoIterator<Item = Row>) -> Rows {
    Rows(rows.into_iter().map(|row| (row.id, Some(row))).collect())
}

fn tree(all: impl IntoIterator<Item = Row>) -> Base {
    of(&rows(all), 1).unwrap()
}

/// A tree of these.
fn of(rows: &Rows, position: u64) -> Result<Base, Inconsistent> {
    let mut base = Base::empty();
    base.apply(rows, position)?;
    Ok(base)
}

/// Every path of the tree with what is there, in the order of a walk.
fn walk(base: &Base) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![Fixed::Root.node()];
    while let Some(node) = open.pop() {
        let slot = base.slot(node).unwrap();
        found.push(format!("{} {:?} {} {}", base.path(node), slot.item, slot.updated, slot.segment()));
        for child in slot.children.iter().rev() {
            assert_eq!(base.slot(*child).unwrap().parent, node, "{}", base.path(*child));
            open.push(*child);
        }
    }
    found
}

fn paths(base: &Base, under: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Vec<Node> = vec![Fixed::Root.node()];
    while let Some(node) = open.pop() {
        found.push(base.path(node));
        open.extend(base.children(node).iter().rev());
    }
    found.retain(|path| path.strip_prefix(under).is_some_and(|rest| rest.starts_with('/')));
    found
}
