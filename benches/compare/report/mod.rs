//! Results as Markdown: a section per table.

mod bars;
mod section;
mod tables;
mod targets;
mod text;
mod wanted;

use crate::results::Results;
pub(crate) use bars::throughput;
use clap::Args;
pub(crate) use section::{Section, marked, plain, update};
use std::path::{Path, PathBuf};

/// Pictures to draw.
#[derive(Debug, Args)]
pub(crate) struct Pictures {
    /// Draw the throughput of one flow, as SVG.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

impl Pictures {
    /// The files to write and what is to be in them.
    ///
    /// # Errors
    /// No case of a picture has a result.
    pub(crate) fn draw(&self, results: &Results) -> Result<Vec<(&Path, String)>, String> {
        let Some(file) = &self.plot else { return Ok(Vec::new()) };
        let picture = throughput(results)
            .ok_or("--plot: there is no result for one flow of bulk data (send-1, receive-1)")?;
        Ok(vec![(file, picture)])
    }
}

/// Those that have any result.
pub(crate) fn sections(results: &Results) -> Vec<Section> {
    let section = |name, title, text| Section { name, title, text };
    let all = [
        section("setting", "Setting", tables::setting(&results.setting)),
        section("ratios", "ackline beside the others", tables::ratios(results)),
        section("targets", "Targets", targets::table(results)),
        section("bulk", "Bulk data, Gbit/s: median (range)", tables::bulk(results)),
        section("cpu", "Processor seconds per 10^9 bytes", tables::cpu(results)),
        section("io-uring", "io_uring beside read and write", tables::rings(results)),
        section("programs", "A runtime with two worker threads", tables::programs(results)),
        section("default-cc", "The kernel's congestion control", tables::system_cc(results)),
        section("captures", "Captures and traces", tables::captures(results)),
        section("acks", "Fewer ACKs", tables::acks(results)),
        section("latency", "Round trip of one byte, µs", tables::latency(results)),
        section("connections", "Connections per second", tables::connections(results)),
    ];
    all.into_iter().filter(|section| !section.text.is_empty()).collect()
}
