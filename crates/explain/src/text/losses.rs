//! What was lost, and what was sent again.

use super::units::{count, grouped, percent, size, time};
use super::{LISTED, Page, at};
use crate::story::{Direction, Episode, LossDetection};

pub(super) fn losses(page: &mut Page, direction: &Direction) {
    let losses = &direction.losses;
    let mut parts = vec![];
    if losses.retransmissions > 0 {
        let share = losses.bytes as f64 / (direction.bytes + losses.bytes).max(1) as f64;
        let kinds = [
            (losses.fast, "by SACK or duplicate ACKs"),
            (losses.timeout, "after a timeout"),
            (losses.probes, "as tail loss probe"),
            (losses.unclear, "for no visible reason"),
        ];
        let kinds: Vec<String> = kinds
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{} {what}", grouped(*count)))
            .collect();
        let joined = if losses.segments > losses.retransmissions {
            format!("{}, ", count(losses.segments, "segment"))
        } else {
            String::new()
        };
        parts.push(format!(
            "{} sent again ({joined}{}, {}): {}",
            count(losses.retransmissions, "packet"),
            size(losses.bytes),
            percent(share),
            kinds.join(", ")
        ));
        if losses.timeouts > 0 {
            parts.push(count(losses.timeouts, "timeout"));
        }
        parts.push(needless(direction));
        if losses.before > 0 {
            let (before, behind) = (losses.before, losses.retransmissions - losses.before);
            parts.push(format!(
                "{} originals were lost before the capture, {} passed it",
                grouped(before),
                grouped(behind)
            ));
        }
    }
    if losses.dropped > 0 {
        parts.push(format!("the capture shows {} dropped", count(losses.dropped, "packet")));
    }
    let late = losses.reordered_before + losses.reordered_after;
    if late > 0 {
        parts.push(format!("{} arrived out of order and not sent again", count(late, "packet")));
    }
    if losses.duplicated > 0 {
        parts.push(format!(
            "{} reported twice by DSACK that passed once: doubled by the network",
            count(losses.duplicated, "packet")
        ));
    }
    page.entry("Losses", &if parts.is_empty() { "none".to_owned() } else { parts.join("; ") });
    let mut listed: Vec<&Episode> = direction.episodes.iter().collect();
    listed.sort_by_key(|episode| std::cmp::Reverse((episode.without_progress_ns, episode.bytes)));
    listed.truncate(LISTED);
    listed.sort_by_key(|episode| episode.at_ns);
    for episode in &listed {
        page.entry(&format!("  {}", at(episode.at_ns)), &self::episode(episode));
    }
    let rest = direction.episodes.len() - listed.len() + direction.episodes_left_out as usize;
    if rest > 0 {
        page.entry("", &format!("and {} that cost less", count(rest as u64, "episode")));
    }
}

fn needless(direction: &Direction) -> String {
    let losses = &direction.losses;
    if losses.spurious == 0 {
        return "none known to be needless".to_owned();
    }
    let by = [
        (losses.spurious_by_dsack, "by DSACK"),
        (losses.spurious_by_timestamp, "by timestamp"),
        (losses.spurious_by_time, "by the time of the ACK"),
        (losses.spurious_by_stack, "as the stack states"),
    ];
    let by: Vec<String> = by
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, how)| format!("{} {how}", grouped(*count)))
        .collect();
    format!("{} needless ({})", grouped(losses.spurious), by.join(", "))
}

fn episode(episode: &Episode) -> String {
    let found = match episode.found {
        LossDetection::Fast => "found by SACK or duplicate ACKs",
        LossDetection::Probe => "probe of the tail",
        LossDetection::Timeout => "found by timeout",
        LossDetection::Unclear => "sent again for no visible reason",
    };
    let mut parts = vec![format!(
        "{found}{}: {} ({}) again",
        if episode.stated { " (stated)" } else { "" },
        count(episode.retransmissions, "packet"),
        size(episode.bytes)
    )];
    if episode.spurious > 0 {
        let all = episode.spurious >= episode.retransmissions;
        parts.push(if all {
            "all needless (spurious)".to_owned()
        } else {
            format!("{} needless", grouped(episode.spurious))
        });
    }
    if episode.timeouts > u64::from(episode.found == LossDetection::Timeout) {
        parts.push(count(episode.timeouts, "timeout"));
    }
    parts.push(format!("repaired after {}", time(episode.time_ns)));
    parts.push(format!("{} without progress", time(episode.without_progress_ns)));
    if episode.flight_after > 0 {
        parts.push(format!("flight {} > {}", size(episode.flight_before), size(episode.flight_after)));
    }
    parts.join(", ")
}
