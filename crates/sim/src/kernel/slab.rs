//! Things that come and go, under numbers that are given out again.

use std::ops::{Index, IndexMut};

/// Things under numbers that are given out again.
#[derive(Debug)]
pub struct Slab<T> {
    things: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { things: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Nothing yet.
    pub fn new() -> Slab<T> {
        Slab::default()
    }

    /// Keeps a thing, and gives its number.
    pub fn insert(&mut self, thing: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.things[number as usize] = thing;
                number
            }
            None => {
                self.things.push(thing);
                self.things.len() as u32 - 1
            }
        }
    }

    /// The number of a thing that was removed, as it was left, for who uses its room again; or of a new one.
    pub fn reuse(&mut self, new: impl FnOnce() -> T) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.things.push(new());
            self.things.len() as u32 - 1
        })
    }

    /// Everything, what was removed included.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.things.iter()
    }

    /// Its number will be given to another.
    pub fn remove(&mut self, number: u32) {
        self.free.push(number);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.things.len() - self.free.len()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, number: u32) -> &T {
        &self.things[number as usize]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.things[number as usize]
    }
}
