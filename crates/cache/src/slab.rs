//! Things with a number that is given again.

/// Things, each with a number of its own while it is in.
pub(crate) struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Slab<T> {
        Slab { entries: Vec::new(), free: Vec::new() }
    }

    /// Takes a thing in, and gives its number.
    pub(crate) fn add(&mut self, thing: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.entries[number as usize] = Some(thing);
                number
            }
            None => {
                self.entries.push(Some(thing));
                (self.entries.len() - 1) as u32
            }
        }
    }

    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.entries.get(number as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.entries.get_mut(number as usize)?.as_mut()
    }

    /// Takes a thing out.
    pub(crate) fn remove(&mut self, number: u32) -> Option<T> {
        let thing = self.entries.get_mut(number as usize)?.take();
        if thing.is_some() {
            self.free.push(number);
        }
        thing
    }

    /// All that is in, in order of number.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        (0..).zip(&mut self.entries).filter_map(|(number, entry)| Some((number, entry.as_mut()?)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.entries.len()
    }
}
