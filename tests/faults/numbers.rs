//! A seeded random number generator (SplitMix64): the same seed makes the same choices.

/// A stream of numbers.
#[derive(Debug)]
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// An independent stream for a consumer whose number of draws depends on timing.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    /// A side stream that does not advance this one: choices that are added later leave the others of a recorded seed
    /// unchanged.
    pub(crate) fn side_stream(&self) -> Self {
        Self(!self.0)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below the limit.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(crate) fn pick<'a, T>(&mut self, among: &'a [T]) -> &'a T {
        let place = usize::try_from(self.below(among.len() as u64)).unwrap();
        &among[place]
    }
}
