//! What the runs gave.

use crate::Outcome;
use crate::design::Sender;
use crate::machine;
pub(crate) use crate::summary::Summary;
use serde::{Deserialize, Serialize};

/// The result of one run, within the time that is measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Mbit/s that the receiver's application read.
    pub(crate) goodput: f64,
    /// Packets with data.
    pub(crate) sent: u64,
    /// Retransmissions among them.
    pub(crate) again: u64,
    /// Segments that reached a receiver which had them.
    pub(crate) needless: f64,
    /// Waiting time in the queue, mean, ms.
    pub(crate) delay: f64,
    /// The same, 95th percentile.
    pub(crate) delay_p95: f64,
    /// Packets that the path dropped.
    pub(crate) lost: u64,
    /// Packets that it marked.
    pub(crate) marked: u64,
    /// Times of transfers, s.
    pub(crate) times: Vec<f64>,
    /// By how much packets were late at p99, us; `None` in virtual time.
    pub(crate) late_us: Option<f64>,
    /// Why it does not count; empty if it does.
    pub(crate) invalid: Vec<String>,
}

/// A run and its result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) cell: String,
    pub(crate) sender: Sender,
    pub(crate) round: u32,
    #[serde(flatten)]
    pub(crate) sample: Sample,
}

/// What it was measured on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) processors: usize,
    pub(crate) processor: String,
    pub(crate) kernel: String,
    /// Runs were so many times as long as they usually are.
    pub(crate) longer: f64,
    /// Of the sources that were measured.
    #[serde(default)]
    pub(crate) commit: Option<String>,
}

impl Setting {
    pub(crate) fn read(longer: f64) -> Outcome<Self> {
        Ok(Self {
            processors: machine::processors()?,
            processor: machine::processor()?,
            kernel: machine::kernel()?,
            longer,
            commit: machine::commit(),
        })
    }
}

/// All runs.
#[derive(Clone, Debug)]
pub(crate) struct Results {
    pub(crate) setting: Setting,
    pub(crate) runs: Vec<Run>,
}

impl Results {
    /// One line of JSON for the setting, one for each run.
    pub(crate) fn to_lines(&self) -> Outcome<String> {
        let mut text = serde_json::to_string(&self.setting)? + "\n";
        for run in &self.runs {
            text += &serde_json::to_string(run)?;
            text.push('\n');
        }
        Ok(text)
    }

    pub(crate) fn parse(text: &str) -> Outcome<Self> {
        let mut lines = text.lines();
        let setting = serde_json::from_str(lines.next().unwrap_or_default())?;
        let runs = lines.map(serde_json::from_str).collect::<Result<_, _>>()?;
        Ok(Self { setting, runs })
    }

    /// Of a sender in a cell: its valid runs, or all if none is.
    fn of(&self, cell: &str, sender: Sender) -> (Vec<&Sample>, bool) {
        let runs = self.runs.iter().filter(|run| run.cell == cell && run.sender == sender);
        let samples: Vec<&Sample> = runs.map(|run| &run.sample).collect();
        let valid: Vec<&Sample> =
            samples.iter().copied().filter(|sample| sample.invalid.is_empty()).collect();
        if valid.is_empty() { (samples, false) } else { (valid, true) }
    }

    /// `None` if there is no such run.
    pub(crate) fn summary(&self, cell: &str, sender: Sender, metric: Metric) -> Option<Summary> {
        Summary::of(self.of(cell, sender).0.into_iter().filter_map(|sample| metric.of(sample)))
    }

    /// Runs of a sender in a cell that count.
    pub(crate) fn valid(&self, cell: &str, sender: Sender) -> usize {
        let (runs, valid) = self.of(cell, sender);
        if valid { runs.len() } else { 0 }
    }

    /// True if the results are of runs that count.
    pub(crate) fn is_valid(&self, cell: &str, sender: Sender) -> bool {
        self.of(cell, sender).1
    }
}

/// A number of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metric {
    Goodput,
    Again,
    Needless,
    Delay,
    DelayP95,
    Time,
}

impl Metric {
    /// For bulk transfers.
    pub(crate) const BULK: [Self; 5] =
        [Self::Goodput, Self::Again, Self::Needless, Self::Delay, Self::DelayP95];
    /// For transfers of a size.
    pub(crate) const TRANSFERS: [Self; 3] = [Self::Time, Self::Again, Self::Needless];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Goodput => "goodput, Mbit/s",
            Self::Again => "sent again, % of packets with data",
            Self::Needless => "of these needlessly, % of packets with data",
            Self::Delay => "queueing delay, mean, ms",
            Self::DelayP95 => "queueing delay, 95 %, ms",
            Self::Time => "time, median, s",
        }
    }

    /// Smaller differences say nothing.
    pub(crate) const fn least(self) -> f64 {
        match self {
            Self::Goodput | Self::Time => 0.0,
            Self::Again | Self::Needless => 0.05,
            Self::Delay | Self::DelayP95 => 1.0,
        }
    }

    fn of(self, sample: &Sample) -> Option<f64> {
        let share = |part: f64| (sample.sent > 0).then(|| 100.0 * part / sample.sent as f64);
        match self {
            Self::Goodput => Some(sample.goodput),
            Self::Again => share(sample.again as f64),
            Self::Needless => share(sample.needless),
            Self::Delay => Some(sample.delay),
            Self::DelayP95 => Some(sample.delay_p95),
            Self::Time => Summary::of(sample.times.iter().copied()).map(|summary| summary.median),
        }
    }
}
