//! What gVisor's program answers when it is asked what came through.

use ackline_tcp_core::Duration;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Bytes, round trips or connections so far.
    pub(crate) total: u64,
    /// Of the round trips since the last answer.
    pub(crate) times: Vec<Duration>,
}

impl Answer {
    /// Numbers with spaces between: the total, then nanoseconds.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let numbers: Result<Vec<u64>, _> = line.split_whitespace().map(str::parse).collect();
        match numbers.as_deref() {
            Ok([total, times @ ..]) => {
                Ok(Self { total: *total, times: times.iter().copied().map(Duration::from_nanos).collect() })
            }
            _ => Err(format!("gVisor's program said {:?}", line.trim())),
        }
    }
}
