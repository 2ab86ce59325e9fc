//! What counters have counted since they were last looked at.

use super::history::Sample;

/// A counter of all stacks together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) value: u64,
    /// Per second, over the time in which `value` was counted.
    pub(super) rate: f64,
}

/// The counters of `now`, less those of the same stacks in `before`, added up, in the order in
/// which the stacks have them. A stack that is not in `before` counts from its beginning.
/// `increments`: without values that are no counts.
pub(super) fn rows(before: &[Sample], now: &[Sample], increments: bool) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for sample in now {
        let last = before.iter().find(|last| last.stack == sample.stack);
        let since = last.map_or(sample.stack.started, |last| last.at);
        let seconds = sample.at.saturating_sub(since) as f64 / 1e6;
        for (name, value) in &sample.counters {
            if increments && is_gauge(name) {
                continue;
            }
            // Of the same stack, a counter never falls.
            let value = value.saturating_sub(last.and_then(|last| last.value(name)).unwrap_or(0));
            let rate = if seconds > 0.0 && !is_gauge(name) { value as f64 / seconds } else { 0.0 };
            match rows.iter_mut().find(|row| row.name == *name) {
                Some(row) => {
                    row.value = row.value.saturating_add(value);
                    row.rate += rate;
                }
                None => rows.push(Row { name: name.clone(), value, rate }),
            }
        }
    }
    rows
}

/// What says how many there are now, such as `TcpCurrEstab`.
fn is_gauge(name: &str) -> bool {
    name.contains("Curr")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watchers::control::protocol::About;

    fn sample(pid: u32, started: u64, at: u64, counters: [(&str, u64); 2]) -> Sample {
        let stack = About { pid, command: "recv".to_owned(), started };
        Sample::new(stack, at, counters.map(|(name, value)| (name.to_owned(), value)).to_vec())
    }

    fn values(rows: &[Row]) -> Vec<(&str, u64, f64)> {
        rows.iter().map(|row| (row.name.as_str(), row.value, row.rate)).collect()
    }

    #[test]
    fn stacks_are_added_up_and_each_counts_from_its_own_last_time() {
        let before = [sample(1, 0, 1_000_000, [("TcpInSegs", 10), ("TcpCurrEstab", 5)])];
        let now = [
            sample(1, 0, 3_000_000, [("TcpInSegs", 30), ("TcpCurrEstab", 2)]),
            // It began two seconds ago.
            sample(2, 1_000_000, 3_000_000, [("TcpInSegs", 100), ("TcpCurrEstab", 4)]),
        ];
        assert_eq!(values(&rows(&before, &now, true)), [("TcpInSegs", 120, 60.0)]);
        let absolute = rows(&[], &now, false);
        assert_eq!(values(&absolute), [("TcpInSegs", 130, 60.0), ("TcpCurrEstab", 6, 0.0)]);
    }

    #[test]
    fn a_new_process_with_an_old_number_counts_from_zero() {
        let before = [sample(7, 0, 1_000_000, [("TcpInSegs", 50), ("TcpOutSegs", 50)])];
        let now = [sample(7, 2_000_000, 3_000_000, [("TcpInSegs", 60), ("TcpOutSegs", 1)])];
        let rows = rows(&before, &now, true);
        assert_eq!(values(&rows), [("TcpInSegs", 60, 60.0), ("TcpOutSegs", 1, 1.0)]);
    }
}
