//! What holds beyond the paper.

use super::bursts::{self, Histogram, SENDERS};
use super::conditions::{
    ACKS, ACWAP, BOTH, BUFFERS, Condition, Control, HSTCP, INNER, LINES, NOISES, QUEUES, STARTS, TEN, betas,
};
use super::outcome::Runs;
use crate::error::ReproduceError;
use crate::{Check, Finding, Outputs, Request};
use ackline_lab::stats::mean;

/// Losses of ACWAP by those of what it wraps: the bound, for each condition of a table. What has
/// none is a sentence of the page.
const LOSSES: [(&Condition, f64); 5] =
    [(&QUEUES[0], 0.3), (&QUEUES[1], 0.8), (&ACKS[1], 0.3), (&ACKS[2], 0.3), (&QUEUES[2], 1.5)];

pub(super) fn checks(request: &Request, outputs: &Outputs) -> Result<Vec<Check>, ReproduceError> {
    let runs = |condition: &Condition, control: &Control| Runs::read(request, outputs, condition, control);
    let ratio = |condition: &Condition, [without, with]: [&Control; 2]| -> Result<f64, ReproduceError> {
        Ok(mean(&runs(condition, with)?.drops()) / mean(&runs(condition, without)?.drops()))
    };
    let mut found = vec![];
    for (condition, bound) in LOSSES {
        found.push(Check::at_most(
            format!("further/{}/losses", condition.id),
            format!("losses of ACWAP by HSTCP's: {}", condition.name),
            ratio(condition, [&HSTCP, &ACWAP])?,
            bound,
        ));
    }
    for (tenths, control) in betas(request) {
        for condition in &NOISES {
            found.push(Check::at_most(
                format!("further/{}/0.{tenths}", condition.id),
                format!("losses of {} by HSTCP's: noise of {}", control.cc, condition.name),
                ratio(condition, [&HSTCP, &control])?,
                0.5,
            ));
        }
    }
    for (size, condition) in &BUFFERS {
        found.push(Check::at_most(
            format!("further/buffer-{size}/losses"),
            format!("losses of ACWAP by HSTCP's: a buffer of {size} bandwidth-delay products"),
            ratio(condition, [&HSTCP, &ACWAP])?,
            0.5,
        ));
    }
    for [alone, wrapped] in INNER.iter().filter(|[alone, _]| alone.id != "reno") {
        found.push(Check::at_most(
            format!("further/inner/{}", alone.id),
            format!("losses of {} by those of {}", wrapped.cc, alone.cc),
            ratio(&QUEUES[0], [alone, wrapped])?,
            0.5,
        ));
    }
    let mut timeouts = 0.0;
    let conditions = QUEUES.iter().chain(&ACKS).chain(BUFFERS.iter().map(|(_, condition)| condition));
    for condition in conditions.chain([&TEN]) {
        for control in &BOTH {
            timeouts += runs(condition, control)?.timeouts().iter().sum::<f64>();
        }
    }
    found.push(Check::exactly(
        "further/timeouts",
        "timeouts of HSTCP and ACWAP before all queues, buffers and ACK policies, and of ten flows",
        timeouts,
        0.0,
    ));
    found.extend(start(&ratio)?);
    found.extend(bursts(outputs)?);
    Ok(found)
}

type Ratio<'a> = &'a dyn Fn(&Condition, [&Control; 2]) -> Result<f64, ReproduceError>;

/// HyStart++ saves losses where it notices the queue in time, and loses packets alone.
fn start(ratio: Ratio<'_>) -> Result<Vec<Check>, ReproduceError> {
    let [long, slow] = &LINES;
    let mut found = vec![];
    for [limited, both, alone] in &STARTS {
        found.push(Check::at_most(
            format!("further/start/{}", both.id),
            format!("losses of {} by those of {}: {}", both.cc, limited.cc, slow.name),
            ratio(slow, [limited, both])?,
            1.0,
        ));
        found.push(Check::at_least(
            format!("further/start/{}", alone.id),
            format!("losses of {} by those of {}: {}", alone.cc, limited.cc, long.name),
            ratio(long, [limited, alone])?,
            1.5,
        ));
    }
    Ok(found)
}

/// With exact timers every packet leaves alone; with coarse ones in bursts of what the pace gives
/// in a tick.
fn bursts(outputs: &Outputs) -> Result<Vec<Check>, ReproduceError> {
    let mut found = vec![];
    for sender in &SENDERS {
        let seen: Histogram = outputs.get(&bursts::id(sender))?;
        let id = format!("further/{}", bursts::id(sender).trim_start_matches("further-"));
        found.push(match sender.id {
            "hstcp" | "unpaced" => Check::at_least(
                id,
                format!("percent of packets that leave together with another: {}", sender.name),
                100.0 * seen.share_from(2),
                90.0,
            ),
            "paced-1ms" => Check::at_most(
                id,
                format!("packets of the largest burst: {}", sender.name),
                seen.bursts.len() as f64,
                9.0,
            ),
            _ => Check::at_most(
                id,
                format!("percent of packets that leave together with another: {}", sender.name),
                100.0 * seen.share_from(2),
                1.0,
            ),
        });
    }
    Ok(found)
}

pub(super) fn finding(request: &Request, outputs: &Outputs) -> Result<Finding, ReproduceError> {
    let drops = |condition: &Condition, control: &Control| -> Result<f64, ReproduceError> {
        Ok(mean(&Runs::read(request, outputs, condition, control)?.drops()))
    };
    let pair = |condition: &Condition| -> Result<String, ReproduceError> {
        Ok(format!("{:.0} and {:.0}", drops(condition, &HSTCP)?, drops(condition, &ACWAP)?))
    };
    Ok(Finding::new(
        "Today's hosts and queues (not in the paper): losses in 50 s",
        "-",
        format!(
            "HSTCP and ACWAP lose {} before a drop-tail queue, {} before CoDel, {} as ten flows",
            pair(&QUEUES[0])?,
            pair(&QUEUES[2])?,
            pair(&TEN)?,
        ),
        "further/",
    ))
}
