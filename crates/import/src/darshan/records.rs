//! Counters, record by record.

use super::counters::CounterNames;
use super::damage::LogDamage;
use super::module::Module;
use super::region::{Break, RegionReader};
use super::shape::{Shape, Slot};
use crate::order::{ByteOrder, Words};

/// Counters of one file (or other thing), by one process or all.
#[derive(Debug)]
pub struct Record<'a> {
    /// What it is about: see [`super::Log::names`].
    pub id: u64,
    /// The process; −1 for all, if all used it.
    pub rank: i64,
    /// Id of the file that a data set or variable is in; none for other records and where old versions did not say.
    pub file: Option<u64>,
    /// What the counters are. The first record of AutoPerf's modules has others than the rest.
    pub names: &'static CounterNames,
    /// Whole numbers, in the order of `names`; −1 for what the version of this record did not count.
    pub integers: &'a [i64],
    /// Times and time stamps, seconds; −1 for what the version of this record did not measure.
    pub floats: &'a [f64],
    /// What follows the counters, as stored: UUIDs of pool and container (DFS; DAOS: and the object's id), the name of
    /// the node (APMPI).
    pub trailer: &'a [u8],
    /// Accesses by server (MDHIM).
    pub list: &'a [i64],
}

/// The records of a module, read one after the other.
pub struct Records<'a> {
    module: Module,
    region: RegionReader<'a>,
    order: ByteOrder,
    header: Option<Shape>,
    shape: Shape,
    bytes: Vec<u8>,
    integers: Vec<i64>,
    floats: Vec<f64>,
    list: Vec<i64>,
    passed_over: u64,
    damage: Option<Break>,
}

/// Servers of one MDHIM job: more is damage.
const MOST_SERVERS: i64 = 1 << 20;

impl<'a> Records<'a> {
    pub(super) fn new(
        module: Module,
        version: u32,
        region: RegionReader<'a>,
        order: ByteOrder,
    ) -> Option<Records<'a>> {
        let shape = Shape::of(module, version).filter(|shape| !shape.names.integers.is_empty())?;
        Some(Records {
            module,
            region,
            order,
            header: Shape::of_header(module),
            shape,
            bytes: Vec::new(),
            integers: Vec::new(),
            floats: Vec::new(),
            list: Vec::new(),
            passed_over: 0,
            damage: None,
        })
    }

    /// The next record; none at the end and where the log is damaged: see [`Records::damage`].
    #[allow(clippy::should_implement_trait, reason = "a record borrows the reader's memory")]
    pub fn next(&mut self) -> Option<Record<'_>> {
        if self.damage.is_some() {
            return None;
        }
        let found = loop {
            match self.read() {
                Ok(Found::PassOver) => self.passed_over += 1,
                Ok(Found::Nothing) => return None,
                Ok(Found::Record(found)) => break found,
                Err(error) => {
                    self.damage = Some(error);
                    return None;
                }
            }
        };
        Some(Record {
            id: found.id,
            rank: found.rank,
            file: found.file,
            names: found.names,
            integers: &self.integers,
            floats: &self.floats,
            trailer: &self.bytes[self.bytes.len() - found.trailer..],
            list: &self.list,
        })
    }

    /// Records of the first version of module POSIX that are not given, because they count POSIX and stdio calls
    /// together, and nothing tells which part is which.
    pub fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// What ended the records before their end, if anything did.
    pub fn damage(&self) -> Option<LogDamage> {
        self.damage.as_ref().map(|found| LogDamage {
            region: format!("module {}", self.module),
            offset: found.offset,
            expected: found.expected.clone(),
        })
    }

    fn read(&mut self) -> Result<Found, Break> {
        let header = self.header.take();
        let shape = header.as_ref().unwrap_or(&self.shape);
        let Some(bytes) = self.region.take(shape.len())? else {
            return Ok(Found::Nothing);
        };
        // The list behind a record may push its bytes out of the region's buffer.
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.integers.clone_from(&shape.blank_integers);
        self.floats.clear();
        self.floats.resize(shape.names.floats.len(), -1.0);

        let mut words = Words::new(&self.bytes, self.order);
        let (id, rank) = (words.u64(), words.i64());
        let file = shape.has_file.then(|| words.u64());
        for _ in 0..shape.padding {
            words.u64();
        }
        let mut pass_over = false;
        for slot in &shape.integers {
            let value = words.i64();
            match *slot {
                Slot::Is(index) => self.integers[index] = value,
                Slot::PartOf(index) => self.integers[index] = self.integers[index].wrapping_add(value),
                Slot::Skip => {}
                Slot::MustBeZero => pass_over |= value > 0,
            }
        }
        for slot in &shape.floats {
            let value = words.f64();
            if let Slot::Is(index) = *slot {
                self.floats[index] = value;
            }
        }
        let found = Found::Record(Head { id, rank, file, names: shape.names, trailer: shape.trailer });
        if header.is_some() && self.module == Module::Apmpi {
            // Half a word, and what the compiler put behind it.
            let half = self.bytes.get(24..28).and_then(|half| half.try_into().ok()).unwrap_or_default();
            self.integers[1] = i64::from(self.order.u32(half));
        }
        if self.module == Module::Mdhim {
            self.read_servers()?;
        }
        Ok(if pass_over { Found::PassOver } else { found })
    }

    fn read_servers(&mut self) -> Result<(), Break> {
        // At least one, as Darshan writes it.
        let servers = self.integers.last().copied().unwrap_or_default().max(1);
        if servers > MOST_SERVERS {
            return Err(self.region.broken(format!("at most {MOST_SERVERS} servers, found {servers}")));
        }
        self.list.clear();
        read_list(&mut self.region, self.order, servers as usize, &mut self.list)
    }
}

enum Found {
    Nothing,
    PassOver,
    Record(Head),
}

struct Head {
    id: u64,
    rank: i64,
    file: Option<u64>,
    names: &'static CounterNames,
    trailer: usize,
}

/// Adds `count` words of the region to a list. Takes no more memory than the region has words.
pub(super) fn read_list(
    region: &mut RegionReader,
    order: ByteOrder,
    count: usize,
    list: &mut Vec<i64>,
) -> Result<(), Break> {
    let mut left = count;
    while left > 0 {
        let bytes = region.take_units(8, left as u64)?;
        left -= bytes.len() / 8;
        list.extend(bytes.as_chunks().0.iter().map(|&word| order.i64(word)));
    }
    Ok(())
}
