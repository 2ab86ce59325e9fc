//! A test as iperf3's `--json-stream`: each part of the document on a line of its own, as soon as
//! it is known.

use super::json::{Document, IntervalDoc};
use super::record::{Interval, Record};
use crate::report::json_stream::line;

/// Data flows.
pub(super) fn start(record: &Record) -> String {
    line("start", &Document::from(record).start)
}

/// An interval is over.
pub(super) fn interval(interval: &Interval, record: &Record) -> String {
    line("interval", &IntervalDoc::new(interval, record))
}

/// All that is known when the test is over. The last line is its end, or why there is none.
pub(super) fn done(record: &Record) -> String {
    let Document {
        start: _,
        intervals: _,
        end,
        title,
        extra_data,
        server_output_text,
        server_output_json,
        error,
        ackline,
    } = Document::from(record);
    let lines = [
        title.map(|title| line("title", &title)),
        extra_data.map(|data| line("extra_data", &data)),
        server_output_text.map(|text| line("server_output_text", &text)),
        server_output_json.map(|json| line("server_output_json", json)),
        ackline.map(|own| line("ackline", &own)),
        record.end.is_some().then(|| line("end", &end)),
        error.map(|error| line("error", &error)),
    ];
    lines.into_iter().flatten().collect()
}
