//! Aggregates of numbers: count, sum, minimum and maximum.

const LIMB_BITS: usize = 32;
/// The smallest positive double is 2 to the power of minus this.
const POINT: usize = 1_074;
/// The bits of the largest double before the binary point, and of the maximum number of summands.
const WHOLE_BITS: usize = 1_024 + 64;
const LIMBS: usize = (POINT + WHOLE_BITS).div_ceil(LIMB_BITS);
const MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;
/// Integers below this are exact in a double, and are not rounded.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// A sum of doubles that does not depend on the order of additions, which differs between engines and in-memory
/// columns. It is exact until it is read: a fixed-point number in multiples of the smallest double.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExactSum {
    limbs: [i64; LIMBS],
}

impl ExactSum {
    const fn new() -> Self {
        Self { limbs: [0; LIMBS] }
    }

    /// Adds a finite number `times` times.
    fn add(&mut self, number: f64, times: u32) {
        let bits = number.to_bits();
        let exponent = (bits >> MANTISSA_BITS) as usize & 0x7FF;
        let fraction = bits & ((1 << MANTISSA_BITS) - 1);
        // A subnormal number has no implied leading bit.
        let (mantissa, place) = match exponent {
            0 => (fraction, 0),
            _ => (fraction | 1 << MANTISSA_BITS, exponent - 1),
        };
        let (first, shift) = (place / LIMB_BITS, place % LIMB_BITS);
        let mut left = (u128::from(mantissa) << shift) * u128::from(times);
        let mut carry = 0_i64;
        for limb in self.limbs.iter_mut().skip(first) {
            if left == 0 && carry == 0 {
                break;
            }
            let part = (left & u128::from(u32::MAX)) as i64;
            left >>= LIMB_BITS;
            let whole = *limb + carry + if number.is_sign_negative() { -part } else { part };
            *limb = whole & i64::from(u32::MAX);
            carry = whole >> LIMB_BITS;
        }
        // The remaining carry is the sign, which is in the last limb.
        if let Some(last) = self.limbs.last_mut() {
            *last += carry << LIMB_BITS;
        }
    }

    /// The nearest double; infinite on overflow.
    fn read(&self) -> f64 {
        let is_negative = self.limbs.last().is_some_and(|last| *last < 0);
        let mut limbs = self.limbs;
        if is_negative {
            let mut carry = 0;
            for limb in &mut limbs {
                let whole = carry - *limb;
                *limb = whole & i64::from(u32::MAX);
                carry = whole >> LIMB_BITS;
            }
        }
        let Some(top) = limbs.iter().rposition(|limb| *limb != 0) else { return 0.0 };
        let lowest = top.saturating_sub(2);
        let head = limbs.iter().take(top + 1).skip(lowest).rev();
        let mut mantissa = head.fold(0_u128, |sum, limb| sum << LIMB_BITS | *limb as u128);
        // Three limbs have more bits than a double; for rounding it matters only whether any lower bit is set.
        mantissa |= u128::from(limbs.iter().take(lowest).any(|limb| *limb != 0));
        let power = (lowest * LIMB_BITS) as i32 - POINT as i32;
        let magnitude = mantissa as f64 * two_to(power / 2) * two_to(power - power / 2);
        if is_negative { -magnitude } else { magnitude }
    }
}

/// A power of two that is a normal double.
fn two_to(power: i32) -> f64 {
    const BIAS: i32 = 1_023;
    f64::from_bits(u64::from((power + BIAS).unsigned_abs()) << MANTISSA_BITS)
}

/// The aggregates of numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    sum: ExactSum,
    least: f64,
    greatest: f64,
}

impl Default for Tally {
    fn default() -> Self {
        Self { count: 0, sum: ExactSum::new(), least: f64::INFINITY, greatest: f64::NEG_INFINITY }
    }
}

impl Tally {
    /// Adds a finite number `times` times.
    pub(crate) fn add(&mut self, number: f64, times: u32) {
        // Turns -0 into 0.
        let number = number + 0.0;
        self.count += u64::from(times);
        self.sum.add(number, times);
        self.least = self.least.min(number);
        self.greatest = self.greatest.max(number);
    }

