//! Events as the buffers of Arrow's columns (Arrow Columnar Format, "Physical Memory Layout").

use std::collections::HashMap;

use pio_trace::columns::{COLUMNS, Get, Row};
use pio_trace::{Event, Split, SplitWalk, Tables};

/// A column of a batch of events.
pub(crate) struct Column {
    pub name: &'static str,
    /// Arrow's name of the type; of text, the names are in `names` and their numbers in `values`.
    pub kind: &'static str,
    /// A bit for each row that has a value; none if all have.
    pub valid: Option<Vec<u8>>,
    pub values: Vec<u8>,
    pub names: Option<Vec<String>>,
}

/// Name and type of every column.
pub(crate) fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    COLUMNS.iter().map(|(name, get)| (*name, kind(get)))
}

fn kind(get: &Get) -> &'static str {
    match get {
        Get::Text(_) => "text",
        Get::Unsigned(_) => "uint64",
        Get::Signed(_) => "int64",
        Get::Flag(_) => "bool",
    }
}

/// All columns of these events. `walk` gives the splits of their collective calls.
pub(crate) fn of(events: &[Event], mut walk: SplitWalk<'_>, tables: &Tables) -> Vec<Column> {
    let splits: Vec<_> = events.iter().map(|event| walk.of(event)).collect();
    COLUMNS.iter().map(|(name, get)| column(name, get, events, &splits, tables)).collect()
}

fn column(
    name: &'static str,
    get: &Get,
    events: &[Event],
    splits: &[Option<Split>],
    tables: &Tables,
) -> Column {
    let rows = || events.iter().zip(splits).map(move |(event, &split)| Row { event, tables, split });
    let (valid, values, names) = match get {
        Get::Text(get) => {
            let mut names = Names::default();
            let numbers = rows().map(|row| get(&row).map(|name| names.number(name)));
            let (valid, values) = optional(numbers, u32::to_le_bytes);
            (valid, values, Some(names.all.into_iter().map(str::to_owned).collect()))
        }
        Get::Unsigned(get) => {
            let (valid, values) = optional(rows().map(|row| get(&row)), u64::to_le_bytes);
            (valid, values, None)
        }
        Get::Signed(get) => (None, rows().flat_map(|row| get(&row).to_le_bytes()).collect(), None),
        Get::Flag(get) => (None, bits(events.len(), rows().map(|row| get(&row))), None),
    };
    Column { name, kind: kind(get), valid, values, names }
}

/// Which values there are, and all of them; 0 where there is none.
fn optional<T: Copy + Default, const BYTES: usize>(
    rows: impl ExactSizeIterator<Item = Option<T>>,
    bytes_of: fn(T) -> [u8; BYTES],
) -> (Option<Vec<u8>>, Vec<u8>) {
    let count = rows.len();
    let mut valid = Vec::with_capacity(count);
    let mut values = Vec::with_capacity(count * BYTES);
    for value in rows {
        valid.push(value.is_some());
        values.extend(bytes_of(value.unwrap_or_default()));
    }
    let all = valid.iter().all(|valid| *valid);
    ((!all).then(|| bits(count, valid.into_iter())), values)
}

/// Eight to a byte, the lowest bit first.
fn bits(count: usize, values: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut bytes = vec![0; count.div_ceil(8)];
    for (index, value) in values.enumerate() {
        bytes[index / 8] |= u8::from(value) << (index % 8);
    }
    bytes
}

/// The names that occur, each once.
#[derive(Default)]
struct Names<'a> {
    all: Vec<&'a str>,
    /// By where a name is in memory, which is much faster to compare; and by what it says, as hosts are there several times.
    by_address: HashMap<(*const u8, usize), u32>,
    by_name: HashMap<&'a str, u32>,
}

impl<'a> Names<'a> {
    fn number(&mut self, name: &'a str) -> u32 {
        let Names { all, by_address, by_name } = self;
        *by_address.entry((name.as_ptr(), name.len())).or_insert_with(|| {
            *by_name.entry(name).or_insert_with(|| {
                all.push(name);
                all.len() as u32 - 1
            })
        })
    }
}
