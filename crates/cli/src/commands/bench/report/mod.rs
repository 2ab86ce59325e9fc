//! What `bench` says: the model of a test's results, text with iperf3's columns, iperf3's JSON.
//!
//! The engine tells a [`Reporter`] what happens, in the order `begin`, `connected` for each stream,
//! `started`, `interval` for each interval, `end`, `done`; and `failed` instead of what a failure
//! keeps from happening. Each gives the text to print, which is empty if it has to wait for the
//! JSON document or for the next line of a stream.

mod json;
pub(crate) mod record;
mod stream;
mod text;

#[cfg(test)]
mod tests;

use crate::args::json::Json;
use crate::args::units::RateFormat;
use crate::output;
use json::Document;
use record::{Connected, End, Interval, Own, Record, ServerOutput, Setup, Software};
use text::Text;

/// How results are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Style {
    /// `-J`, `--json-stream`; text if neither.
    pub(crate) json: Option<Json>,
    /// `-V`.
    pub(crate) verbose: bool,
    /// `-f`.
    pub(crate) rate: RateFormat,
    /// `-T`: stands before every line.
    pub(crate) title: Option<String>,
}

/// Keeps what happens in a test, and says it. One for each test.
#[derive(Debug)]
pub(crate) struct Reporter {
    style: Style,
    record: Record,
    /// What was shown of this test, as far as it is kept for the other end.
    shown: String,
    /// No interval came yet.
    fresh: bool,
    /// Measurements in the record.
    kept: usize,
}

/// Most measurements (one for each stream in each interval) that are kept for a JSON document,
/// which ends with the last interval that fits: as many as 100 streams have in three hours.
const MAX_KEPT: usize = 1 << 20;
/// Most bytes of text that are kept for the other end.
const MAX_SHOWN: usize = 1 << 20;

impl Reporter {
    pub(crate) fn new(style: Style, software: Software) -> Self {
        Self { style, record: Record::new(software), shown: String::new(), fresh: true, kept: 0 }
    }

    /// What runs, with `-V`: a server says it once, a client before its test.
    pub(crate) fn opening(&self) -> String {
        self.styled(|text| text.opening(&self.record))
    }

    /// A server's invitation to its `test`th test, beginning with 1. It says it in each style but
    /// JSON.
    pub(crate) fn listening(&self, port: u16, test: u64) -> String {
        self.styled(|_| Text::listening(port, test))
    }

    /// The control connection stands, and both ends know what to do.
    pub(crate) fn begin(&mut self, setup: Setup) -> String {
        let text = self.styled(|text| text.setup(&setup));
        self.record.setup = Some(setup);
        self.show(text)
    }

    /// A connection for data stands.
    pub(crate) fn connected(&mut self, stream: Connected) -> String {
        self.record.streams.push(stream);
        let text = self.styled(|_| Text::connected(&stream));
        self.show(text)
    }

    /// Data flows.
    pub(crate) fn started(&mut self) -> String {
        if self.style.json == Some(Json::Stream) {
            return stream::start(&self.record);
        }
        let text = self
            .styled(|text| self.record.setup.as_ref().map(|setup| text.started(setup)).unwrap_or_default());
        self.show(text)
    }

    /// An interval is over.
    pub(crate) fn interval(&mut self, interval: Interval) -> String {
        let text = match self.style.json {
            Some(Json::Stream) => stream::interval(&interval, &self.record),
            _ => self.styled(|text| text.interval(&self.record, &interval, self.fresh)),
        };
        self.fresh = false;
        self.record.watch(&interval);
        if self.needs_intervals() && self.kept.saturating_add(interval.streams.len()) <= MAX_KEPT {
            self.kept += interval.streams.len();
            self.record.intervals.push(interval);
        }
        if self.style.json.is_some() { text } else { self.show(text) }
    }

    /// There will be a document: for this end's user, or for a client that asks for what its server
    /// showed.
    fn needs_intervals(&self) -> bool {
        match self.style.json {
            None => false,
            Some(Json::Document) => true,
            Some(Json::Stream) => !self.record.is_client(),
        }
    }

    /// The test is over, and the results are known as far as they will be.
    pub(crate) fn end(&mut self, end: End) -> String {
        let text = self.styled(|text| text.end(&self.record, &end));
        self.record.end = Some(end);
        self.show(text)
    }

    /// What iperf3 does not have.
    pub(crate) fn own(&mut self, own: Own) {
        self.record.own = Some(own);
    }

    /// What the client wants to be repeated in the JSON of both ends.
    pub(crate) fn labels(&mut self, title: Option<String>, extra_data: Option<String>) {
        self.record.title = title;
        self.record.extra_data = extra_data;
    }

    /// What this end showed of the test, for a client that asks for it (`--get-server-output`); no
    /// more than 1 MiB of text.
    pub(crate) fn server_output(&self) -> ServerOutput {
        if self.style.json.is_some() {
            // Fails only for maps with keys that are no strings.
            ServerOutput::Json(serde_json::to_value(Document::from(&self.record)).unwrap_or_default())
        } else {
            ServerOutput::Text(self.shown.clone())
        }
    }

    /// What the server showed its user.
    pub(crate) fn told_by_server(&mut self, output: ServerOutput) -> String {
        let text = self.styled(|_| match &output {
            ServerOutput::Text(text) => format!("\nServer output:\n{text}\n"),
            ServerOutput::Json(json) => format!("\nServer JSON output:\n{}\n", output::json(json)),
        });
        self.record.server_output = Some(output);
        self.show(text)
    }

    /// Why the test failed, for the JSON document; in text the command's last line says it.
    pub(crate) fn failed(&mut self, error: &str) {
        self.record.error = Some(error.to_owned());
    }

    /// The last that is said of a test, failed or not: the JSON document, or a client's farewell.
    pub(crate) fn done(&mut self) -> String {
        match self.style.json {
            Some(Json::Document) => return output::json(&Document::from(&self.record)),
            Some(Json::Stream) => return stream::done(&self.record),
            None => {}
        }
        if self.record.error.is_none() && self.record.end.is_some() && self.record.is_client() {
            // Scripts wait for this line by these words.
            return self.styled(|_| "\niperf Done.\n".to_owned());
        }
        String::new()
    }

    fn show(&mut self, text: String) -> String {
        if self.shown.len() + text.len() <= MAX_SHOWN {
            self.shown += &text;
        }
        text
    }

    /// The lines with the title, or nothing if there is JSON.
    fn styled(&self, write: impl FnOnce(Text) -> String) -> String {
        let text = Text { rate: self.style.rate, verbose: self.style.verbose };
        match &self.style {
            Style { json: Some(_), .. } => String::new(),
            Style { title: None, .. } => write(text),
            Style { title: Some(title), .. } => {
                write(text).lines().map(|line| format!("{title}:  {line}\n")).collect()
            }
        }
    }
}
