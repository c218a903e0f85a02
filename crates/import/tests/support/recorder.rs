//! Folders as Recorder writes them, made by its published format: for what no sample can be had of.

use std::collections::BTreeMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// Which of its forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// 2.3: plain files, a table a process.
    Plain23,
    /// 2.5 as first published: plain files, a table a process.
    Plain25,
    /// The same, one table and numbered grammars for all.
    Merged25,
    /// 3.0: compressed files, a table a process.
    Packed30,
    /// 3.0: compressed, one table for all.
    Merged30,
}

impl Form {
    pub(crate) const ALL: [Form; 5] =
        [Form::Plain23, Form::Plain25, Form::Merged25, Form::Packed30, Form::Merged30];

    fn is_merged(self) -> bool {
        matches!(self, Form::Merged25 | Form::Merged30)
    }

    fn is_new(self) -> bool {
        matches!(self, Form::Packed30 | Form::Merged30)
    }
}

/// A call: start and end in units of time since the process began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Called {
    pub thread: u64,
    pub function: &'static str,
    pub depth: u8,
    pub arguments: Vec<String>,
    pub start: i64,
    pub end: i64,
}

/// The functions that the tables of the tests name.
pub(crate) const FUNCTIONS: [&str; 29] = [
    "creat",
    "creat64",
    "open",
    "close",
    "write",
    "read",
    "lseek64",
    "pread",
    "pwrite64",
    "fopen",
    "fwrite",
    "fclose",
    "umask",
    "MPI_File_open",
    "MPI_File_write_at",
    "MPI_File_write_at_all",
    "MPI_File_set_view",
    "MPI_File_write",
    "MPI_File_close",
    "MPI_Barrier",
    "H5Dwrite",
    "H5Fcreate",
    "H5Dcreate2",
    "H5Fclose",
    "ncmpi_create",
    "ncmpi_put_vara_double_all",
    "ncmpi_iput_var1_int",
    "ncmpi_close",
    "nc_put_var",
];

/// The files of a job: for each rank the calls that it made. `unit_s` is the unit of times. Sequences that repeat become
/// rules; `nesting` says how long they may be.
pub(crate) fn folder(
    form: Form,
    ranks: &[Vec<Called>],
    unit_s: f64,
    nesting: usize,
) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    files.insert(
        "VERSION".to_owned(),
        match form {
            Form::Plain23 => b"2.3.0".to_vec(),
            Form::Plain25 | Form::Merged25 => b"2.5.0".to_vec(),
            Form::Packed30 | Form::Merged30 => b"3.0.0".to_vec(),
        },
    );
    files.insert("recorder.mt".to_owned(), metadata(form, ranks.len(), unit_s));
    let mut all = Table::default();
    let mut grammars: Vec<Vec<u8>> = Vec::new();
    let mut of_rank = Vec::new();
    let mut times = Vec::new();
    for (rank, calls) in ranks.iter().enumerate() {
        let mut own = Table::default();
        let table = if form.is_merged() { &mut all } else { &mut own };
        let sequence: Vec<i32> = calls.iter().map(|call| table.number(form, rank, call)).collect();
        let grammar = grammar(&sequence, nesting);
        if form.is_merged() {
            let known = grammars.iter().position(|known| *known == grammar);
            of_rank.push(known.unwrap_or(grammars.len()) as u32);
            if known.is_none() {
                grammars.push(grammar);
            }
        } else {
            files.insert(format!("{rank}.cst"), packed(form, own.bytes(form)));
            files.insert(format!("{rank}.cfg"), packed(form, grammar));
        }
        times.push(time_bytes(form, calls));
    }
    if form.is_merged() {
        let name = if form.is_new() { "recorder.cst" } else { "0.cst" };
        files.insert(name.to_owned(), packed(form, all.bytes(form)));
        let mut numbers: Vec<u8> = of_rank.iter().flat_map(|number| number.to_le_bytes()).collect();
        numbers.extend((grammars.len() as u32).to_le_bytes());
        files.insert("ug.mt".to_owned(), numbers);
        if form.is_new() {
            let parts = grammars.into_iter().flat_map(|grammar| packed(form, grammar)).collect();
            files.insert("ug.cfg".to_owned(), parts);
        } else {
            for (number, grammar) in grammars.into_iter().enumerate() {
                files.insert(format!("{number}.cfg"), grammar);
            }
        }
    }
    if form.is_new() {
        let mut bytes: Vec<u8> = times.iter().flat_map(|times| (times.len() as u64).to_le_bytes()).collect();
        bytes.extend(times.concat());
        files.insert("recorder.ts".to_owned(), bytes);
    } else {
        for (rank, times) in times.into_iter().enumerate() {
            files.insert(format!("{rank}.ts"), times);
        }
    }
    files
}

