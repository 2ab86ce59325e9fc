//! The time-sequence diagram of one connection.

use crate::run::sequence::TimeSequence;
use crate::run_plots::TIME_SEQUENCE;
use ackline_plot::{Chart, Line, Look, Style, prefixed};

/// Segments as strokes from their first byte to their last, ACKs and the receiver's window as lines
/// of steps.
pub(super) fn chart(sequence: &TimeSequence) -> Chart {
    let most = sequence.segments.iter().map(|bytes| bytes.until).max().unwrap_or(0);
    let (size, unit) = prefixed(most as f64, "B", "kB");
    let at = |nanos: u64| nanos as f64 / 1e9;
    let place = |byte: u64| byte as f64 / size;
    let bars = |again: bool| {
        let those = sequence.segments.iter().filter(move |bytes| bytes.again == again);
        those.map(|bytes| (at(bytes.at_ns), place(bytes.from), place(bytes.until))).collect()
    };
    let acks = |of: fn(&crate::run::sequence::ReceivedAck) -> u64| {
        let mut points: Vec<(f64, f64)> = vec![];
        for ack in &sequence.acks {
            // Of equal steps the first is drawn, and the end.
            if points.last().is_none_or(|(_, last)| *last != place(of(ack))) {
                points.push((at(ack.at_ns), place(of(ack))));
            }
        }
        if let Some(last) = sequence.acks.last() {
            points.push((at(last.at_ns), place(of(last))));
        }
        points
    };
    let line = |label: &str, style, look| Line { label: label.to_owned(), style, look, ..Line::default() };
    // The window may be far above what is sent: it leaves the plot there rather than press the rest
    // against the bottom.
    let mut edge = acks(|ack| ack.edge);
    let top = place(most) * 1.15;
    let far = edge.iter().any(|(_, edge)| *edge > place(most) * 1.6);
    if far {
        edge.truncate(edge.iter().position(|(_, edge)| *edge > top).map_or(edge.len(), |place| place + 1));
    }
    let mut lines = vec![];
    lines.push(Line { points: edge, ..line("receiver's window", Style::Steps, Look::Series(5)) });
    lines.push(Line { points: acks(|ack| ack.ack), ..line("acknowledged", Style::Steps, Look::Series(2)) });
    lines.push(Line { band: bars(false), ..line("segment", Style::Bars, Look::Series(0)) });
    let again: Vec<(f64, f64, f64)> = bars(true);
    // A dot shows where one is, even if its stroke is too short to be seen.
    let points = again.iter().map(|(at, from, _)| (*at, *from)).collect();
    lines.push(Line { band: again, points, ..line("retransmission", Style::Bars, Look::Series(1)) });
    let drops = sequence.drops.iter().map(|(nanos, byte)| (at(*nanos), place(*byte)));
    lines.push(Line { points: drops.collect(), ..line("dropped", Style::Crosses, Look::Series(3)) });
    lines.retain(|line| !line.points.is_empty() || !line.band.is_empty());
    Chart {
        name: TIME_SEQUENCE.to_owned(),
        title: "Time-sequence diagram at the sender".to_owned(),
        y_label: format!("sequence number ({unit})"),
        from_zero: true,
        y_range: far.then_some((0.0, top)),
        lines,
        ..Chart::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::sequence::{ReceivedAck, SentBytes};

    fn sequence(window: u64) -> TimeSequence {
        let at = |second: u64| second * 1_000_000_000;
        let sent = |second, from, again| SentBytes { at_ns: at(second), from, until: from + 1_000, again };
        let ack = |second, ack| ReceivedAck { at_ns: at(second), ack, edge: ack + window };
        TimeSequence {
            segments: vec![sent(1, 0, false), sent(2, 1_000, false), sent(3, 0, true)],
            acks: vec![ack(2, 0), ack(3, 0), ack(4, 2_000)],
            drops: vec![(at(1), 0)],
        }
    }

    fn line<'a>(chart: &'a Chart, label: &str) -> &'a Line {
        chart.lines.iter().find(|line| line.label == label).unwrap()
    }

    #[test]
    fn each_kind_of_event_has_its_line() {
        let chart = chart(&sequence(500));
        assert_eq!(chart.y_label, "sequence number (kB)");
        assert_eq!(line(&chart, "segment").band, [(1.0, 0.0, 1.0), (2.0, 1.0, 2.0)]);
        assert_eq!(line(&chart, "retransmission").band, [(3.0, 0.0, 1.0)]);
        assert_eq!(line(&chart, "acknowledged").points, [(2.0, 0.0), (4.0, 2.0), (4.0, 2.0)]);
        assert_eq!(line(&chart, "receiver's window").points, [(2.0, 0.5), (4.0, 2.5), (4.0, 2.5)]);
        assert_eq!(line(&chart, "dropped").points, [(1.0, 0.0)]);
        assert_eq!(chart.y_range, None);
    }

    #[test]
    fn a_window_far_above_leaves_the_plot() {
        let chart = chart(&sequence(1 << 20));
        assert!(chart.y_range.is_some_and(|(_, top)| top < 3.0));
        assert_eq!(line(&chart, "receiver's window").points.len(), 1, "the first point is above the plot");
    }
}
