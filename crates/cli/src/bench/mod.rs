//! `ackline bench`: measures throughput against another `ackline bench` or a stock iperf3.

#[expect(dead_code, reason = "the command that fills and shows it has no engine")]
mod report;
