//! How many elements a message is made of, counted in its bytes as they arrive.
//!
//! Two bytes can stand for an element that takes hundreds when it is decoded: an entry of a list that says nothing.
//! What a message may weigh on the wire therefore bounds nothing; what is in it is counted before it is decoded.

use crate::contracts::{Content, Contracts, MessageId};

/// prost decodes no deeper.
const DEEPEST: usize = 100;
const VARINT: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const DELIMITED: u64 = 2;
const FOUR_BYTES: u64 = 5;

/// Why a message is not let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It has more elements than the call may have.
    TooMany,
    /// It cannot be decoded.
    Malformed,
}

/// Counts the elements of one message: its fields, those of the messages in it, and packed numbers.
#[derive(Debug)]
pub(super) struct Scanner {
    /// The innermost message that the place is in: what it is, and where it ends.
    inside: Option<(MessageId, usize)>,
    /// Those around it, from the outermost.
    around: Vec<(MessageId, usize)>,
    at: At,
    position: usize,
    elements_left: usize,
}

/// What is read next.
#[derive(Debug)]
enum At {
    Key(Varint),
    Number(Varint),
    Length(Content, Varint),
    /// The bytes of a value that is one whole.
    Value(usize),
}

#[derive(Debug, Clone, Copy, Default)]
struct Varint {
    value: u64,
    shift: u32,
}

impl Varint {
    /// The number, when this byte was its last.
    fn push(&mut self, byte: u8) -> Result<Option<u64>, Unfit> {
        if self.shift > 63 {
            return Err(Unfit::Malformed);
        }
        self.value |= u64::from(byte & 0x7f) << self.shift;
        self.shift += 7;
        Ok((byte & 0x80 == 0).then_some(self.value))
    }

    const fn is_begun(self) -> bool {
        self.shift > 0
    }
}

impl Scanner {
    /// For a message of that many bytes.
    pub(super) fn new(message: MessageId, length: usize, most_elements: usize) -> Self {
        let at = At::Key(Varint::default());
        Self {
            inside: Some((message, length)),
            around: Vec::new(),
            at,
            position: 0,
            elements_left: most_elements,
        }
    }

