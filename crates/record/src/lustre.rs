//! How a file lies on the targets of Lustre: its extended attribute `lustre.lov`.
//!
//! The Lustre manual names the attribute and its structures ("Extended Attributes"). Numbers are in the byte order of the
//! processor, which is little-endian on all that run Lustre clients. A simple layout:
//!
//! | offset | bytes | what |
//! |---:|---:|---|
//! | 0 | 4 | magic number: version 1, or 3 (with the name of a pool) |
//! | 4 | 4 | pattern: bit 0, over targets (RAID 0); bit 8, on the metadata server |
//! | 8 | 16 | the object's id |
//! | 24 | 4 | stripe size, bytes |
//! | 28 | 2 | stripe count |
//!
//! A composite layout (progressive files, mirrors) has components, each for a part of the file:
//!
//! | offset | bytes | what |
//! |---:|---:|---|
//! | 0 | 4 | magic number |
//! | 14 | 2 | number of components |
//! | 32 + 48 i + 4 | 4 | flags of component i: bit 4, it has objects |
//! | 32 + 48 i + 24 | 4 | where its simple layout begins, from offset 0 |

use pio_trace::Striping;

const MAGIC_V1: u32 = 0x0BD1_0BD0;
const MAGIC_V3: u32 = 0x0BD3_0BD0;
const MAGIC_COMPOSITE: u32 = 0x0BD6_0BD0;
const OVER_TARGETS: u32 = 1;
const ON_METADATA_SERVER: u32 = 0x100;
const HAS_OBJECTS: u32 = 0x10;
const COMPONENTS: usize = 32;
const COMPONENT_BYTES: usize = 48;
/// Stripes are multiples of a page, bytes.
const PAGE: u32 = 4096;

/// How the attribute of a file says that it lies; none if it is no layout over targets, or the stripe sizes of its parts
/// differ. Of parts on different numbers of targets the largest counts.
pub(crate) fn striping(attribute: &[u8]) -> Option<Striping> {
    if number::<4>(attribute, 0)? != MAGIC_COMPOSITE {
        return of_simple(attribute);
    }
    let count = number::<2>(attribute, 14)? as usize;
    let mut known: Option<Striping> = None;
    for component in (0..count).map(|index| COMPONENTS + index * COMPONENT_BYTES) {
        let flags = number::<4>(attribute, component + 4)?;
        let begin = number::<4>(attribute, component + 24)? as usize;
        let layout = attribute.get(begin..)?;
        // What was not written yet has no objects; the beginning of a file may lie on the metadata server.
        if flags & HAS_OBJECTS == 0 || number::<4>(layout, 4)? & ON_METADATA_SERVER != 0 {
            continue;
        }
        let part = of_simple(layout)?;
        let so_far = known.get_or_insert(part);
        if so_far.unit_bytes != part.unit_bytes {
            return None;
        }
        so_far.targets = so_far.targets.max(part.targets);
    }
    known
}

fn of_simple(layout: &[u8]) -> Option<Striping> {
    let is_known = matches!(number::<4>(layout, 0)?, MAGIC_V1 | MAGIC_V3);
    let pattern = number::<4>(layout, 4)?;
    let bytes = number::<4>(layout, 24)?;
    let targets = number::<2>(layout, 28)?;
    let is_striped = pattern & OVER_TARGETS != 0 && targets > 0;
    let is_valid = is_known && is_striped && bytes > 0 && bytes.is_multiple_of(PAGE);
    is_valid.then(|| Striping { unit_bytes: bytes.into(), targets })
}

