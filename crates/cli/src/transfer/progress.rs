//! How far a transfer is: counted for time-outs and reports, drawn if a person looks on.

use crate::args::OutputArgs;
use crate::output::{self, numbers};
use ackline::core::Instant;
use ackline::runtime::{Stack, timer};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt;
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Before the first byte.
const WAITING: &str = "{msg}: no data yet";
/// Of a transfer whose size is known.
const WITH_END: &str =
    "{msg} {bar:30} {percent:>3}% {binary_bytes} of {binary_total_bytes}, {rate}, {eta} left";
const WITHOUT_END: &str = "{msg} {spinner} {binary_bytes} in {elapsed}, {rate}";

/// The look of a bar.
fn style(template: &str) -> ProgressStyle {
    let rate = |state: &ProgressState, text: &mut dyn fmt::Write| {
        // If the bar cannot be drawn there is nobody to tell.
        let _ = text.write_str(&numbers::bit_rate(state.per_sec() * 8.0));
    };
    // The templates are constants; if one were wrong the default style would do.
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars("=> ").with_key("rate", rate)
}

/// Counts the bytes of one or several transfers. Threads may add to it at the same time.
pub(crate) struct Progress {
    bytes: Arc<AtomicU64>,
    /// Those of all parts, if this is one.
    whole: Option<Arc<AtomicU64>>,
    /// When that changed last, or began, on the clock of [`timer::now`], in nanoseconds.
    changed: AtomicU64,
    /// Hidden unless standard error is a terminal.
    bar: ProgressBar,
}

impl Progress {
    /// `total`: the size, if it is known; then there is an ETA once data flow.
    pub(crate) fn new(label: &str, total: Option<u64>, output: OutputArgs) -> Self {
        let drawn = !output.quiet && std::io::stderr().is_terminal();
        let target = if drawn { ProgressDrawTarget::stderr_with_hz(5) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(total, target);
        bar.set_style(style(WAITING));
        bar.set_message(output::harmless(label).into_owned());
        Self::counting_on(bar, None)
    }

    /// Counts, and draws nothing.
    pub(crate) fn silent() -> Self {
        Self::counting_on(ProgressBar::hidden(), None)
    }

    /// Counts a part on its own as well as for the whole, and draws it on the same bar.
    pub(crate) fn part(&self) -> Self {
        Self::counting_on(self.bar.clone(), Some(self.bytes.clone()))
    }

    fn counting_on(bar: ProgressBar, whole: Option<Arc<AtomicU64>>) -> Self {
        Self { bytes: Arc::default(), whole, changed: AtomicU64::new(timer::now().as_nanos()), bar }
    }

    /// Counts `bytes` more.
    pub(crate) fn add(&self, bytes: u64) {
        for count in std::iter::once(&self.bytes).chain(&self.whole) {
            count.fetch_add(bytes, Ordering::Relaxed);
        }
        self.changed.store(timer::now().as_nanos(), Ordering::Relaxed);
        if !self.bar.is_hidden() {
            if self.bar.position() == 0 {
                // Nothing can be said of rate and end before.
                self.bar.set_style(style(if self.bar.length().is_some() { WITH_END } else { WITHOUT_END }));
                self.bar.reset_elapsed();
                self.bar.reset_eta();
            }
            self.bar.inc(bytes);
        }
    }

    /// There are `bytes` in all; never fewer than before.
    pub(crate) fn set(&self, bytes: u64) {
        let before = self.bytes.load(Ordering::Relaxed);
        if bytes > before {
            self.add(bytes - before);
        }
    }

    /// All bytes so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How long no byte was counted.
    pub(crate) fn silent_for(&self) -> Duration {
        let changed = Instant::from_nanos(self.changed.load(Ordering::Relaxed));
        timer::now().since(changed).into()
    }

    /// Prints a line on standard error without tearing the bar.
    pub(crate) fn say(&self, line: &str) {
        self.bar.suspend(|| output::say(line));
    }

    /// Takes the bar from the screen.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Completes when no byte was counted for `limit`; never without a limit.
    pub(crate) async fn stalled(&self, limit: Option<Duration>) {
        self.stalled_beside(limit, || 0).await;
    }

    /// [`Self::stalled`] for a sender: data that leaves `stack` for the first time is progress,
    /// too, and so is what `beside` counts.
    pub(crate) async fn stalled_sending(&self, limit: Option<Duration>, stack: &Stack, beside: &Self) {
        self.stalled_beside(limit, || (stack.stats().egress.data.packets, beside.bytes())).await;
    }

    /// Completes when neither the count nor `other` changed for `limit`.
    async fn stalled_beside<T: PartialEq>(&self, limit: Option<Duration>, other: impl Fn() -> T) {
        let Some(limit) = limit else { return std::future::pending().await };
        let look_at = || (self.bytes(), other());
        let mut seen = look_at();
        let mut since = tokio::time::Instant::now();
        loop {
            let deadline = since + limit;
            if tokio::time::Instant::now() >= deadline {
                return;
            }
            // Looks now and then instead of being told of every byte; late by less than a tenth of
            // the limit.
            let look = (limit / 10).clamp(Duration::from_millis(5), Duration::from_millis(250));
            tokio::time::sleep(look.min(deadline - tokio::time::Instant::now())).await;
            let present = look_at();
            if present != seen {
                seen = present;
                since = tokio::time::Instant::now();
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // The bar is the whole's.
        if self.whole.is_none() {
            self.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    #[tokio::test]
    async fn what_leaves_a_full_buffer_is_progress() {
        let progress = Progress::silent();
        let begin = Instant::now();
        // Something moves for 300 ms, and then nothing.
        let left = || u64::try_from(begin.elapsed().as_millis().min(300)).unwrap();
        progress.stalled_beside(Some(Duration::from_millis(100)), left).await;
        assert!(begin.elapsed() >= Duration::from_millis(390));
    }
}
