//! A stable merge sort with fallible comparisons: the standard library's cannot be interrupted.

use std::cmp::Ordering;

/// Shorter runs are extended to this length by insertion sort.
const MIN_RUN: usize = 12;

/// Sorts items. For `n` items it makes at most about `n * log2(n)` comparisons, and `n` if they are already in order.
pub(super) fn sort<T: Clone, E>(
    items: &mut Vec<T>,
    mut compare: impl FnMut(&T, &T) -> Result<Ordering, E>,
) -> Result<(), E> {
    let mut ends = runs(items, &mut compare)?;
    let mut merged = Vec::with_capacity(if ends.len() > 1 { items.len() } else { 0 });
    while ends.len() > 1 {
        let mut next = Vec::with_capacity(ends.len().div_ceil(2));
        let mut rest = items.as_slice();
        let mut start = 0;
        for pair in ends.chunks(2) {
            let end = pair.last().copied().unwrap_or(start);
            let middle = pair.first().copied().unwrap_or(end);
            let (both, after) = rest.split_at_checked(end - start).unwrap_or((rest, &[]));
            let (left, right) = both.split_at_checked(middle - start).unwrap_or((both, &[]));
            merge(left, right, &mut merged, &mut compare)?;
            next.push(end);
            (rest, start) = (after, end);
        }
        std::mem::swap(items, &mut merged);
        merged.clear();
        ends = next;
    }
    Ok(())
}

/// Finds or builds sorted runs; returns the end of each.
fn runs<T, E>(
    items: &mut [T],
    compare: &mut impl FnMut(&T, &T) -> Result<Ordering, E>,
) -> Result<Vec<usize>, E> {
    let (mut ends, mut start) = (Vec::new(), 0);
    let mut rest = items;
    while !rest.is_empty() {
        let in_order = run(rest, compare)?;
        let length = in_order.max(MIN_RUN.min(rest.len()));
        let (now, after) = rest.split_at_mut(length);
        for at in in_order..length {
            insert(now, at, compare)?;
        }
        start += length;
        ends.push(start);
        rest = after;
    }
    Ok(ends)
}

/// The length of the sorted run at the start; a strictly descending one is reversed.
fn run<T, E>(items: &mut [T], compare: &mut impl FnMut(&T, &T) -> Result<Ordering, E>) -> Result<usize, E> {
    let mut pairs = items.iter().zip(items.iter().skip(1));
    let Some((first, second)) = pairs.next() else { return Ok(items.len()) };
    // Reversing equal items would not be stable.
    let falls = compare(first, second)? == Ordering::Greater;
    let mut length = 2;
    for (left, right) in pairs {
        if (compare(left, right)? == Ordering::Greater) != falls {
            break;
        }
        length += 1;
    }
    if let Some(falling) = items.get_mut(..length).filter(|_| falls) {
        falling.reverse();
    }
    Ok(length)
}

/// Inserts the item at a position into the sorted items before it, after its equals.
fn insert<T, E>(
    items: &mut [T],
    at: usize,
    compare: &mut impl FnMut(&T, &T) -> Result<Ordering, E>,
) -> Result<(), E> {
    let (mut from, mut to) = (0, at);
    while from < to {
        let middle = from.midpoint(to);
        let (Some(there), Some(item)) = (items.get(middle), items.get(at)) else { break };
        match compare(there, item)? {
            Ordering::Greater => to = middle,
            Ordering::Less | Ordering::Equal => from = middle + 1,
        }
    }
    if let Some(moved) = items.get_mut(from..=at) {
        moved.rotate_right(1);
    }
    Ok(())
}

/// Merges two adjacent runs.
fn merge<T: Clone, E>(
    left: &[T],
    right: &[T],
    merged: &mut Vec<T>,
    compare: &mut impl FnMut(&T, &T) -> Result<Ordering, E>,
) -> Result<(), E> {
    let (mut lefts, mut rights) = (left.iter(), right.iter());
    // Runs that do not overlap need no merge.
    let apart = match (left.last(), right.first()) {
        (Some(last), Some(first)) => compare(last, first)? != Ordering::Greater,
        (Some(_), None) | (None, _) => true,
    };
    while let (false, Some(left), Some(right)) = (apart, lefts.as_slice().first(), rights.as_slice().first())
    {
        let taken = match compare(left, right)? {
            Ordering::Greater => rights.next(),
            Ordering::Less | Ordering::Equal => lefts.next(),
        };
        merged.extend(taken.cloned());
    }
    merged.extend_from_slice(lefts.as_slice());
    merged.extend_from_slice(rights.as_slice());
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sorts_as_the_standard_library_does(
            items in prop::collection::vec((0_u8..20, any::<u16>()), 0..400),
            ordered in 0_usize..3,
        ) {
            let mut items = items;
            match ordered {
                0 => items.sort_by_key(|item| item.0),
                1 => items.sort_by_key(|item| std::cmp::Reverse(item.0)),
                _ => {}
            }
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            let mut compared = 0_u32;
            let length = items.len();
            sort(&mut items, |left, right| {
                compared += 1;
                Ok::<_, ()>(left.0.cmp(&right.0))
            })
            .unwrap();
            prop_assert_eq!(items, expected);
            let most = length * (2 + length.checked_ilog2().unwrap_or_default() as usize);
            prop_assert!(compared as usize <= most, "{} comparisons of {} items", compared, length);
        }

        #[test]
        fn ends_with_its_first_error(items in prop::collection::vec(any::<u8>(), 2..300), most in 0_u32..300) {
            let (mut items, mut compared) = (items, 0);
            let ended = sort(&mut items, |left, right| {
                compared += 1;
                if compared > most { Err(()) } else { Ok(left.cmp(right)) }
            });
            prop_assert!(compared <= most + 1);
            prop_assert_eq!(ended.is_err(), compared > most);
        }
    }
}
