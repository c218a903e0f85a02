//! The same work for many things, over several processors, with the results in the order of the things.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use anyhow::{Result, anyhow};

/// Does `work` for each thing on `jobs` threads. Results, and which error is told, do not depend on how many: things are
/// begun in order, and the error is that of the first thing that fails.
pub(crate) fn each<T: Sync, R: Send>(
    things: &[T],
    jobs: usize,
    work: impl Fn(&T) -> Result<R> + Sync,
    done: impl Fn(u64) + Sync,
) -> Result<Vec<R>> {
    let (next, ended, has_failed) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let results: Vec<Mutex<Option<Result<R>>>> = things.iter().map(|_| Mutex::new(None)).collect();
    let worker = || {
        while !has_failed.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let (Some(thing), Some(result)) = (things.get(index), results.get(index)) else { return };
            let found = work(thing);
            has_failed.fetch_or(found.is_err(), Ordering::Relaxed);
            if let Ok(mut result) = result.lock() {
                *result = Some(found);
            }
            done(1 + ended.fetch_add(1, Ordering::Relaxed) as u64);
        }
    };
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, things.len().max(1)) {
            scope.spawn(worker);
        }
    });
    let result = |result: Mutex<Option<Result<R>>>| {
        result
            .into_inner()
            .ok()
            .flatten()
            .unwrap_or_else(|| Err(anyhow!("not started, because another point failed")))
    };
    results.into_iter().map(result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_the_first_error_is_told() {
        let things: Vec<u64> = (0..100).collect();
        for jobs in [1, 3, 8] {
            let squares = each(&things, jobs, |thing| Ok(thing * thing), |_| {}).unwrap();
            assert_eq!(squares[99], 9801);
            let fail = |thing: &u64| if thing % 10 == 7 { Err(anyhow!("{thing}")) } else { Ok(()) };
            assert_eq!(each(&things, jobs, fail, |_| {}).unwrap_err().to_string(), "7");
        }
    }
}
