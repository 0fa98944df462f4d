//! A list that only grows, in blocks: no entry is moved when another comes. Entries may be removed, and leave their places empty; a block of
//! which all were removed takes no memory.

/// The number of entries of a block.
const BLOCK: usize = 1024;

/// A list that only grows.
#[derive(Debug, Clone)]
pub(super) struct Blocks<T> {
    /// All blocks but the last have all their places, or none where all entries were removed.
    blocks: Vec<Vec<Option<T>>>,
}

impl<T> Default for Blocks<T> {
    fn default() -> Self {
        Blocks { blocks: Vec::new() }
    }
}

impl<T> Blocks<T> {
    /// The number of places.
    pub(super) fn len(&self) -> usize {
        self.blocks.last().map_or(0, |last| (self.blocks.len() - 1) * BLOCK + last.len())
    }

    pub(super) fn get(&self, index: usize) -> Option<&T> {
        self.blocks.get(index / BLOCK)?.get(index % BLOCK)?.as_ref()
    }

    pub(super) fn last(&self) -> Option<&T> {
        self.blocks.last()?.last()?.as_ref()
    }

    /// Removes an entry; its place stays.
    pub(super) fn remove(&mut self, index: usize) -> Option<T> {
        let is_last = index / BLOCK + 1 == self.blocks.len();
        let block = self.blocks.get_mut(index / BLOCK)?;
        let removed = block.get_mut(index % BLOCK)?.take();
        // Entries are mostly removed in their order, so that the last one tells most.
        if !is_last && block.iter().rev().all(Option::is_none) {
            *block = Vec::new();
        }
        removed
    }

    pub(super) fn push(&mut self, entry: T) {
        match self.blocks.last_mut().filter(|last| last.len() < BLOCK) {
            Some(last) => last.push(Some(entry)),
            None => {
                // The first one may stay small.
                let mut block = Vec::with_capacity(if self.blocks.is_empty() { 0 } else { BLOCK });
                block.push(Some(entry));
                self.blocks.push(block);
            }
        }
    }

    /// All entries.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.blocks.iter().flatten().flatten()
    }

    /// The entries from an index on.
    pub(super) fn from(&self, index: usize) -> impl Iterator<Item = &T> {
        let (first, rest) = self.blocks.get(index / BLOCK..).and_then(<[_]>::split_first).unzip();
        let first = first.into_iter().flatten().skip(index % BLOCK);
        first.chain(rest.into_iter().flatten().flatten()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_list_of_what_was_pushed() {
        let mut blocks = Blocks::default();
        assert_eq!((blocks.len(), blocks.last()), (0, None));
        let all: Vec<usize> = (0..2 * BLOCK + 3).collect();
        all.iter().for_each(|entry| blocks.push(*entry));
        assert_eq!((blocks.len(), blocks.last()), (all.len(), all.last()));
        assert!(blocks.iter().eq(&all) && blocks.iter().rev().eq(all.iter().rev()));
        for index in [0, 1, BLOCK - 1, BLOCK, 2 * BLOCK, all.len(), all.len() + BLOCK] {
            assert_eq!(blocks.get(index), all.get(index));
            assert!(blocks.from(index).eq(all.get(index..).unwrap_or_default()), "{index}");
        }
        assert_eq!((blocks.remove(BLOCK), blocks.remove(BLOCK), blocks.remove(all.len())), (Some(BLOCK), None, None));
        assert_eq!((blocks.len(), blocks.get(BLOCK)), (all.len(), None));
        assert!(blocks.from(BLOCK - 1).take(2).eq(&[BLOCK - 1, BLOCK + 1]));
        (0..BLOCK).for_each(|index| assert_eq!(blocks.remove(index), Some(index)));
        assert!(blocks.blocks[0].is_empty() && blocks.get(3).is_none() && blocks.remove(3).is_none());
        assert!(blocks.from(3).eq(&all[BLOCK + 1..]) && blocks.iter().eq(&all[BLOCK + 1..]));
        assert_eq!(blocks.len(), all.len());
    }
}
