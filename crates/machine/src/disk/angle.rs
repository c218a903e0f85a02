//! A part of a revolution.

use std::ops::{Add, Sub};

/// An angle in units of 2^-64 revolutions: adding wraps as a disk does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Angle(pub u64);

impl Angle {
    /// So many sectors of a track of `per_track`, which is not 0.
    pub fn of_sectors(sectors: u64, per_track: u32) -> Angle {
        let per_track = u128::from(per_track.max(1));
        let within = u128::from(sectors) % per_track;
        Angle(((within << 64) / per_track) as u64)
    }

    /// A part of a revolution as a number; what is no number is 0.
    pub fn of_revolutions(revolutions: f64) -> Angle {
        let within = revolutions - revolutions.floor();
        Angle((within * 2.0_f64.powi(64)) as u64)
    }

    /// So many times as far.
    pub fn times(self, count: u64) -> Angle {
        Angle(self.0.wrapping_mul(count))
    }
}

impl Add for Angle {
    type Output = Angle;

    fn add(self, other: Angle) -> Angle {
        Angle(self.0.wrapping_add(other.0))
    }
}

impl Sub for Angle {
    type Output = Angle;

    fn sub(self, other: Angle) -> Angle {
        Angle(self.0.wrapping_sub(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_track_is_no_angle() {
        assert_eq!(Angle::of_sectors(100, 100), Angle(0));
        assert_eq!(Angle::of_sectors(50, 100), Angle(1 << 63));
        assert_eq!(Angle::of_sectors(150, 100), Angle::of_revolutions(7.5));
        assert_eq!(Angle(1 << 63).times(3), Angle(1 << 63));
    }
}
