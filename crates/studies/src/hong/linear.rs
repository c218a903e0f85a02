//! Small systems of linear equations.

/// Solves `rows · x = right`, square; none if it has no one solution.
pub(super) fn solve(mut rows: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let size = right.len();
    // Parameters differ by many decades: each row is measured against its own largest entry.
    for (row, right) in rows.iter_mut().zip(&mut right) {
        let largest = row.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        if largest == 0.0 {
            return None;
        }
        row.iter_mut().for_each(|value| *value /= largest);
        *right /= largest;
    }
    for column in 0..size {
        let pivot = (column..size)
            .max_by(|one, two| rows[*one][column].abs().total_cmp(&rows[*two][column].abs()))?;
        if rows[pivot][column].abs() < 1e-12 {
            return None;
        }
        rows.swap(column, pivot);
        right.swap(column, pivot);
        let pivot: Vec<f64> = rows[column].clone();
        let on_the_right = right[column];
        for (index, row) in rows.iter_mut().enumerate().filter(|(index, _)| *index != column) {
            let factor = row[column] / pivot[column];
            row.iter_mut().zip(&pivot).for_each(|(value, pivot)| *value -= factor * pivot);
            right[index] -= factor * on_the_right;
        }
    }
    Some((0..size).map(|row| right[row] / rows[row][row]).collect())
}

/// Least squares: the `x` for which `rows · x` comes closest to 1 everywhere, and the covariance of `x` for a variance
/// of 1. None if the rows do not determine it.
pub(super) fn closest_to_one(rows: &[Vec<f64>]) -> Option<(Vec<f64>, Vec<Vec<f64>>)> {
    let size = rows.first()?.len();
    let sum = |one: usize, two: usize| rows.iter().map(|row| row[one] * row[two]).sum::<f64>();
    // Columns in units of their own length: the equations are as well behaved as they can be.
    let scale: Vec<f64> = (0..size).map(|column| sum(column, column).sqrt()).collect();
    if scale.contains(&0.0) {
        return None;
    }
    let normal: Vec<Vec<f64>> =
        (0..size).map(|one| (0..size).map(|two| sum(one, two) / scale[one] / scale[two]).collect()).collect();
    let right =
        (0..size).map(|column| rows.iter().map(|row| row[column]).sum::<f64>() / scale[column]).collect();
    let found = solve(normal.clone(), right)?;
    let unit = |index: usize| (0..size).map(|at| f64::from(u8::from(at == index))).collect();
    let inverse: Vec<Vec<f64>> =
        (0..size).map(|index| solve(normal.clone(), unit(index))).collect::<Option<_>>()?;
    let covariance = (0..size)
        .map(|one| (0..size).map(|two| inverse[one][two] / scale[one] / scale[two]).collect())
        .collect();
    Some((found.iter().zip(&scale).map(|(value, scale)| value / scale).collect(), covariance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_of_very_different_sizes() {
        let found = solve(vec![vec![1.0, 1e6], vec![2.0, 1e-3]], vec![3.0, 4.0]).unwrap();
        assert!((found[0] + 1e6 * found[1] - 3.0).abs() < 1e-9);
        assert!((2.0 * found[0] + 1e-3 * found[1] - 4.0).abs() < 1e-9);
        assert_eq!(solve(vec![vec![1.0, 2.0], vec![2.0, 4.0]], vec![1.0, 1.0]), None);
    }

    #[test]
    fn a_mean_and_its_variance() {
        // 1/y as the only column: the relative mean.
        let (found, covariance) = closest_to_one(&[vec![1.0 / 2.0], vec![1.0 / 4.0]]).unwrap();
        assert!((found[0] - 0.75 / (0.25 + 0.0625)).abs() < 1e-12);
        assert!((covariance[0][0] - 1.0 / 0.3125).abs() < 1e-12);
    }
}
