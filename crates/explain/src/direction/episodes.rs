//! Episodes of loss, and retransmissions that may yet turn out to be needless.

use crate::story::{Episode, LossDetection};
use std::collections::VecDeque;

/// Episodes that are kept.
const LIMIT: usize = 64;
/// Retransmissions whose DSACK may still come.
const RECENT: usize = 1_024;

/// A retransmission, until something shows that it was needless.
#[derive(Clone, Copy, Debug)]
struct RecentRetransmission {
    start: u64,
    end: u64,
    at_ns: u64,
    episode: u64,
    needless: bool,
}

/// The open episode.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenEpisode {
    number: u64,
    story: Episode,
    /// Everything before it has to be acknowledged.
    pub(super) recovery_point: u64,
    /// Everything before was sent before the last timeout.
    pub(super) timeout_point: u64,
}

#[derive(Debug, Default)]
pub(super) struct Episodes {
    open: Option<OpenEpisode>,
    begun: u64,
    /// Those that have ended, with their numbers.
    ended: Vec<(u64, Episode)>,
    left_out: u64,
    recent: VecDeque<RecentRetransmission>,
    /// Until when the flight after the last episode is watched.
    watch_until_ns: u64,
}

/// Something that was sent again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retransmission {
    pub(super) at_ns: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) found: LossDetection,
    pub(super) stated: bool,
    /// The original did not pass the capture.
    pub(super) before: bool,
    pub(super) flight: u64,
    /// The timer has fired for it.
    pub(super) timeout: bool,
}

impl Episodes {
    pub(super) const fn open(&self) -> Option<&OpenEpisode> {
        self.open.as_ref()
    }

    /// Something was sent again, before `snd_nxt`; the cumulative ACK advanced last at
    /// `progress_ns`. True if an episode begins.
    pub(super) fn again(&mut self, it: &Retransmission, snd_nxt: u64, progress_ns: u64) -> bool {
        let begins = self.open.is_none();
        let number = self.begun;
        let open = self.open.get_or_insert(OpenEpisode {
            number,
            story: Episode {
                at_ns: it.at_ns,
                time_ns: 0,
                found: it.found,
                stated: it.stated,
                retransmissions: 0,
                bytes: 0,
                spurious: 0,
                before: 0,
                timeouts: 0,
                without_progress_ns: it.at_ns.saturating_sub(progress_ns),
                flight_before: it.flight,
                flight_after: 0,
            },
            recovery_point: snd_nxt,
            timeout_point: 0,
        });
        if begins {
            self.begun += 1;
        }
        if it.start >= open.recovery_point {
            open.recovery_point = snd_nxt;
        }
        let story = &mut open.story;
        story.retransmissions += 1;
        story.bytes += it.end - it.start;
        story.before += u64::from(it.before);
        if it.timeout {
            story.timeouts += 1;
            open.timeout_point = snd_nxt;
        }
        let (at_ns, episode) = (it.at_ns, open.number);
        if self.recent.len() >= RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(RecentRetransmission {
            start: it.start,
            end: it.end,
            at_ns,
            episode,
            needless: false,
        });
        begins
    }

    /// The cumulative ACK advanced to `una`, `after_ns` after it had last.
    pub(super) fn acknowledged(&mut self, at_ns: u64, una: u64, after_ns: u64, rtt_ns: u64) {
        let Some(open) = &mut self.open else { return };
        open.story.without_progress_ns = open.story.without_progress_ns.max(after_ns);
        if una >= open.recovery_point {
            self.close(at_ns);
            self.watch_until_ns = at_ns.saturating_add(rtt_ns);
        }
    }

    fn close(&mut self, at_ns: u64) {
        let Some(open) = self.open.take() else { return };
        let story = Episode { time_ns: at_ns.saturating_sub(open.story.at_ns), ..open.story };
        self.ended.push((open.number, story));
        if self.ended.len() > LIMIT {
            let cost = |(_, episode): &(u64, Episode)| (episode.without_progress_ns, episode.bytes);
            // The newest may still change.
            let least = (0..LIMIT).min_by_key(|place| cost(&self.ended[*place]));
            least.map(|place| self.ended.remove(place));
            self.left_out += 1;
        }
    }

    /// Bytes in flight.
    pub(super) fn flight(&mut self, at_ns: u64, flight: u64) {
        if self.open.is_none()
            && at_ns < self.watch_until_ns
            && let Some((_, last)) = self.ended.last_mut()
        {
            last.flight_after = last.flight_after.max(flight);
        }
    }

    /// What lies from `start` to `end` was sent again needlessly: how many retransmissions that
    /// makes known, or `None` if none there is remembered.
    pub(super) fn needless(&mut self, start: u64, end: u64) -> Option<u64> {
        let mut found = None;
        for again in self.recent.iter_mut().rev().filter(|again| again.start < end && start < again.end) {
            let news = found.get_or_insert(0);
            if again.needless || *news > 0 {
                continue;
            }
            again.needless = true;
            *news += 1;
            count_needless(&mut self.open, &mut self.ended, again.episode);
        }
        found
    }

    /// What was sent again at `since_ns` and later was needless: how many retransmissions that
    /// makes known.
    pub(super) fn needless_since(&mut self, since_ns: u64) -> u64 {
        let recent = self.recent.iter_mut().rev().take_while(|again| again.at_ns >= since_ns);
        let mut news = 0;
        for again in recent.filter(|again| !again.needless) {
            again.needless = true;
            news += 1;
            count_needless(&mut self.open, &mut self.ended, again.episode);
        }
        news
    }

    /// When something between `start` and `end` was sent again last.
    pub(super) fn last_again(&self, start: u64, end: u64) -> Option<u64> {
        self.recent.iter().rev().find(|again| again.start < end && start < again.end).map(|again| again.at_ns)
    }

    /// All that are kept, in the order of time, from `start_ns` on; and how many are not.
    pub(super) fn finish(mut self, start_ns: u64, last_ns: u64) -> (Vec<Episode>, u64) {
        self.close(last_ns);
        let shown = |(_, episode): (u64, Episode)| Episode {
            at_ns: episode.at_ns.saturating_sub(start_ns),
            ..episode
        };
        (self.ended.into_iter().map(shown).collect(), self.left_out)
    }
}

/// One more retransmission of the episode `number` was needless.
fn count_needless(open: &mut Option<OpenEpisode>, ended: &mut [(u64, Episode)], number: u64) {
    match open {
        Some(open) if open.number == number => open.story.spurious += 1,
        _ => {
            if let Some((_, episode)) = ended.iter_mut().rev().find(|(n, _)| *n == number) {
                episode.spurious += 1;
            }
        }
    }
}
