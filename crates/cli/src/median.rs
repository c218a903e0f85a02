//! The median of measurements: what a few that were disturbed took does not move it.

/// The value in the middle; of an even number of values the mean of the middle two, and of none NaN.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[middle],
        _ => values[middle - 1].midpoint(values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn medians_of_even_and_odd_numbers() {
        assert_eq!(median(vec![10.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![1.0, 10.0, 4.0, 2.0]), 3.0);
        assert!(median(Vec::new()).is_nan());
    }
}
