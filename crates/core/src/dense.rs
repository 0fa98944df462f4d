//! An ordered map for millions of small entries. Ascending keys fill its blocks, where a B-tree leaves them half empty;
//! inserting an entry in the middle moves no more than one block.

/// The most entries of a block.
const BLOCK: usize = 64;

/// A map from small keys to small values, in the order of the keys.
#[derive(Debug, Clone)]
pub(crate) struct DenseMap<K, V> {
    /// Blocks of entries in order, none of them empty. The name of each is at most its smallest key, and larger than
    /// all earlier keys.
    blocks: Vec<(K, Vec<(K, V)>)>,
    len: usize,
}

impl<K, V> Default for DenseMap<K, V> {
    fn default() -> Self {
        DenseMap { blocks: Vec::new(), len: 0 }
    }
}

impl<K: Ord + Copy, V> DenseMap<K, V> {
    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The block that may contain a key.
    fn block_of(&self, key: &K) -> Option<usize> {
        self.blocks.partition_point(|(name, _)| name <= key).checked_sub(1)
    }

    /// The position of an entry: its block, and its index within the block.
    fn find(&self, key: &K) -> Option<(usize, usize)> {
        let block = self.block_of(key)?;
        let (_, entries) = self.blocks.get(block)?;
        Some((block, entries.binary_search_by(|(other, _)| other.cmp(key)).ok()?))
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let (block, at) = self.find(key)?;
        self.blocks.get(block)?.1.get(at).map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (block, at) = self.find(key)?;
        self.blocks.get_mut(block)?.1.get_mut(at).map(|(_, value)| value)
    }

    /// Inserts an entry; returns the earlier value of its key.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let found = self.block_of(&key);
        let Some((number, (_, block))) = found.and_then(|number| Some((number, self.blocks.get_mut(number)?))) else {
            self.insert_before_all(key, value);
            return None;
        };
        match block.binary_search_by(|(other, _)| other.cmp(&key)) {
            Ok(at) => return block.get_mut(at).map(|(_, old)| std::mem::replace(old, value)),
            Err(at) if block.len() < BLOCK => block.insert(at, (key, value)),
            // Ascending keys leave the block full.
            Err(at) if at == block.len() => self.blocks.insert(number + 1, (key, vec![(key, value)])),
            Err(at) => {
                let mut upper = block.split_off(BLOCK / 2);
                match at.checked_sub(BLOCK / 2) {
                    Some(at) if at > 0 => upper.insert(at, (key, value)),
                    _ => block.insert(at, (key, value)),
                }
                if let Some(name) = upper.first().map(|(first, _)| *first) {
                    self.blocks.insert(number + 1, (name, upper));
                }
            }
        }
        self.len += 1;
        None
    }

    /// Inserts an entry whose key is smaller than all others.
    fn insert_before_all(&mut self, key: K, value: V) {
        match self.blocks.first_mut().filter(|(_, first)| first.len() < BLOCK) {
            Some((name, first)) => {
                *name = key;
                first.insert(0, (key, value));
            }
            None => self.blocks.insert(0, (key, vec![(key, value)])),
        }
        self.len += 1;
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let (number, at) = self.find(key)?;
        let (_, block) = self.blocks.get_mut(number)?;
        let (_, value) = block.remove(at);
        self.len -= 1;
        if block.is_empty() {
            self.blocks.remove(number);
        } else if block.len() * 4 < block.capacity() {
            block.shrink_to(block.len() * 2);
        }
        Some(value)
    }

    /// The entry with the smallest key.
    pub(crate) fn first(&self) -> Option<(&K, &V)> {
        let (_, block) = self.blocks.first()?;
        block.first().map(|(key, value)| (key, value))
    }

    /// All entries, in the order of their keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> + Clone {
        self.blocks.iter().flat_map(|(_, block)| block).map(|(key, value)| (key, value))
    }

    /// All entries, in the order of their keys, with mutable values.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.blocks.iter_mut().flat_map(|(_, block)| block).map(|(key, value)| (&*key, value))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_comes_in_order_leaves_no_block_half_empty() {
        let mut map = DenseMap::default();
        for key in 0..1_000_i64 {
            map.insert(key, ());
        }
        assert_eq!(map.blocks.len(), 1_000_usize.div_ceil(BLOCK));
        assert_eq!(map.len(), 1_000);
    }

    proptest! {
        #[test]
        fn it_is_the_map_that_a_b_tree_is(steps in prop::collection::vec((any::<bool>(), 0..400_i64, any::<u8>()), 0..2_000)) {
            let (mut dense, mut tree) = (DenseMap::default(), BTreeMap::new());
            for (puts, key, value) in steps {
                if puts {
                    prop_assert_eq!(dense.insert(key, value), tree.insert(key, value));
                } else {
                    prop_assert_eq!(dense.remove(&key), tree.remove(&key));
                }
                prop_assert_eq!(dense.get(&key), tree.get(&key));
                prop_assert_eq!(dense.get_mut(&key), tree.get_mut(&key));
                prop_assert_eq!(dense.first(), tree.first_key_value());
                prop_assert_eq!(dense.len(), tree.len());
            }
            prop_assert!(dense.iter().eq(tree.iter()));
            prop_assert!(dense.blocks.iter().all(|(_, block)| !block.is_empty() && block.len() <= BLOCK));
        }
    }
}