/// The number of `N` bytes, 4 at most, at an offset.
fn number<const N: usize>(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..)?.first_chunk::<N>()?;
    Some(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u32 = 1 << 20;

    fn stripe_bytes(attribute: &[u8]) -> Option<u64> {
        striping(attribute).map(|striping| striping.unit_bytes)
    }

    /// A simple layout as Lustre lays it out, with its objects.
    fn simple(magic: u32, pattern: u32, bytes: u32, count: u16) -> Vec<u8> {
        let mut layout = Vec::new();
        layout.extend(magic.to_le_bytes());
        layout.extend(pattern.to_le_bytes());
        layout.extend([7; 16]);
        layout.extend(bytes.to_le_bytes());
        layout.extend(count.to_le_bytes());
        layout.extend(3_u16.to_le_bytes());
        if magic == MAGIC_V3 {
            layout.extend(*b"flash\0\0\0\0\0\0\0\0\0\0\0");
        }
        layout.extend(vec![9; 24 * usize::from(count)]);
        layout
    }

    /// Components (flags, layout) of a composite one.
    fn composite(parts: &[(u32, Vec<u8>)]) -> Vec<u8> {
        let mut layout = Vec::new();
        layout.extend(MAGIC_COMPOSITE.to_le_bytes());
        layout.extend([0; 10]);
        layout.extend((parts.len() as u16).to_le_bytes());
        layout.extend([0; 16]);
        let mut begin = layout.len() + parts.len() * COMPONENT_BYTES;
        for (index, (flags, part)) in parts.iter().enumerate() {
            layout.extend((index as u32 + 1).to_le_bytes());
            layout.extend(flags.to_le_bytes());
            layout.extend([0; 16]);
            layout.extend((begin as u32).to_le_bytes());
            layout.extend((part.len() as u32).to_le_bytes());
            layout.extend([0; 16]);
            begin += part.len();
        }
        parts.iter().for_each(|(_, part)| layout.extend(part));
        layout
    }

    #[test]
    fn simple_layouts() {
        assert_eq!(stripe_bytes(&simple(MAGIC_V1, 1, MIB, 4)), Some(1 << 20));
        assert_eq!(stripe_bytes(&simple(MAGIC_V3, 1, 16 * MIB, 1)), Some(16 << 20));
        // Several stripes on one target; moved to tape.
        assert_eq!(stripe_bytes(&simple(MAGIC_V1, 0x201, MIB, 8)), Some(1 << 20));
        assert_eq!(stripe_bytes(&simple(MAGIC_V1, 0x8000_0001, MIB, 8)), Some(1 << 20));
    }

    #[test]
    fn targets_are_those_of_the_part_on_most() {
        let targets = |layout: &[u8]| striping(layout).map(|striping| striping.targets);
        let part = |count| (HAS_OBJECTS, simple(MAGIC_V1, 1, MIB, count));
        assert_eq!(targets(&simple(MAGIC_V3, 1, MIB, 12)), Some(12));
        assert_eq!(targets(&composite(&[part(1), part(8), part(4)])), Some(8));
    }

    #[test]
    fn what_is_no_striping_says_nothing() {
        assert_eq!(stripe_bytes(&simple(0x0BD7_0BD0, 1, MIB, 4)), None, "a foreign layout");
        assert_eq!(stripe_bytes(&simple(MAGIC_V1, ON_METADATA_SERVER, MIB, 0)), None);
        assert_eq!(stripe_bytes(&simple(MAGIC_V1, 1, MIB, 0)), None, "no objects");
        assert_eq!(stripe_bytes(&simple(MAGIC_V1, 1, 1000, 4)), None);
        assert_eq!(stripe_bytes(&simple(MAGIC_V1, 1, 0, 4)), None);
    }

    #[test]
    fn composite_layouts() {
        let part = |bytes, count| simple(MAGIC_V1, 1, bytes, count);
        let (init, none) = (HAS_OBJECTS, 0);
        let of = |parts: &[(u32, Vec<u8>)]| stripe_bytes(&composite(parts));
        assert_eq!(
            of(&[(init, part(MIB, 1)), (init, part(MIB, 4)), (none, part(4 * MIB, 32))]),
            Some(1 << 20)
        );
        assert_eq!(of(&[(init, part(MIB, 1)), (init, part(4 * MIB, 4))]), None, "its parts differ");
        let on_server = simple(MAGIC_V1, ON_METADATA_SERVER, 64 << 10, 0);
        assert_eq!(of(&[(init, on_server), (init, part(2 * MIB, 4))]), Some(2 << 20));
        assert_eq!(of(&[(none, part(MIB, 1))]), None);
        assert_eq!(of(&[]), None);
        let inside_itself = composite(&[(init, composite(&[(init, part(MIB, 1))]))]);
        assert_eq!(stripe_bytes(&inside_itself), None);
    }

    proptest! {
        /// Whatever a file system hands out.
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), magic in 0..4_usize) {
            let mut bytes = bytes;
            if let Some(start) = [MAGIC_V1, MAGIC_V3, MAGIC_COMPOSITE].get(magic).filter(|_| bytes.len() >= 4) {
                bytes[..4].copy_from_slice(&start.to_le_bytes());
            }
            if let Some(found) = stripe_bytes(&bytes) {
                prop_assert!(found > 0 && found.is_multiple_of(PAGE.into()));
            }
        }

        /// A layout that was cut off anywhere, or of which a byte is another.
        #[test]
        fn damaged_layouts_are_read_or_refused(cut in 0..400_usize, at in 0..400_usize, byte: u8) {
            let part = simple(MAGIC_V3, 1, MIB, 2);
            let mut whole = composite(&[(HAS_OBJECTS, part.clone()), (HAS_OBJECTS, part)]);
            prop_assert_eq!(stripe_bytes(&whole), Some(1 << 20));
            let length = whole.len();
            whole[at % length] = byte;
            whole.truncate(cut);
            let _ = stripe_bytes(&whole);
        }
    }
}
