//! The time-sequence diagram of one connection.

use super::of_run::prefixed;
use super::{Chart, Line, Look, Style};
use crate::sequence::TimeSequence;

/// What it is called among the plots of a run.
const NAME: &str = "sequence";

/// Segments as strokes from their first byte to their last, ACKs and the receiver's window as lines of steps.
pub(super) fn chart(sequence: &TimeSequence) -> Chart {
    let most = sequence.segments.iter().map(|bytes| bytes.until).max().unwrap_or(0);
    let (size, unit) = prefixed(most as f64, "B", "kB");
    let at = |nanos: u64| nanos as f64 / 1e9;
    let place = |byte: u64| byte as f64 / size;
    let bars = |again: bool| {
        let those = sequence.segments.iter().filter(move |bytes| bytes.again == again);
        those.map(|bytes| (at(bytes.at_ns), place(bytes.from), place(bytes.until))).collect()
    };
    let acks = |of: fn(&crate::sequence::ReceivedAck) -> u64| {
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
    // The window may be far above what is sent: then it would press the rest against the bottom.
    let edge = acks(|ack| ack.edge);
    let near = edge.iter().all(|(_, edge)| *edge <= place(most) * 1.6);
    let mut lines = vec![];
    if near {
        lines.push(Line { points: edge, ..line("receiver's window", Style::Steps, Look::Series(5)) });
    }
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
        name: NAME.to_owned(),
        title: "Time-sequence diagram at the sender".to_owned(),
        y_label: format!("sequence number ({unit})"),
        from_zero: true,
        lines,
        ..Chart::default()
    }
}

/// True for a chart that [`chart`] has made.
pub(super) fn is_one(chart: &Chart) -> bool {
    chart.name == NAME
}
