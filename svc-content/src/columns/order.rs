//! Rows in an order that is kept while rows come and go.

use std::cmp::Ordering;

/// Rows of a piece: to insert one moves no more than these.
const PIECE: usize = 2_048;

/// Rows in order, in pieces.
#[derive(Debug, Clone, Default)]
pub(super) struct Order {
    pieces: Vec<Vec<u32>>,
    len: usize,
}

impl Order {
    /// Of rows that are in order.
    pub(super) fn of_sorted(rows: &[u32]) -> Self {
        Self { pieces: rows.chunks(PIECE / 2).map(<[u32]>::to_vec).collect(), len: rows.len() }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn rows(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.pieces.iter().flatten().copied()
    }

    /// The same rows, a piece at a time.
    pub(super) fn pieces(&self) -> impl DoubleEndedIterator<Item = &[u32]> + '_ {
        self.pieces.iter().map(Vec::as_slice)
    }

    /// From the row of that number on.
    pub(super) fn rows_from(&self, number: usize) -> impl Iterator<Item = u32> + '_ {
        let (mut left, mut first) = (number, 0);
        for piece in &self.pieces {
            if piece.len() > left {
                break;
            }
            left -= piece.len();
            first += 1;
        }
        let kept = self.pieces.get(first..).unwrap_or_default();
        kept.iter().flatten().copied().skip(left)
    }

    /// From the row of that number on, backwards; the last has the number 0.
    pub(super) fn rows_back_from(&self, number: usize) -> impl Iterator<Item = u32> + '_ {
        let (mut left, mut pieces) = (number, self.pieces.len());
        for piece in self.pieces.iter().rev() {
            if piece.len() > left {
                break;
            }
            left -= piece.len();
            pieces -= 1;
        }
        let kept = self.pieces.get(..pieces).unwrap_or_default();
        kept.iter().flatten().rev().copied().skip(left)
    }

    /// The first row that does not come before what is looked for; `to` compares a row with it.
    pub(super) fn first_from(&self, to: impl Fn(u32) -> Ordering) -> impl Iterator<Item = u32> + '_ {
        let (piece, place) = self.find(&to);
        let pieces = self.pieces.get(piece..).unwrap_or_default();
        pieces.iter().flatten().copied().skip(place)
    }

    /// How many rows come before what is looked for; `to` compares a row with it.
    pub(super) fn place(&self, to: impl Fn(u32) -> Ordering) -> usize {
        let (piece, place) = self.find(&to);
        self.pieces.iter().take(piece).map(Vec::len).sum::<usize>() + place
    }

    /// Puts a row where it belongs; `to` compares another with it.
    pub(super) fn insert(&mut self, row: u32, to: impl Fn(u32) -> Ordering) {
        let (mut number, mut place) = self.find(&to);
        if number == self.pieces.len() {
            match self.pieces.last() {
                None => self.pieces.push(Vec::new()),
                Some(last) => (number, place) = (number - 1, last.len()),
            }
        }
        let Some(piece) = self.pieces.get_mut(number) else { return };
        piece.insert(place.min(piece.len()), row);
        self.len += 1;
        if piece.len() > PIECE {
            let half = piece.split_off(PIECE / 2);
            self.pieces.insert(number + 1, half);
        }
    }

    /// Takes a row out; `to` compares another with it as it was when it was put in.
    pub(super) fn remove(&mut self, row: u32, to: impl Fn(u32) -> Ordering) {
        let (number, place) = self.find(&to);
        let Some(piece) = self.pieces.get_mut(number) else { return };
        if piece.get(place) != Some(&row) {
            return;
        }
        piece.remove(place);
        self.len -= 1;
        if piece.is_empty() {
            self.pieces.remove(number);
        }
    }

    fn find(&self, to: &impl Fn(u32) -> Ordering) -> (usize, usize) {
        let is_before = |row: Option<&u32>| row.is_some_and(|row| to(*row) == Ordering::Less);
        let number = self.pieces.partition_point(|piece| is_before(piece.last()));
        let piece = self.pieces.get(number).map_or(&[][..], Vec::as_slice);
        (number, piece.partition_point(|row| is_before(Some(row))))
    }

    pub(super) fn bytes(&self) -> usize {
        let rows: usize = self.pieces.iter().map(Vec::capacity).sum();
        rows * size_of::<u32>() + self.pieces.capacity() * size_of::<Vec<u32>>()
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
        assert_eq!(order.pieces().collect::<Vec<_>>().concat(), model);
        for from in [0, 1, 1_024, 3_000, 5_999, 6_000, 7_000] {
            let there: Vec<u32> = model.iter().copied().skip(from).collect();
            assert_eq!(order.rows_from(from).collect::<Vec<_>>(), there, "from {from}");
            let back: Vec<u32> = model.iter().rev().copied().skip(from).collect();
            assert_eq!(order.rows_back_from(from).collect::<Vec<_>>(), back, "back from {from}");
        }
        let some = model[1_234];
        assert_eq!(order.first_from(to(some)).next(), Some(some));
        assert_eq!(order.place(to(some)), 1_234);
        let again = Order::of_sorted(&model);
        assert_eq!(again.rows().collect::<Vec<_>>(), model);
    }
}
