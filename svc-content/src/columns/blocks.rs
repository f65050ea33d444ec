//! One variable-length list per row, stored in blocks of 64 rows, so that replacing a list moves only its block.

use super::bitmap::{LANES, split};

#[derive(Debug, Clone)]
pub(super) struct Block<T> {
    /// The end offset of each row's list within `items`.
    ends: [u32; LANES],
    items: Vec<T>,
}

impl<T> Block<T> {
    fn start(&self, lane: usize) -> usize {
        let before = lane.checked_sub(1).and_then(|lane| self.ends.get(lane));
        before.map_or(0, |end| *end as usize)
    }

    fn end(&self, lane: usize) -> usize {
        self.ends.get(lane).map_or(0, |end| *end as usize)
    }

    /// The list of one row.
    pub(super) fn list(&self, lane: usize) -> &[T] {
        self.items.get(self.start(lane)..self.end(lane)).unwrap_or_default()
    }

    /// The lists of all rows, in row order.
    pub(super) fn lists(&self) -> impl Iterator<Item = &[T]> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let list = self.items.get(start..*end as usize).unwrap_or_default();
            start = *end as usize;
            list
        })
    }

    /// The concatenated lists of all rows.
    pub(super) fn items(&self) -> &[T] {
        &self.items
    }

    /// The lane whose list holds the item at an offset, and the end offset of that list.
    pub(super) fn owner(&self, place: usize) -> (usize, usize) {
        let lane = self.ends.partition_point(|end| *end as usize <= place);
        (lane, self.end(lane))
    }
}

#[derive(Debug, Clone)]
pub(super) struct Blocks<T> {
    blocks: Vec<Block<T>>,
}

impl<T> Default for Blocks<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Blocks<T> {
    pub(super) const fn new() -> Self {
        Self { blocks: Vec::new() }
    }
}

impl<T: Copy> Blocks<T> {
    /// The list of a row; empty if it has none.
    pub(super) fn list(&self, row: u32) -> &[T] {
        let (block, lane) = split(row);
        self.blocks.get(block).map_or(&[], |block| block.list(lane))
    }

    pub(super) fn block(&self, number: usize) -> Option<&Block<T>> {
        self.blocks.get(number)
    }

    /// An exclusive upper bound of the rows that have a list.
    pub(super) fn rows(&self) -> u32 {
        u32::try_from(self.blocks.len() * LANES).unwrap_or(u32::MAX)
    }

    /// Replaces the list of a row.
    pub(super) fn set(&mut self, row: u32, list: &[T]) {
        let (number, lane) = split(row);
        while self.blocks.len() <= number {
            self.blocks.push(Block { ends: [0; LANES], items: Vec::new() });
        }
        let Some(block) = self.blocks.get_mut(number) else { return };
        let (start, end) = (block.start(lane), block.end(lane));
        if start == end && list.is_empty() {
            return;
        }
        if start == block.items.len() {
            // Appending is the common case of the initial load.
            block.items.extend_from_slice(list);
        } else {
            block.items.splice(start..end, list.iter().copied());
        }
        let (removed, added) = ((end - start) as u32, list.len() as u32);
        for end in block.ends.iter_mut().skip(lane) {
            *end = *end + added - removed;
        }
        if lane == LANES - 1 {
            block.items.shrink_to_fit();
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let items: usize = self.blocks.iter().map(|block| block.items.capacity() * size_of::<T>()).sum();
        self.blocks.capacity() * size_of::<Block<T>>() + items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_those_that_were_set_last() {
        let mut blocks = Blocks::default();
        let mut model: Vec<Vec<u16>> = vec![Vec::new(); 150];
        let mut state = 7_u64;
        for _ in 0..2_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let row = (state >> 33) as usize % model.len();
            let list: Vec<u16> = (0..(state >> 20) as u16 % 4).collect();
            blocks.set(row as u32, &list);
            model[row] = list;
        }
        for (row, list) in model.iter().enumerate() {
            assert_eq!(blocks.list(row as u32), list.as_slice(), "row {row}");
        }
        for (number, model) in model.chunks(LANES).enumerate() {
            let lists: Vec<&[u16]> = blocks.block(number).unwrap().lists().take(model.len()).collect();
            assert_eq!(lists, model);
        }
        assert!(blocks.list(9_999).is_empty());
    }
}
