//! What the records are about: a number that is a hash, and the path (or other name) behind it.

use std::collections::HashMap;

use super::header::LogVersion;
use super::region::{Break, RegionReader};
use crate::order::{self, ByteOrder};

/// Names of records by their ids.
#[derive(Clone, Debug, Default)]
pub struct Names {
    names: HashMap<u64, Box<str>>,
}

impl Names {
    /// The name of this record. None if the log does not say.
    pub fn get(&self, id: u64) -> Option<&str> {
        self.names.get(&id).map(|name| &**name)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// All of them, in order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &str)> {
        let mut names: Vec<_> = self.names.iter().map(|(&id, name)| (id, &**name)).collect();
        names.sort_unstable();
        names.into_iter()
    }

    /// All names up to the first damage, and that.
    pub(super) fn read(
        mut region: RegionReader,
        version: LogVersion,
        order: ByteOrder,
    ) -> (Names, Option<Break>) {
        let mut names = Names::default();
        // Later logs end a name by a NUL, the first ones began it with its length.
        let read_one = if version.minor < 10 { Names::read_counted } else { Names::read_terminated };
        loop {
            match read_one(&mut names, &mut region, order) {
                Ok(true) => {}
                Ok(false) => return (names, None),
                Err(error) => return (names, Some(error)),
            }
        }
    }

    fn read_terminated(&mut self, region: &mut RegionReader, order: ByteOrder) -> Result<bool, Break> {
        let Some(id) = read_id(region, order)? else {
            return Ok(false);
        };
        match region.take_until_nul()? {
            Some(name) => self.add(id, name),
            None => return Err(region.broken("the name of a record".into())),
        }
        Ok(true)
    }

    fn read_counted(&mut self, region: &mut RegionReader, order: ByteOrder) -> Result<bool, Break> {
        let Some(id) = read_id(region, order)? else {
            return Ok(false);
        };
        let len = order.u32(region.take_all(4)?.try_into().unwrap_or_default()) as usize;
        if len > super::region::MOST_TAKEN {
            let most = super::region::MOST_TAKEN;
            return Err(region.broken(format!("a name of at most {most} bytes, found {len}")));
        }
        let name = region.take_all(len)?;
        self.add(id, name);
        Ok(true)
    }

    /// The first of two names for one id stays.
    fn add(&mut self, id: u64, name: &[u8]) {
        self.names.entry(id).or_insert_with(|| order::text(name).into());
    }
}

fn read_id(region: &mut RegionReader, order: ByteOrder) -> Result<Option<u64>, Break> {
    Ok(region.take(8)?.map(|bytes| order.u64(bytes.try_into().unwrap_or_default())))
}
