//! Counts the elements of an encoded message as its bytes arrive.
//!
//! An empty list entry takes two bytes on the wire and hundreds when it is decoded. A limit of bytes alone would not bound the
//! memory of a message, so its elements are counted before it is decoded.

use crate::contracts::{Content, Contracts, MessageId};

/// The recursion limit of prost.
const MAX_DEPTH: usize = 100;
const VARINT: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const DELIMITED: u64 = 2;
const FOUR_BYTES: u64 = 5;

/// Why a message is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScanError {
    /// It has more elements than the limit.
    TooManyElements,
    /// It cannot be decoded.
    Malformed,
}

/// Counts the elements of one message: its fields, those of nested messages, and packed numbers.
#[derive(Debug)]
pub(super) struct Scanner {
    /// The innermost message at the current position, and its end.
    innermost: Option<(MessageId, usize)>,
    /// The messages around it, outermost first.
    enclosing: Vec<(MessageId, usize)>,
    state: State,
    position: usize,
    elements_left: usize,
}

/// What is expected next.
#[derive(Debug)]
enum State {
    Key(Varint),
    Number(Varint),
    Length(Content, Varint),
    /// That many bytes of an opaque value.
    Value(usize),
}

#[derive(Debug, Clone, Copy, Default)]
struct Varint {
    value: u64,
    shift: u32,
}

impl Varint {
    /// Appends a byte; returns the number when it was the last.
    fn push(&mut self, byte: u8) -> Result<Option<u64>, ScanError> {
        if self.shift > 63 {
            return Err(ScanError::Malformed);
        }
        self.value |= u64::from(byte & 0x7f) << self.shift;
        self.shift += 7;
        Ok((byte & 0x80 == 0).then_some(self.value))
    }

    const fn is_partial(self) -> bool {
        self.shift > 0
    }
}

impl Scanner {
    /// For a message of that many bytes.
    pub(super) fn new(message: MessageId, length: usize, max_elements: usize) -> Self {
        let state = State::Key(Varint::default());
        Self {
            innermost: Some((message, length)),
            enclosing: Vec::new(),
            state,
            position: 0,
            elements_left: max_elements,
        }
    }

    /// Scans the next bytes of the message, which must not extend beyond its end.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Result<(), ScanError> {
        loop {
            self.pop_ended()?;
            if let State::Value(left) = &mut self.state {
                let step = (*left).min(bytes.len());
                *left -= step;
                self.position += step;
                if *left > 0 {
                    return Ok(());
                }
                self.state = State::Key(Varint::default());
                bytes = bytes.get(step..).unwrap_or_default();
                continue;
            }
            let Some((byte, rest)) = bytes.split_first() else { return Ok(()) };
            bytes = rest;
            self.position += 1;
            self.step(*byte)?;
        }
    }

    /// Pops the messages that end at the current position; none may end within a field.
    fn pop_ended(&mut self) -> Result<(), ScanError> {
        while let Some((_, end)) = self.innermost
            && end <= self.position
        {
            match &self.state {
                State::Key(key) if !key.is_partial() => self.innermost = self.enclosing.pop(),
                State::Value(0) => return Ok(()),
                State::Key(_) | State::Number(_) | State::Length(..) | State::Value(_) => {
                    return Err(ScanError::Malformed);
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, byte: u8) -> Result<(), ScanError> {
        match &mut self.state {
            State::Key(key) => {
                if let Some(key) = key.push(byte)? {
                    self.state = self.begin_field(key)?;
                }
            }
            State::Number(number) => {
                if number.push(byte)?.is_some() {
                    self.state = State::Key(Varint::default());
                }
            }
            State::Length(content, length) => {
                let content = *content;
                if let Some(length) = length.push(byte)? {
                    self.begin_content(content, length)?;
                }
            }
            State::Value(_) => {}
        }
        Ok(())
    }

    fn begin_field(&mut self, key: u64) -> Result<State, ScanError> {
        self.count(1)?;
        let number = u32::try_from(key >> 3).map_err(|_| ScanError::Malformed)?;
        let Some((message, _)) = self.innermost else { return Err(ScanError::Malformed) };
        match key & 7 {
            VARINT => Ok(State::Number(Varint::default())),
            EIGHT_BYTES => self.value(8),
            FOUR_BYTES => self.value(4),
            DELIMITED => Ok(State::Length(Contracts::get().field(message, number), Varint::default())),
            // Groups: the contracts have none, and their content would not be counted.
            _ => Err(ScanError::Malformed),
        }
    }

    fn begin_content(&mut self, content: Content, length: u64) -> Result<(), ScanError> {
        let length = usize::try_from(length).map_err(|_| ScanError::Malformed)?;
        self.state = match content {
            Content::Whole => self.value(length)?,
            Content::Packed => {
                self.count(length)?;
                self.value(length)?
            }
            Content::Message(message) => {
                self.value(length)?;
                // The innermost message counts, too.
                if self.enclosing.len() + 1 >= MAX_DEPTH {
                    return Err(ScanError::Malformed);
                }
                let end = self.position.saturating_add(length);
                self.enclosing.extend(self.innermost.replace((message, end)));
                State::Key(Varint::default())
            }
        };
        Ok(())
    }

    /// A value of that length, which must not extend beyond its message.
    fn value(&self, length: usize) -> Result<State, ScanError> {
        let fits = self.innermost.is_some_and(|(_, end)| length <= end.saturating_sub(self.position));
        if fits { Ok(State::Value(length)) } else { Err(ScanError::Malformed) }
    }

    fn count(&mut self, elements: usize) -> Result<(), ScanError> {
        self.elements_left = self.elements_left.checked_sub(elements).ok_or(ScanError::TooManyElements)?;
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
    fn scan(bytes: &[u8], most: usize, piece: usize) -> Result<(), ScanError> {
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
        assert_eq!(scan(&empty, 999, 7), Err(ScanError::TooManyElements));
    }

    #[test]
    fn what_stands_deeper_is_counted_too() {
        // The item, the request in it, its name, its tags.
        let nested = batch(&["a".to_owned()], 50);
        assert_eq!(scan(&nested, 53, 3), Ok(()));
        assert_eq!(scan(&nested, 52, 3), Err(ScanError::TooManyElements));
    }

    #[test]
    fn groups_are_refused() {
        assert_eq!(scan(&[0x0b, 0x0c], 100, 1), Err(ScanError::Malformed));
    }

    #[test]
    fn lengths_stay_within() {
        assert_eq!(scan(&[0x0a, 0x05, 0x00], 100, 1), Err(ScanError::Malformed));
        assert_eq!(
            scan(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], 100, 1),
            Err(ScanError::Malformed)
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

        /// The scanner accepts every message that prost decodes, unless it has too many elements or has groups.
        #[test]
        fn what_decodes_is_not_malformed(bytes in proptest::collection::vec(0_u8..20, 0..24)) {
            let has_groups = bytes.iter().any(|byte| matches!(byte & 7, 3 | 4));
            if !has_groups && BatchWriteRequest::decode(bytes.as_slice()).is_ok() {
                prop_assert_eq!(scan(&bytes, 1_000, 5), Ok(()));
            }
        }
    }
}
