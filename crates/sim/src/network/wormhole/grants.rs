//! Which lanes were granted to which heads.

/// The heads of a switch that were granted lanes, or the lanes that were asked for, and which.
#[derive(Debug)]
pub(super) struct Grants {
    /// Places among the lanes of the switch, each once.
    pub(super) places: Vec<usize>,
    /// For each place, the lanes: none for who is not in the list.
    pub(super) lanes: Vec<u64>,
    /// The heads whose turn it is, and those that ask for one lane.
    pub(super) trying: Vec<u64>,
    pub(super) asking: Vec<u64>,
}

impl Grants {
    /// For so many words of places.
    pub(super) fn among(words: usize) -> Grants {
        Grants {
            places: Vec::new(),
            lanes: vec![0; 64 * words],
            trying: vec![0; words],
            asking: vec![0; words],
        }
    }

    #[inline]
    pub(super) fn add(&mut self, place: usize, within: usize) {
        if self.lanes[place] == 0 {
            self.places.push(place);
        }
        self.lanes[place] |= 1 << within;
    }
}
