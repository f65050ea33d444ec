//! A sorted list of rows under inserts and removals.

use std::cmp::Ordering;

/// An insert moves at most this many rows.
const MAX_CHUNK_ROWS: usize = 2_048;

/// Sorted rows in chunks, as the leaves of a B-tree of two levels.
#[derive(Debug, Clone, Default)]
pub(super) struct Order {
    chunks: Vec<Vec<u32>>,
    len: usize,
}

impl Order {
    /// From rows that are sorted already.
    pub(super) fn from_sorted(rows: &[u32]) -> Self {
        Self { chunks: rows.chunks(MAX_CHUNK_ROWS / 2).map(<[u32]>::to_vec).collect(), len: rows.len() }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn rows(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.chunks.iter().flatten().copied()
    }

    /// The same rows, a chunk at a time.
    pub(super) fn chunks(&self) -> impl DoubleEndedIterator<Item = &[u32]> + '_ {
        self.chunks.iter().map(Vec::as_slice)
    }

    /// The rows from an offset on.
    pub(super) fn rows_from(&self, offset: usize) -> impl Iterator<Item = u32> + '_ {
        let (mut left, mut first) = (offset, 0);
        for chunk in &self.chunks {
            if chunk.len() > left {
                break;
            }
            left -= chunk.len();
            first += 1;
        }
        let rest = self.chunks.get(first..).unwrap_or_default();
        rest.iter().flatten().copied().skip(left)
    }

    /// The rows in reverse, from an offset on that counts from the last row.
    pub(super) fn rows_back_from(&self, offset: usize) -> impl Iterator<Item = u32> + '_ {
        let (mut left, mut chunks) = (offset, self.chunks.len());
        for chunk in self.chunks.iter().rev() {
            if chunk.len() > left {
                break;
            }
            left -= chunk.len();
            chunks -= 1;
        }
        let rest = self.chunks.get(..chunks).unwrap_or_default();
        rest.iter().flatten().rev().copied().skip(left)
    }

    /// The rows from the lower bound of a key on; `to` compares a row with the key.
    pub(super) fn first_from(&self, to: impl Fn(u32) -> Ordering) -> impl Iterator<Item = u32> + '_ {
        let (chunk, place) = self.find(&to);
        let chunks = self.chunks.get(chunk..).unwrap_or_default();
        chunks.iter().flatten().copied().skip(place)
    }

    /// The offset of the lower bound of a key; `to` compares a row with the key.
    pub(super) fn place(&self, to: impl Fn(u32) -> Ordering) -> usize {
        let (chunk, place) = self.find(&to);
        self.chunks.iter().take(chunk).map(Vec::len).sum::<usize>() + place
    }

    /// Inserts a row at its sorted position; `to` compares another row with it.
    pub(super) fn insert(&mut self, row: u32, to: impl Fn(u32) -> Ordering) {
        let (mut number, mut place) = self.find(&to);
        if number == self.chunks.len() {
            match self.chunks.last() {
                None => self.chunks.push(Vec::new()),
                Some(last) => (number, place) = (number - 1, last.len()),
            }
        }
        let Some(chunk) = self.chunks.get_mut(number) else { return };
        chunk.insert(place.min(chunk.len()), row);
        self.len += 1;
        if chunk.len() > MAX_CHUNK_ROWS {
            let half = chunk.split_off(MAX_CHUNK_ROWS / 2);
            self.chunks.insert(number + 1, half);
        }
    }

    /// Removes a row; `to` compares another row with it, by the key that it was inserted with.
    pub(super) fn remove(&mut self, row: u32, to: impl Fn(u32) -> Ordering) {
        let (number, place) = self.find(&to);
        let Some(chunk) = self.chunks.get_mut(number) else { return };
        if chunk.get(place) != Some(&row) {
            return;
        }
        chunk.remove(place);
        self.len -= 1;
        if chunk.is_empty() {
            self.chunks.remove(number);
        }
    }

    fn find(&self, to: &impl Fn(u32) -> Ordering) -> (usize, usize) {
        let is_before = |row: Option<&u32>| row.is_some_and(|row| to(*row) == Ordering::Less);
        let number = self.chunks.partition_point(|chunk| is_before(chunk.last()));
        let chunk = self.chunks.get(number).map_or(&[][..], Vec::as_slice);
        (number, chunk.partition_point(|row| is_before(Some(row))))
    }

    pub(super) fn bytes(&self) -> usize {
        let rows: usize = self.chunks.iter().map(Vec::capacity).sum();
        rows * size_of::<u32>() + self.chunks.capacity() * size_of::<Vec<u32>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_in_order() {
        let key = |row: u32| row.wrapping_mul(2_654_435_761) >> 4;
        let to = |row: u32| move |other: u32| key(other).cmp(&key(row));
        let mut order = Order::default();
        let mut model: Vec<u32> = (0..9_000).collect();
        for row in &model {
            order.insert(*row, to(*row));
        }
        for row in (0..9_000).step_by(3) {
            order.remove(row, to(row));
            order.remove(row, to(row));
        }
        model.retain(|row| row % 3 != 0);
        model.sort_by_key(|row| key(*row));
        assert_eq!(order.rows().collect::<Vec<_>>(), model);
        assert_eq!(order.len(), model.len());
        assert_eq!(order.chunks().collect::<Vec<_>>().concat(), model);
        for from in [0, 1, 1_024, 3_000, 5_999, 6_000, 7_000] {
            let there: Vec<u32> = model.iter().copied().skip(from).collect();
            assert_eq!(order.rows_from(from).collect::<Vec<_>>(), there, "from {from}");
            let back: Vec<u32> = model.iter().rev().copied().skip(from).collect();
            assert_eq!(order.rows_back_from(from).collect::<Vec<_>>(), back, "back from {from}");
        }
        let some = model[1_234];
        assert_eq!(order.first_from(to(some)).next(), Some(some));
        assert_eq!(order.place(to(some)), 1_234);
        let again = Order::from_sorted(&model);
        assert_eq!(again.rows().collect::<Vec<_>>(), model);
    }
}
