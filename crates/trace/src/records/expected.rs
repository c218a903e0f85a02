//! The numbers of an event, as far as the events before it do not tell them.

use super::columns::{Column, ColumnReader, Columns};
use super::header;
use super::shape::{Numbers, Shape};

/// What a model expects of the next event, one of the shape of this index.
pub(super) trait Expected {
    /// Where the next access begins.
    fn place(&self, shape: u32) -> u64;
    /// What explicit places are relative to.
    fn place_base(&self, shape: u32) -> u64;
    /// What explicit places of an event of this size are counted in, from 1.
    fn place_unit(&self, shape: u32, size: u64) -> i64;
    /// The size.
    fn size(&self, shape: u32) -> u64;
    /// The result of an event of this size.
    fn result(&self, shape: u32, size: u64) -> i64;
    /// When the thread starts the next call at the earliest: starts are relative to it.
    fn start_base(&self, shape: u32) -> u64;
    /// No event starts before this.
    fn least_start_ns(&self) -> u64;
    /// The elapsed time.
    fn elapsed(&self, shape: u32) -> u64;
    /// The think time.
    fn think(&self, shape: u32) -> u64;
    /// What explicit think times are relative to, of an event that starts so long after the base.
    fn think_base(&self, shape: u32, after_base: u64) -> u64;
    /// The operation.
    fn operation(&self, shape: u32) -> u64;
    /// What explicit operations are relative to.
    fn operation_base(&self, shape: u32) -> u64;
}

/// Takes the numbers of an event.
#[inline(always)]
pub(super) fn take(
    model: &impl Expected,
    columns: &mut ColumnReader<'_>,
    flags: u8,
    shape: u32,
) -> Result<Numbers, &'static str> {
    let size = if flags & header::SIZE != 0 {
        model.size(shape)
    } else {
        columns.take(Column::Size).ok_or("a size")?
    };
    let place = if flags & header::PLACE != 0 {
        model.place(shape)
    } else {
        let unit = model.place_unit(shape, size);
        let units = columns.take_signed(Column::Place).ok_or("a place")?;
        let rest = if unit > 1 { columns.take(Column::PlaceRest).ok_or("the rest of a place")? } else { 0 };
        let difference = units.wrapping_mul(unit) as u64;
        model.place_base(shape).wrapping_add(difference).wrapping_add(rest)
    };
    let result = if flags & header::RESULT != 0 {
        model.result(shape, size)
    } else {
        columns.take_signed(Column::Result).ok_or("a result")?
    };
    let after_base = columns.take_signed(Column::Start).ok_or("a start")? as u64;
    let start_ns = model.start_base(shape).wrapping_add(after_base);
    if start_ns < model.least_start_ns() {
        return Err("a start no earlier than the previous one");
    }
    let elapsed_ns = if flags & header::ELAPSED != 0 {
        model.elapsed(shape)
    } else {
        columns.take(Column::Elapsed).ok_or("an elapsed time")?
    };
    let think_ns = if flags & header::THINK != 0 {
        model.think(shape)
    } else {
        let difference = columns.take_signed(Column::Think).ok_or("a think time")?;
        model.think_base(shape, after_base).wrapping_sub(difference as u64)
    };
    let operation = if flags & header::OPERATION != 0 {
        model.operation(shape)
    } else {
        let difference = columns.take_signed(Column::Operation).ok_or("an operation")?;
        model.operation_base(shape).wrapping_add(difference as u64)
    };
    Ok(Numbers { place, size, result, start_ns, elapsed_ns, think_ns, operation })
}

/// Takes the CPU time that an event used within the call, if its shape says it.
#[inline]
pub(super) fn take_used(
    columns: &mut ColumnReader<'_>,
    shape: &Shape,
    elapsed_ns: u64,
) -> Result<Option<u64>, &'static str> {
    if !shape.says_used {
        return Ok(None);
    }
    let unused_ns = columns.take_signed(Column::Used).ok_or("a CPU time")?;
    Ok(Some(elapsed_ns.wrapping_sub(unused_ns as u64)))
}

/// Appends the numbers of an event, and gives the flags of those that are as expected.
#[inline(always)]
pub(super) fn put(model: &impl Expected, columns: &mut Columns, numbers: &Numbers, shape: u32) -> u8 {
    let mut flags = 0;
    if numbers.size == model.size(shape) {
        flags |= header::SIZE;
    } else {
        columns.put(Column::Size, numbers.size);
    }
    if numbers.place == model.place(shape) {
        flags |= header::PLACE;
    } else {
        let difference = numbers.place.wrapping_sub(model.place_base(shape)) as i64;
        let unit = model.place_unit(shape, numbers.size);
        columns.put_signed(Column::Place, difference.div_euclid(unit));
        if unit > 1 {
            columns.put(Column::PlaceRest, difference.rem_euclid(unit) as u64);
        }
    }
    if numbers.result == model.result(shape, numbers.size) {
        flags |= header::RESULT;
    } else {
        columns.put_signed(Column::Result, numbers.result);
    }
    let after_base = numbers.start_ns.wrapping_sub(model.start_base(shape));
    columns.put_signed(Column::Start, after_base as i64);
    if numbers.elapsed_ns == model.elapsed(shape) {
        flags |= header::ELAPSED;
    } else {
        columns.put(Column::Elapsed, numbers.elapsed_ns);
    }
    // A thread that did nothing but think: a column of zeros is smaller than a flag that says by chance that it
    // thought as long as the last time.
    let overhead = model.think_base(shape, after_base).wrapping_sub(numbers.think_ns) as i64;
    if numbers.think_ns == model.think(shape) && overhead != 0 {
        flags |= header::THINK;
    } else {
        columns.put_signed(Column::Think, overhead);
    }
    if numbers.operation == model.operation(shape) {
        flags |= header::OPERATION;
    } else {
        let difference = numbers.operation.wrapping_sub(model.operation_base(shape)) as i64;
        columns.put_signed(Column::Operation, difference);
    }
    flags
}
