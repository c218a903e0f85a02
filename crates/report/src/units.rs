//! Numbers with units, for people: one place, so that every report says them alike.

/// Four significant digits, without zeros that say nothing: `48`, `31.59`, `0.052`.
pub fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".into() } else { "–".into() };
    }
    // Rounded first: 9.9996 has one digit more before the point than its logarithm says.
    let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    let before_point = rounded.abs().log10().floor() as i32 + 1;
    if !(-3..=15).contains(&before_point) {
        return format!("{value:.3e}");
    }
    let text = format!("{:.*}", (4 - before_point).max(0) as usize, value);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// Bytes: `24 B`, `128 KiB`, `1.953 MiB`.
pub fn bytes(value: f64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if !value.is_finite() {
        return NOTHING.into();
    }
    let (mut value, mut unit) = (value, 0);
    // 1023.96 of one unit would round to 1024 of it.
    while value.abs() >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", significant(value), UNITS[unit])
}

/// Bytes per second. Where nothing was moved there is no rate: `–`.
pub fn rate(bytes_per_s: f64) -> String {
    if bytes_per_s == 0.0 || !bytes_per_s.is_finite() {
        return NOTHING.into();
    }
    format!("{}/s", bytes(bytes_per_s))
}

/// What stands where nothing was measured. A zero that was measured is a zero.
pub const NOTHING: &str = "–";

/// A number in its unit; `–` if it was not measured.
pub fn if_known(value: Option<f64>, unit: impl Fn(f64) -> String) -> String {
    value.map_or(NOTHING.into(), unit)
}

/// A time: `1.2 µs`, `31.35 s`, `12 min 5 s`, `3 h 4 min`.
pub fn time_s(seconds: f64) -> String {
    let absolute = seconds.abs();
    if !seconds.is_finite() {
        "–".into()
    } else if absolute == 0.0 {
        "0 s".into()
    } else if absolute < 999.95e-9 {
        format!("{} ns", significant(seconds * 1e9))
    } else if absolute < 999.95e-6 {
        format!("{} µs", significant(seconds * 1e6))
    } else if absolute < 999.95e-3 {
        format!("{} ms", significant(seconds * 1e3))
    } else if absolute < 600.0 {
        format!("{} s", significant(seconds))
    } else {
        let whole = seconds.round() as i64;
        if absolute < 36_000.0 {
            format!("{} min {} s", whole / 60, whole % 60)
        } else {
            format!("{} h {} min", whole / 3600, whole / 60 % 60)
        }
    }
}

/// A time given in nanoseconds.
pub fn time_ns(nanoseconds: u64) -> String {
    time_s(nanoseconds as f64 / 1e9)
}

/// A whole number, thousands apart: `1,380,457`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A part of one, as per cent: `34 %`, `0.2 %`, `100 %`, `< 0.1 %`.
pub fn percent(part: f64) -> String {
    let value = part * 100.0;
    if !value.is_finite() {
        return NOTHING.into();
    }
    if value > 0.0 && value < 0.05 {
        return "< 0.1 %".into();
    }
    if value != 0.0 && value.abs() < 9.95 { format!("{value:.1} %") } else { format!("{value:.0} %") }
}

/// Some number of things: `1 file`, `25 files`.
pub fn things(value: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(value), if value == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits_and_a_unit() {
        assert_eq!(bytes(24.0), "24 B");
        assert_eq!(bytes(131_072.0), "128 KiB");
        assert_eq!(bytes(2_048_000.0), "1.953 MiB");
        assert_eq!(bytes(1023.99 * 1024.0), "1 MiB");
        assert_eq!(bytes(u64::MAX as f64), "16 EiB");
        assert_eq!(rate(31.59 * 1048576.0), "31.59 MiB/s");
        assert_eq!(time_s(0.052), "52 ms");
        assert_eq!(time_s(31.35), "31.35 s");
        assert_eq!(time_s(1258.0), "20 min 58 s");
        assert_eq!(time_s(40_000.0), "11 h 6 min");
        assert_eq!(time_ns(1_200), "1.2 µs");
        assert_eq!(time_ns(999_960), "1 ms");
        assert_eq!(count(1_380_457), "1,380,457");
        assert_eq!(percent(0.344), "34 %");
        assert_eq!(percent(0.002), "0.2 %");
        assert_eq!(percent(0.000_2), "< 0.1 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(significant(9.99996), "10");
        assert_eq!(significant(f64::NAN), "–");
    }

    #[test]
    fn nothing_measured_is_no_zero() {
        for nothing in [bytes(f64::NAN), time_s(f64::NAN), percent(f64::NAN), rate(f64::NAN), rate(0.0)] {
            assert_eq!(nothing, "–");
        }
        assert_eq!((if_known(None, bytes), if_known(Some(3.0), bytes)), ("–".into(), "3 B".into()));
        // These were measured.
        assert_eq!([bytes(0.0), time_s(0.0), percent(0.0), count(0)], ["0 B", "0 s", "0 %", "0"]);
    }
}