    /// Takes the next bytes of the message, not beyond its end.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Result<(), Unfit> {
        loop {
            self.leave_ended()?;
            if let At::Value(left) = &mut self.at {
                let step = (*left).min(bytes.len());
                *left -= step;
                self.position += step;
                if *left > 0 {
                    return Ok(());
                }
                self.at = At::Key(Varint::default());
                bytes = bytes.get(step..).unwrap_or_default();
                continue;
            }
            let Some((byte, rest)) = bytes.split_first() else { return Ok(()) };
            bytes = rest;
            self.position += 1;
            self.step(*byte)?;
        }
    }

    /// Leaves the messages that end here; none may end within a field.
    fn leave_ended(&mut self) -> Result<(), Unfit> {
        while let Some((_, end)) = self.inside
            && end <= self.position
        {
            match &self.at {
                At::Key(key) if !key.is_begun() => self.inside = self.around.pop(),
                At::Value(0) => return Ok(()),
                At::Key(_) | At::Number(_) | At::Length(..) | At::Value(_) => return Err(Unfit::Malformed),
            }
        }
        Ok(())
    }

    fn step(&mut self, byte: u8) -> Result<(), Unfit> {
        match &mut self.at {
            At::Key(key) => {
                if let Some(key) = key.push(byte)? {
                    self.at = self.begin_field(key)?;
                }
            }
            At::Number(number) => {
                if number.push(byte)?.is_some() {
                    self.at = At::Key(Varint::default());
                }
            }
            At::Length(content, length) => {
                let content = *content;
                if let Some(length) = length.push(byte)? {
                    self.begin_content(content, length)?;
                }
            }
            At::Value(_) => {}
        }
        Ok(())
    }

    fn begin_field(&mut self, key: u64) -> Result<At, Unfit> {
        self.count(1)?;
        let number = u32::try_from(key >> 3).map_err(|_| Unfit::Malformed)?;
        let Some((message, _)) = self.inside else { return Err(Unfit::Malformed) };
        match key & 7 {
            VARINT => Ok(At::Number(Varint::default())),
            EIGHT_BYTES => self.value(8),
            FOUR_BYTES => self.value(4),
            DELIMITED => Ok(At::Length(Contracts::get().field(message, number), Varint::default())),
            // Groups: nothing here has one, and what stands in one would be counted by nobody.
            _ => Err(Unfit::Malformed),
        }
    }

    fn begin_content(&mut self, content: Content, length: u64) -> Result<(), Unfit> {
        let length = usize::try_from(length).map_err(|_| Unfit::Malformed)?;
        self.at = match content {
            Content::Whole => self.value(length)?,
            Content::Packed => {
                self.count(length)?;
                self.value(length)?
            }
            Content::Message(message) => {
                self.value(length)?;
                // With the innermost.
                if self.around.len() + 1 >= DEEPEST {
                    return Err(Unfit::Malformed);
                }
                self.around.extend(self.inside.replace((message, self.position.saturating_add(length))));
                At::Key(Varint::default())
            }
        };
        Ok(())
    }

    /// A value of that length, which must end where its message does, or before.
    fn value(&self, length: usize) -> Result<At, Unfit> {
        let fits = self.inside.is_some_and(|(_, end)| length <= end.saturating_sub(self.position));
        if fits { Ok(At::Value(length)) } else { Err(Unfit::Malformed) }
    }

    fn count(&mut self, elements: usize) -> Result<(), Unfit> {
        self.elements_left = self.elements_left.checked_sub(elements).ok_or(Unfit::TooMany)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use cairn_proto::content::v1::batch_item::Write;
    use cairn_proto::content::v1::{BatchItem, BatchWriteRequest, CreateFileRequest};
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;

    fn batch_write() -> MessageId {
        Contracts::get().method("/cairn.content.v1.BatchService/BatchWrite").unwrap().1.request.unwrap()
    }

    /// Feeds in pieces of that size.
    fn scan(bytes: &[u8], most: usize, piece: usize) -> Result<(), Unfit> {
        let mut scanner = Scanner::new(batch_write(), bytes.len(), most);
        bytes.chunks(piece.max(1)).try_for_each(|piece| scanner.feed(piece))
    }

    fn batch(names: &[String], tags: usize) -> Vec<u8> {
        let item = |name: &String| BatchItem {
            write: Some(Write::CreateFile(CreateFileRequest {
                name: name.clone(),
                tags: vec![String::new(); tags],
                ..CreateFileRequest::default()
            })),
            ..BatchItem::default()
        };
        BatchWriteRequest { writes: names.iter().map(item).collect() }.encode_to_vec()
    }

    #[test]
    fn entries_that_say_nothing_are_counted() {
        let empty = BatchWriteRequest { writes: vec![BatchItem::default(); 1_000] }.encode_to_vec();
        assert_eq!(empty.len(), 2_000);
        assert_eq!(scan(&empty, 1_000, 7), Ok(()));
        assert_eq!(scan(&empty, 999, 7), Err(Unfit::TooMany));
    }

    #[test]
    fn what_stands_deeper_is_counted_too() {
        // The item, the request in it, its name, its tags.
        let nested = batch(&["a".to_owned()], 50);
        assert_eq!(scan(&nested, 53, 3), Ok(()));
        assert_eq!(scan(&nested, 52, 3), Err(Unfit::TooMany));
    }

    #[test]
    fn groups_are_refused() {
        assert_eq!(scan(&[0x0b, 0x0c], 100, 1), Err(Unfit::Malformed));
    }

    #[test]
    fn lengths_stay_within() {
        assert_eq!(scan(&[0x0a, 0x05, 0x00], 100, 1), Err(Unfit::Malformed));
        assert_eq!(
            scan(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], 100, 1),
            Err(Unfit::Malformed)
        );
    }

    proptest! {
        #[test]
        fn what_is_encoded_passes_in_any_pieces(names in proptest::collection::vec(".{0,20}", 0..20), tags in 0_usize..9, piece in 1_usize..64) {
            prop_assert_eq!(scan(&batch(&names, tags), 1_000, piece), Ok(()));
        }

        #[test]
        fn anything_at_all_is_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200), piece in 1_usize..64) {
            let _ = scan(&bytes, 100, piece);
        }

        /// What prost would decode, the scanner lets through, unless it is too much or has groups.
        #[test]
        fn what_decodes_is_not_malformed(bytes in proptest::collection::vec(0_u8..20, 0..24)) {
            let has_groups = bytes.iter().any(|byte| matches!(byte & 7, 3 | 4));
            if !has_groups && BatchWriteRequest::decode(bytes.as_slice()).is_ok() {
                prop_assert_eq!(scan(&bytes, 1_000, 5), Ok(()));
            }
        }
    }
}
