//! Parquet, one row an event, for DuckDB, Polars, pandas and their like.
//!
//! The columns are written with the Parquet library's own column writers: going through Arrow would double the build
//! time of this crate and give the same file.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, IntType, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use crate::columns::{COLUMNS, Get, Row};
use crate::error::TraceError;
use crate::event::Event;
use crate::reader::Trace;
use crate::splits::{Split, Splits};
use crate::tables::Tables;

/// Writes `trace` to `file`, which is empty and has the name `path`, as Parquet: zstd, a row group for each block of the
/// trace (at most 524 288 rows).
///
/// Names are resolved: `host`, `file`, `call` and the like are dictionary-coded strings. Values that an event does not
/// have are null; so are the parts of a collective call's time, if `splits` does not know them. The job's name, its start and
/// its notes ([`Tables::notes_by_name`]) are in the file's key-value metadata as `pioscope.job`, `pioscope.epoch_ns` and
/// `pioscope.note.NAME`.
///
/// `progress` is told the number of events that are done, now and then.
///
/// # Errors
/// If the trace cannot be read, or the file cannot be written.
pub fn parquet(
    trace: &Trace,
    splits: &Splits,
    file: &File,
    path: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<(), TraceError> {
    let refused = |source| TraceError::Parquet { path: path.to_path_buf(), source };
    let properties = properties(trace.tables()).map_err(refused)?;
    let schema = schema().map_err(refused)?;
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).map_err(refused)?;
    let mut done = 0;
    for block in 0..trace.blocks().len() {
        let events = trace.block(block)?;
        let mut walk = splits.walk_block(block);
        let splits: Vec<_> = events.iter().map(|event| walk.of(event)).collect();
        write_group(&mut writer, &events, &splits, trace.tables()).map_err(refused)?;
        done += events.len() as u64;
        progress(done);
    }
    writer.close().map_err(refused)?;
    Ok(())
}

fn properties(tables: &Tables) -> Result<WriterProperties, ParquetError> {
    let mut metadata = vec![
        KeyValue::new("pioscope.job".into(), tables.job.clone()),
        KeyValue::new("pioscope.epoch_ns".into(), tables.epoch_ns.to_string()),
    ];
    let notes = tables.notes_by_name().into_iter();
    metadata.extend(notes.map(|(name, text)| KeyValue::new(format!("pioscope.note.{name}"), text)));
    Ok(WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_created_by(concat!("pioscope ", env!("CARGO_PKG_VERSION")).into())
        .set_key_value_metadata(Some(metadata))
        .build())
}

fn schema() -> Result<TypePtr, ParquetError> {
    let integer = |signed| Some(LogicalType::Integer(IntType { bit_width: 64, is_signed: signed }));
    let mut fields = Vec::new();
    for (name, get) in COLUMNS {
        let (physical, logical, repetition) = match get {
            Get::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::OPTIONAL),
            Get::Unsigned(_) => (Physical::INT64, integer(false), Repetition::OPTIONAL),
            Get::Signed(_) => (Physical::INT64, integer(true), Repetition::REQUIRED),
            Get::Flag(_) => (Physical::BOOLEAN, None, Repetition::REQUIRED),
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()?;
        fields.push(Arc::new(field));
    }
    Ok(Arc::new(Type::group_type_builder("events").with_fields(fields).build()?))
}

fn write_group(
    writer: &mut SerializedFileWriter<&File>,
    events: &[Event],
    splits: &[Option<Split>],
    tables: &Tables,
) -> Result<(), ParquetError> {
    let rows = || events.iter().zip(splits).map(|(event, &split)| Row { event, tables, split });
    let mut group = writer.next_row_group()?;
    for (_, get) in COLUMNS {
        let Some(mut column) = group.next_column()? else { break };
        write_column(&mut column, get, rows())?;
        column.close()?;
    }
    group.close()?;
    Ok(())
}

fn write_column<'a>(
    column: &mut SerializedColumnWriter<'_>,
    get: &Get,
    rows: impl Iterator<Item = Row<'a>>,
) -> Result<(), ParquetError> {
    match get {
        Get::Text(get) => {
            let mut texts = Texts::default();
            let (values, present) = optional(rows, |row| get(row).map(|text| texts.array(text)));
            column.typed::<ByteArrayType>().write_batch(&values, Some(&present), None)?;
        }
        Get::Unsigned(get) => {
            let (values, present) = optional(rows, |row| get(row).map(|value| value as i64));
            column.typed::<Int64Type>().write_batch(&values, Some(&present), None)?;
        }
        Get::Signed(get) => {
            let values: Vec<i64> = rows.map(|row| get(&row)).collect();
            column.typed::<Int64Type>().write_batch(&values, None, None)?;
        }
        Get::Flag(get) => {
            let values: Vec<bool> = rows.map(|row| get(&row)).collect();
            column.typed::<BoolType>().write_batch(&values, None, None)?;
        }
    }
    Ok(())
}

/// The values that there are, and for every row whether there is one (Parquet's definition level).
fn optional<'a, T>(
    rows: impl Iterator<Item = Row<'a>>,
    mut get: impl FnMut(&Row<'a>) -> Option<T>,
) -> (Vec<T>, Vec<i16>) {
    let mut values = Vec::new();
    let present = rows.map(|row| {
        let value = get(&row);
        let level = i16::from(value.is_some());
        values.extend(value);
        level
    });
    let present = present.collect();
    (values, present)
}

/// Makes the library's strings, and makes none twice in a row.
#[derive(Default)]
struct Texts<'a> {
    last: Option<(&'a str, ByteArray)>,
}

impl<'a> Texts<'a> {
    fn array(&mut self, text: &'a str) -> ByteArray {
        match &self.last {
            Some((last, array)) if std::ptr::eq(*last, text) => array.clone(),
            _ => {
                let array = ByteArray::from(text.as_bytes().to_vec());
                self.last = Some((text, array.clone()));
                array
            }
        }
    }
}
