//! Standard output of one test.

use super::protocol::TestParameters;
use super::report::record::{Connected, End, Interval, Own, ServerOutput, Setup, Software};
use super::report::{Reporter, Style};
use crate::failure::Failure;
use std::fs;

/// Where the words go.
pub(super) type Print = fn(&str) -> Result<(), Failure>;

/// A reporter whose words are printed.
pub(super) struct Screen {
    reporter: Reporter,
    print: Print,
}

impl Screen {
    pub(super) fn new(style: Style, print: Print) -> Self {
        Self { reporter: Reporter::new(style, software()), print }
    }

    fn print(&self, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        (self.print)(text)
    }

    /// What runs, with `-V`.
    pub(super) fn opening(&self) -> Result<(), Failure> {
        self.print(&self.reporter.opening())
    }

    pub(super) fn listening(&self, port: u16, test: u64) -> Result<(), Failure> {
        self.print(&self.reporter.listening(port, test))
    }

    pub(super) fn begin(&mut self, setup: Setup) -> Result<(), Failure> {
        let text = self.reporter.begin(setup);
        self.print(&text)
    }

    pub(super) fn connected(&mut self, stream: Connected) -> Result<(), Failure> {
        let text = self.reporter.connected(stream);
        self.print(&text)
    }

    pub(super) fn started(&mut self) -> Result<(), Failure> {
        let text = self.reporter.started();
        self.print(&text)
    }

    pub(super) fn interval(&mut self, interval: Interval) -> Result<(), Failure> {
        let text = self.reporter.interval(interval);
        self.print(&text)
    }

    pub(super) fn end(&mut self, end: End) -> Result<(), Failure> {
        let text = self.reporter.end(end);
        self.print(&text)
    }

    pub(super) fn own(&mut self, own: Own) {
        self.reporter.own(own);
    }

    /// What the client wants to be repeated.
    pub(super) fn labels(&mut self, parameters: &TestParameters) {
        self.reporter.labels(parameters.title.clone(), parameters.extra_data.clone());
    }

    pub(super) fn server_output(&self) -> ServerOutput {
        self.reporter.server_output()
    }

    pub(super) fn told_by_server(&mut self, output: ServerOutput) -> Result<(), Failure> {
        let text = self.reporter.told_by_server(output);
        self.print(&text)
    }

    /// The last of a test.
    pub(super) fn done(&mut self, failure: Option<&Failure>) -> Result<(), Failure> {
        if let Some(failure) = failure {
            self.reporter.failed(&failure.to_string());
        }
        let text = self.reporter.done();
        self.print(&text)
    }
}

/// This program, and what it runs on.
fn software() -> Software {
    let kernel = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
        text.trim_end().to_owned()
    };
    Software {
        version: concat!("ackline ", env!("CARGO_PKG_VERSION")).to_owned(),
        system: format!(
            "{} {} {} {} {}",
            kernel("ostype"),
            kernel("hostname"),
            kernel("osrelease"),
            kernel("version"),
            std::env::consts::ARCH
        ),
    }
}