    /// `None` on overflow.
    pub(crate) fn sum(&self) -> Option<f64> {
        Some(readable(self.sum.read())).filter(|sum| sum.is_finite())
    }

    /// `None` without numbers.
    pub(crate) fn average(&self) -> Option<f64> {
        let average = self.sum.read() / self.count as f64;
        Some(readable(average)).filter(|average| average.is_finite())
    }

    /// The minimum and the maximum; `None` without numbers.
    pub(crate) fn bounds(&self) -> Option<(f64, f64)> {
        (self.count > 0).then_some((self.least, self.greatest))
    }
}

/// Rounds a result to the 15 digits of a decimal that a double preserves: .1 and .2 make .3.
fn readable(number: f64) -> f64 {
    if number.fract() == 0.0 && number.abs() < MAX_WHOLE || !number.is_finite() {
        return number + 0.0;
    }
    format!("{number:.14e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(numbers: &[f64]) -> f64 {
        let mut sum = ExactSum::new();
        numbers.iter().for_each(|number| sum.add(*number, 1));
        sum.read()
    }

    #[test]
    fn sums_are_exact() {
        let least = f64::from_bits(1);
        assert_eq!(sum(&[]), 0.0);
        assert_eq!(sum(&[0.1, 0.2]), 0.1 + 0.2);
        assert_eq!(sum(&[1e308, 1.0, -1e308]), 1.0);
        assert_eq!(sum(&[1e308, 1e308, -1e308]), 1e308);
        assert_eq!(sum(&[f64::MAX, -f64::MAX]), 0.0);
        assert_eq!(sum(&[f64::MAX, least, -f64::MAX]), least);
        assert_eq!(sum(&[-least, -least]), -f64::from_bits(2));
        assert_eq!(sum(&[f64::MIN_POSITIVE, -least]), f64::from_bits(f64::MIN_POSITIVE.to_bits() - 1));
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(sum(&[f64::MIN, f64::MIN]), f64::NEG_INFINITY);
        assert_eq!(sum(&[f64::MAX]), f64::MAX);
        // A tie rounds to even, a little more than a tie rounds up.
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0]), 1.0);
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0, least]), 1.0 + f64::EPSILON);
        assert_eq!(sum(&[-1.0, -f64::EPSILON / 2.0, -least]), -1.0 - f64::EPSILON);
    }

    #[test]
    fn what_is_told_is_what_people_add() {
        let mut tally = Tally::default();
        assert_eq!((tally.sum(), tally.average(), tally.bounds()), (Some(0.0), None, None));
        for number in [0.1, 0.2, -0.0] {
            tally.add(number, 1);
        }
        assert_eq!((tally.sum(), tally.average()), (Some(0.3), Some(0.1)));
        assert_eq!(tally.bounds(), Some((0.0, 0.2)));
        let mut whole = Tally::default();
        whole.add(9_007_199_254_740_991.0, 1);
        assert_eq!(whole.sum(), Some(9_007_199_254_740_991.0));
        whole.add(f64::MAX, 3);
        assert_eq!((whole.sum(), whole.count), (None, 4));
    }

    fn number() -> impl Strategy<Value = f64> {
        let any = any::<u64>().prop_map(f64::from_bits).prop_filter("a number", |one| one.is_finite());
        prop_oneof![any, (-1e6..1e6_f64), (-9..9_i8).prop_map(f64::from)]
    }

    proptest! {
        #[test]
        fn the_order_does_not_matter(numbers in prop::collection::vec((number(), 1..9_u32), 0..40)) {
            let (mut one, mut other, mut single) = (Tally::default(), Tally::default(), Tally::default());
            for (number, times) in &numbers {
                one.add(*number, *times);
                (0..*times).for_each(|_| single.add(*number, 1));
            }
            numbers.iter().rev().for_each(|(number, times)| other.add(*number, *times));
            prop_assert_eq!(&one, &other);
            prop_assert_eq!(one, single);
        }

        #[test]
        fn whole_numbers_are_summed_as_such(numbers in prop::collection::vec(-1_000_000_000..1_000_000_000_i64, 0..40)) {
            let doubles: Vec<f64> = numbers.iter().map(|number| *number as f64).collect();
            prop_assert_eq!(sum(&doubles), numbers.iter().sum::<i64>() as f64);
        }
    }
}
