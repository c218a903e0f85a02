//! Logarithm and exponential from additions, multiplications and divisions alone.
//!
//! Those of the system's library differ in the last bit from one system to the next, and one bit is enough to make a
//! simulation take another course. These give the same bits everywhere, to within 2 units in the last place.

/// The upper 32 bits of ln 2: a whole number of up to 21 bits times it is exact.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
/// The rest of ln 2.
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// 1/19 and 1/21, 1/15 and 1/17, … 1/3 and 1/5.
const LN_TERMS: [[f64; 2]; 5] = [
    [1.0 / 19.0, 1.0 / 21.0],
    [1.0 / 15.0, 1.0 / 17.0],
    [1.0 / 11.0, 1.0 / 13.0],
    [1.0 / 7.0, 1.0 / 9.0],
    [1.0 / 3.0, 1.0 / 5.0],
];

/// Natural logarithm of a positive, normal number.
pub(super) fn ln(x: f64) -> f64 {
    debug_assert!(x >= f64::MIN_POSITIVE && x.is_finite(), "ln({x})");
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | 1023 << 52);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    // ln m = 2 artanh s = 2 (s + s³/3 + s⁵/5 + …), s below 0.172: ten terms. Every other one is summed apart, so that a
    // processor can do both sums at once.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let z = s * s;
    let w = z * z;
    let [mut odd, mut even] = LN_TERMS[0];
    for [odd_term, even_term] in &LN_TERMS[1..] {
        odd = odd * w + odd_term;
        even = even * w + even_term;
    }
    let series = odd * z + even * w;
    let exponent = exponent as f64;
    exponent * LN_2_HIGH + (2.0 * s + (2.0 * s * series + exponent * LN_2_LOW))
}

/// e to the power of `x`; 0 or infinite where that leaves the normal numbers.
pub(super) fn exp(x: f64) -> f64 {
    if x < -708.0 {
        return 0.0;
    }
    if x > 709.0 {
        return f64::INFINITY;
    }
    let exponent = (x * std::f64::consts::LOG2_E).round();
    let rest = (x - exponent * LN_2_HIGH) - exponent * LN_2_LOW;
    // Taylor's series; the rest is below 0.347: fourteen terms.
    let mut series = 0.0;
    for term in (1..=14).rev() {
        series = (series + 1.0) * rest / f64::from(term);
    }
    (series + 1.0) * f64::from_bits(((exponent as i64 + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relative_error(found: f64, expected: f64) -> f64 {
        if expected == 0.0 { found.abs() } else { ((found - expected) / expected).abs() }
    }

    #[test]
    fn agrees_with_the_system_to_two_units_in_the_last_place() {
        let mut x = 1e-300;
        while x < 1e300 {
            assert!(relative_error(ln(x), x.ln()) <= 2.0 * f64::EPSILON, "ln({x})");
            x *= 1.000_123 * 1.7;
        }
        for step in -7_000..7_000 {
            let x = f64::from(step) * 0.101;
            assert!(relative_error(exp(x), x.exp()) <= 2.0 * f64::EPSILON, "exp({x})");
        }
        for step in 1..2_000 {
            let x = 1.0 + f64::from(step - 1_000) * 1e-6;
            assert!(relative_error(ln(x), x.ln()) <= 2.0 * f64::EPSILON, "ln({x})");
        }
    }

    #[test]
    fn ends_of_the_range() {
        assert_eq!(ln(1.0), 0.0);
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-1e9), 0.0);
        assert_eq!(exp(1e9), f64::INFINITY);
    }
}
