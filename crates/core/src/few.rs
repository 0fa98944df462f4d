//! Sets that have one member in most cases, which is stored in place.

use std::collections::BTreeSet;

/// An ordered set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(clippy::box_collection, reason = "millions of these hold one member or none, and are to be small")]
pub(crate) enum Few<T> {
    #[default]
    None,
    One(T),
    Many(Box<BTreeSet<T>>),
}

impl<T: Ord> Few<T> {
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Few::None => true,
            Few::One(_) => false,
            Few::Many(many) => many.is_empty(),
        }
    }

    /// Returns whether it is new.
    pub(crate) fn insert(&mut self, member: T) -> bool {
        match self {
            Few::One(one) if *one == member => false,
            Few::Many(many) => many.insert(member),
            Few::None => {
                *self = Few::One(member);
                true
            }
            Few::One(_) => {
                let Few::One(one) = std::mem::take(self) else { return false };
                *self = Few::Many(Box::new(BTreeSet::from([one, member])));
                true
            }
        }
    }

    /// Returns whether it was a member.
    pub(crate) fn remove(&mut self, member: &T) -> bool {
        match self {
            Few::One(one) if one == member => {
                *self = Few::None;
                true
            }
            Few::Many(many) => {
                let was_there = many.remove(member);
                if many.len() <= 1 {
                    *self = many.pop_first().map_or(Few::None, Few::One);
                }
                was_there
            }
            _ => false,
        }
    }

    /// The members, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let (one, many) = match self {
            Few::None => (None, None),
            Few::One(one) => (Some(one), None),
            Few::Many(many) => (None, Some(many.iter())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    /// The smallest member.
    pub(crate) fn first(&self) -> Option<&T> {
        self.iter().next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_set_of_any_size() {
        let mut few = Few::default();
        for member in [3, 1, 2, 1] {
            few.insert(member);
        }
        assert_eq!(few.iter().copied().collect::<Vec<_>>(), [1, 2, 3]);
        few.remove(&1);
        few.remove(&7);
        few.remove(&3);
        assert_eq!(few, Few::One(2));
        assert_eq!(few.first(), Some(&2));
        few.remove(&2);
        assert!(few.is_empty());
    }
}
