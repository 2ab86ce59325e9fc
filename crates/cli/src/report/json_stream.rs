//! `--json` and `--json-stream`: one document at the end, or a line for each thing that happens, as
//! iperf3 prints them.

use crate::failure::Failure;
use crate::output;
use crate::transfer::traffic::Figures;
use serde::Serialize;
use std::time::Duration;

/// A line of a stream: an event and the part of the document that tells of it.
pub(crate) fn line(event: &'static str, data: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Line<'a, T> {
        event: &'static str,
        data: &'a T,
    }
    output::json_line(&Line { event, data })
}

/// Prints JSON: on standard error if standard output carries data.
pub(crate) fn print(text: &str, data_on_stdout: bool) -> Result<(), Failure> {
    if data_on_stdout {
        output::say(text.trim_end());
        return Ok(());
    }
    output::print(text)
}

/// Prints `next` again and again, if there are to be intervals. Ends only if that fails.
pub(crate) async fn say_intervals(
    every: Option<Duration>,
    data_on_stdout: bool,
    mut next: impl FnMut() -> Option<Interval>,
) -> Failure {
    let Some(every) = every else { return std::future::pending().await };
    loop {
        tokio::time::sleep(every).await;
        if let Some(interval) = next()
            && let Err(failure) = print(&line("interval", &interval), data_on_stdout)
        {
            return failure;
        }
    }
}

/// Cuts a transfer into intervals.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Intervals {
    /// Where the last one ended.
    end: Duration,
    bytes: u64,
}

/// What moved in one interval; times in seconds since the beginning of the transfer.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Interval {
    start: f64,
    end: f64,
    #[serde(flatten)]
    figures: Figures,
}

impl Intervals {
    /// The interval that ends at `end`, when `bytes` have moved in all; `None` if it is empty.
    pub(crate) fn next(&mut self, end: Duration, bytes: u64) -> Option<Interval> {
        let (last, moved) = (self.end, bytes.saturating_sub(self.bytes));
        if end <= last && moved == 0 {
            return None;
        }
        (self.end, self.bytes) = (end, bytes);
        Some(Interval {
            start: last.as_secs_f64(),
            end: end.as_secs_f64(),
            figures: Figures::new(moved, end.saturating_sub(last)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_follow_one_another_and_add_up() {
        let mut intervals = Intervals::default();
        let second = Duration::from_secs(1);
        let all = [(second, 1_000), (second * 2, 1_000), (second * 5 / 2, 5_000)]
            .map(|(end, bytes)| intervals.next(end, bytes).expect("not empty"));
        assert!(intervals.next(second * 5 / 2, 5_000).is_none());
        assert_eq!(all.map(|interval| interval.figures.bytes), [1_000, 0, 4_000]);
        assert_eq!(all.map(|interval| interval.start), [0.0, 1.0, 2.0]);
        assert_eq!(all.map(|interval| interval.end), [1.0, 2.0, 2.5]);
        assert_eq!(line("interval", &1), "{\"event\":\"interval\",\"data\":1}\n");
    }
}