fn metadata(form: Form, ranks: usize, unit_s: f64) -> Vec<u8> {
    let mut bytes = (ranks as i32).to_le_bytes().to_vec();
    let start_s = 1_700_000_000.25_f64;
    if form.is_new() {
        bytes.extend([1; 8]);
        bytes.extend([0; 4]);
        bytes.extend(start_s.to_le_bytes());
        bytes.extend(unit_s.to_le_bytes());
        bytes.extend(262_144_u32.to_le_bytes());
        bytes.extend([1, u8::from(form.is_merged()), 1, 0]);
        bytes.resize(1024, 0);
    } else {
        bytes.extend([0; 4]);
        bytes.extend(start_s.to_le_bytes());
        bytes.extend(unit_s.to_le_bytes());
        bytes.extend(1024_u32.to_le_bytes());
        bytes.extend(0_u32.to_le_bytes());
        if form != Form::Plain23 {
            bytes.extend(u32::from(form.is_merged()).to_le_bytes());
            bytes.extend([0; 4]);
        }
    }
    for function in FUNCTIONS {
        bytes.extend(function.as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

#[derive(Default)]
struct Table {
    numbers: BTreeMap<Vec<u8>, i32>,
    /// In order of their numbers: key, and the rank that made the call first.
    keys: Vec<(Vec<u8>, usize)>,
}

impl Table {
    fn number(&mut self, form: Form, rank: usize, call: &Called) -> i32 {
        let key = key(form, call);
        let next = self.keys.len() as i32;
        let number = *self.numbers.entry(key.clone()).or_insert(next);
        if number == next {
            self.keys.push((key, rank));
        }
        number
    }

    fn bytes(&self, form: Form) -> Vec<u8> {
        let mut bytes = (self.keys.len() as i32).to_le_bytes().to_vec();
        // In any order: hash tables have none.
        for (number, (key, rank)) in self.keys.iter().enumerate().rev() {
            bytes.extend((number as i32).to_le_bytes());
            if form != Form::Plain23 {
                bytes.extend((*rank as i32).to_le_bytes());
            }
            bytes.extend((key.len() as i32).to_le_bytes());
            if form != Form::Plain23 {
                bytes.extend(1_u32.to_le_bytes());
            }
            bytes.extend(key);
        }
        bytes
    }
}

fn key(form: Form, call: &Called) -> Vec<u8> {
    let text: String = call.arguments.iter().map(|argument| argument.replace(' ', "_") + " ").collect();
    let function = FUNCTIONS.iter().position(|known| *known == call.function).unwrap();
    let mut key = call.thread.to_le_bytes().to_vec();
    if form.is_new() {
        key.extend((function as i32).to_le_bytes());
    } else {
        key.push(function as u8);
    }
    key.extend([call.depth, call.arguments.len() as u8]);
    key.extend((text.len() as i32).to_le_bytes());
    key.extend(text.as_bytes());
    key
}

/// Symbols and how many times each; rules have names below 0.
type Body = Vec<(i32, i32)>;

fn grammar(sequence: &[i32], nesting: usize) -> Vec<u8> {
    let mut rules: Vec<Body> = Vec::new();
    let mut whole = repeated(&sequence.iter().map(|&number| (number, 1)).collect::<Body>());
    for length in 2..=nesting {
        whole = fold(&whole, length, &mut rules);
    }
    let mut bytes = (rules.len() as i32 + 1).to_le_bytes().to_vec();
    let names = std::iter::once(-1).chain((0..rules.len() as i32).map(|index| -2 - index));
    for (name, body) in names.zip(std::iter::once(&whole).chain(&rules)) {
        bytes.extend(name.to_le_bytes());
        bytes.extend((body.len() as i32).to_le_bytes());
        for (symbol, times) in body {
            bytes.extend(symbol.to_le_bytes());
            bytes.extend(times.to_le_bytes());
        }
    }
    bytes
}

/// Joins neighbours that are alike.
fn repeated(body: &[(i32, i32)]) -> Body {
    let mut joined: Body = Vec::new();
    for &(symbol, times) in body {
        match joined.last_mut() {
            Some(last) if last.0 == symbol => last.1 += times,
            _ => joined.push((symbol, times)),
        }
    }
    joined
}

/// Puts rules for pieces of so many symbols that occur twice.
fn fold(body: &Body, length: usize, rules: &mut Vec<Body>) -> Body {
    let mut counts: BTreeMap<&[(i32, i32)], usize> = BTreeMap::new();
    for piece in body.chunks_exact(length) {
        *counts.entry(piece).or_default() += 1;
    }
    let mut names: BTreeMap<Body, i32> = BTreeMap::new();
    let mut folded = Vec::new();
    for piece in body.chunks(length) {
        if counts.get(piece).is_some_and(|&count| count > 1) {
            let name = *names.entry(piece.to_vec()).or_insert_with(|| {
                rules.push(piece.to_vec());
                -1 - rules.len() as i32
            });
            folded.push((name, 1));
        } else {
            folded.extend(piece);
        }
    }
    repeated(&folded)
}

fn time_bytes(form: Form, calls: &[Called]) -> Vec<u8> {
    let mut before = 0;
    let mut bytes = Vec::new();
    for call in calls {
        bytes.extend(((call.start - before) as u32).to_le_bytes());
        bytes.extend(((call.end - before) as u32).to_le_bytes());
        before = call.start;
    }
    if form.is_new() {
        // A part each time that the buffer is full.
        return bytes.chunks(64).flat_map(|part| packed(form, part.to_vec())).collect();
    }
    bytes
}

fn packed(form: Form, bytes: Vec<u8>) -> Vec<u8> {
    if !form.is_new() {
        return bytes;
    }
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&bytes).unwrap();
    let stored = encoder.finish().unwrap();
    let mut part = (stored.len() as u64).to_le_bytes().to_vec();
    part.extend((bytes.len() as u64).to_le_bytes());
    part.extend(stored);
    part
}
