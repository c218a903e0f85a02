//! The results of a sweep as Parquet: one row a point.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use pio_report::Sweep;

/// A column: a setting's texts, or numbers.
enum Column {
    Texts(Vec<ByteArray>),
    Numbers(Vec<f64>),
}

/// Writes a sweep. Settings that are numbers at every point are columns of numbers in their basic unit (bytes, seconds,
/// bytes a second), the others of texts.
pub(super) fn write(sweep: &Sweep, path: &Path) -> Result<(), ParquetError> {
    let columns = columns(sweep);
    let mut fields = Vec::new();
    for (name, column) in &columns {
        let (physical, logical) = match column {
            Column::Texts(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Column::Numbers(_) => (Physical::DOUBLE, None),
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(logical)
            .build()?;
        fields.push(Arc::new(field));
    }
    let schema = Arc::new(Type::group_type_builder("points").with_fields(fields).build()?);
    let notes = [("pioscope.title", &sweep.title), ("pioscope.note", &sweep.note)];
    let metadata = notes.map(|(key, text)| KeyValue::new(key.to_owned(), text.clone()));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_created_by(concat!("pioscope ", env!("CARGO_PKG_VERSION")).into())
        .set_key_value_metadata(Some(metadata.into()))
        .build();
    let mut writer = SerializedFileWriter::new(File::create(path)?, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (_, values) in &columns {
        let Some(mut column) = group.next_column()? else { break };
        match values {
            Column::Texts(texts) => column.typed::<ByteArrayType>().write_batch(texts, None, None)?,
            Column::Numbers(numbers) => column.typed::<DoubleType>().write_batch(numbers, None, None)?,
        };
        column.close()?;
    }
    group.close()?;
    writer.close()?;
    Ok(())
}

fn columns(sweep: &Sweep) -> Vec<(&str, Column)> {
    let setting = |index: usize| {
        let places: Option<Vec<f64>> = sweep.rows.iter().map(|row| row.places[index]).collect();
        let texts = || sweep.rows.iter().map(|row| ByteArray::from(row.settings[index].as_bytes().to_vec()));
        places.map_or_else(|| Column::Texts(texts().collect()), Column::Numbers)
    };
    let names = sweep.settings.iter().map(String::as_str).enumerate();
    let mut columns: Vec<(&str, Column)> = names.map(|(index, name)| (name, setting(index))).collect();
    for (index, measure) in sweep.measures.iter().enumerate() {
        let numbers = sweep.rows.iter().map(|row| row.values[index]).collect();
        columns.push((measure.column, Column::Numbers(numbers)));
    }
    columns
}
