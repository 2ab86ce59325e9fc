//! What counts as repeated.
//!
//! The model is exact and the thesis' hosts are not, so that bounds differ by regime: a closed form
//! if AIMD is saturated; the thesis' means within an eighth if LS-AIMD has more than a segment per
//! round trip; factors and orders if it has less.

use super::experiment::{AQMS, Aqm, Case, EXPERIMENTS, Experiment, Sender};
use super::measurement::Measurement;
use super::readings::{DESIGN, OFF, PRINTED_D, PROTOTYPE, RTT};
use super::thesis::{corrected_mean, thesis};
use crate::Check;

/// What was measured of each case.
pub(super) trait Results {
    /// The mean over runs.
    fn get(&self, case: &Case) -> Option<&Measurement>;

    /// Each run.
    fn runs(&self, case: &Case) -> &[Measurement];

    /// One number of each run.
    fn values(&self, case: &Case, get: impl Fn(&Measurement) -> f64) -> Vec<f64> {
        self.runs(case).iter().map(get).collect()
    }
}

/// The bounds of a mean in the thesis' tables, us: what the tables show with `!`, and the checks of
/// [`of_case`] demand.
pub(super) fn mean_bounds(case: &Case, whole: bool) -> Option<(f64, f64)> {
    let paper = corrected_mean(case)?;
    let share = |share: f64| Some((paper * (1.0 - share), paper * (1.0 + share)));
    if saturated(case) {
        let floor = case.of.floor_queue_us(f64::from(case.of.residue_us()));
        let slack = 0.02 * floor + 17.0;
        return Some((floor - slack, floor + slack));
    }
    match (case.sender, case.aqm) {
        (Sender::Auto, _) => None,
        (Sender::Full, _) if case.of.jumbo() => share(0.4),
        (Sender::Full, Aqm::Ramp) if case.of.flows <= 2 => {
            let target = f64::from(case.of.target_us());
            Some((target, 2.2 * target))
        }
        // The average needs 15 s to settle.
        (_, Aqm::Ramp) if !whole => None,
        (Sender::Aimd, _) => share(0.25),
        (Sender::Full, _) => {
            let slack = (0.12 * paper).max(case.of.frame_us());
            Some((paper - slack, paper + slack))
        }
        (Sender::Slow, _) if case.of.jumbo() => Some((paper / 2.0, paper * 2.0)),
        (Sender::Slow, _) => share(0.2),
    }
}

/// AIMD's flows stand at two segments, and every packet is marked.
pub(super) fn saturated(case: &Case) -> bool {
    case.sender == Sender::Aimd
        && (case.of.jumbo() || (case.aqm == Aqm::Step && matches!(case.of.name, "3A" | "4A")))
}

/// The checks of one run by itself.
pub(super) fn of_case(case: &Case, measured: &Measurement, whole: bool) -> Vec<Check> {
    let mut checks = vec![];
    let id = |what: &str| format!("{case}/{what}");
    let what = |what: &str| format!("{}, experiment {}: {what}", case.sender.name(case.aqm), case.of.name);
    if let Some(bounds) = mean_bounds(case, whole) {
        // The closed form knows no grid.
        let mean = if saturated(case) { measured.exact.mean } else { measured.grid.mean };
        let mut check = Check::within(id("mean"), what("mean queueing delay, us"), mean, bounds);
        if let Some(paper) = thesis(case, "mean") {
            check = check.paper(paper);
        }
        checks.push(check);
    }
    if saturated(case) {
        checks.push(Check::at_most(id("sd"), what("its standard deviation, us"), measured.exact.sd, 5.0));
        checks.push(Check::at_least(id("marked"), what("share of packets marked"), measured.marked, 0.999));
    }
    if case.sender == Sender::Aimd && !saturated(case) && (case.aqm != Aqm::Ramp || whole) {
        checks.extend(spread(case, measured, 1.5, &id, &what));
    }
    let full = case.sender == Sender::Full;
    if full && !case.of.jumbo() {
        checks.push(Check::at_least(id("utilisation"), what("utilisation"), measured.utilisation, 0.999));
        if case.aqm != Aqm::Ramp || whole {
            deviation(case, measured, &mut checks, &id, &what);
        }
    }
    if full && case.of.jumbo() {
        let marked =
            |least| Check::at_least(id("marked"), what("share of packets marked"), measured.marked, least);
        checks.push(if measured.marked < 0.75 {
            marked(0.5).widened(
                "The thesis prints no number. An independent model without swings is saturated for good, at 0.75 or more; a queue \
                 that swings down to nothing, as the thesis', is not.",
            )
        } else {
            marked(0.75)
        });
        checks.extend(spread(case, measured, 3.0, &id, &what));
    }
    if case.sender != Sender::Aimd {
        checks.push(Check::exactly(
            id("retransmits"),
            what("segments retransmitted"),
            measured.retransmits,
            0.0,
        ));
    }
    checks
}

/// The delay's deviation, within `factor` of the thesis'.
fn spread(
    case: &Case,
    measured: &Measurement,
    factor: f64,
    id: &impl Fn(&str) -> String,
    what: &impl Fn(&str) -> String,
) -> Option<Check> {
    let sd = thesis(case, "sd")?;
    let bounds = (sd / factor, sd * factor);
    Some(Check::within(id("sd"), what("its standard deviation, us"), measured.grid.sd, bounds).paper(sd))
}

/// Spread and percentiles if LS-AIMD has more than a segment per round trip.
fn deviation(
    case: &Case,
    measured: &Measurement,
    checks: &mut Vec<Check>,
    id: &impl Fn(&str) -> String,
    what: &impl Fn(&str) -> String,
) {
    checks.extend(spread(case, measured, 1.5, id, what));
    for statistic in ["p95", "p99"] {
        if let Some(paper) = thesis(case, statistic) {
            let slack = (0.15 * paper).max(33.0);
            let measured = measured.grid.get(statistic);
            let bounds = (paper - slack, paper + slack);
            let text = what(&format!("{statistic} of the queueing delay, us"));
            checks.push(Check::within(id(statistic), text, measured, bounds).paper(paper));
        }
    }
}

struct AqmResults<'a, R: Results> {
    results: &'a R,
    aqm: Aqm,
}

impl<R: Results> AqmResults<'_, R> {
    fn read(&self, of: &Experiment, sender: Sender, get: impl Fn(&Measurement) -> f64) -> f64 {
        let case = Case { of: *of, aqm: self.aqm, sender, reading: PROTOTYPE };
        self.results.get(&case).map_or(f64::NAN, get)
    }

    /// Values over base RTTs 250 to 1,000 us.
    fn over_base(&self, jumbo: bool, sender: Sender, get: impl Fn(&Measurement) -> f64) -> Vec<f64> {
        let runs = EXPERIMENTS.iter().filter(|of| of.varies() && of.jumbo() == jumbo);
        runs.map(|of| self.read(of, sender, &get)).collect()
    }
}

/// The smallest step down of a series that is to fall: negative if it rises somewhere.
fn least_fall(values: &[f64]) -> f64 {
    values.windows(2).map(|pair| pair[0] - pair[1]).fold(f64::INFINITY, f64::min)
}

/// The claims about shapes of one AQM, S1 to S4, S6 and S8: orders between runs.
pub(super) fn claims_of_aqm(results: &impl Results, aqm: Aqm, whole: bool) -> Vec<Check> {
    let mut checks = vec![];
    let of = AqmResults { results, aqm };
    let id = |claim: &str| format!("{}/shape/{claim}", aqm.table());
    let settled = whole || aqm != Aqm::Ramp;
    let srtt = of.over_base(true, Sender::Aimd, |run| run.srtt_us);
    let (low, high) =
        (srtt.iter().copied().fold(f64::NAN, f64::min), srtt.iter().copied().fold(f64::NAN, f64::max));
    checks.push(Check::at_most(
        id("S1"),
        "AIMD, jumbo frames: largest over smallest SRTT over base RTTs of 250 to 1,000 us (flat)",
        high / low,
        1.02,
    ));
    if settled && aqm != Aqm::Ramp {
        let mut falling = of.over_base(false, Sender::Full, |run| run.grid.sd);
        falling.reverse();
        checks.push(Check::at_least(
            id("S2"),
            "LS-AIMD C=1: least fall of the delay's deviation from a base RTT of 1,000 us to 250 us, us",
            least_fall(&falling),
            if aqm == Aqm::Step { 0.0 } else { -20.0 },
        ));
    }
    checks.push(Check::at_least(
        id("S3"),
        "LS-AIMD C=1, jumbo frames: least fall of the mean delay from a base RTT of 250 us to 1,000 us, us",
        least_fall(&of.over_base(true, Sender::Full, |run| run.grid.mean)),
        0.0,
    ));
    if settled {
        let slow = of.over_base(true, Sender::Slow, |run| run.utilisation);
        checks.push(Check::at_most(
            id("S4/utilisation"),
            "LS-AIMD C=2^-7, jumbo frames: utilisation at a base RTT of 1,000 us (capacity is lost)",
            slow.last().copied().unwrap_or(f64::NAN),
            0.999,
        ));
        checks.push(Check::at_least(
            id("S4/increasingly"),
            "LS-AIMD C=2^-7, jumbo frames: least fall of utilisation from a base RTT of 250 us to 1,000 us",
            least_fall(&slow),
            0.0,
        ));
        // RED's average begins to mark at the target; the other two do not reach it.
        let (target, above) = (250.0, if aqm == Aqm::Ramp { 1.2 } else { 1.0 });
        let mean =
            of.over_base(false, Sender::Slow, |run| run.grid.mean).into_iter().fold(f64::NAN, f64::max);
        checks.push(
            Check::at_most(
                id("S4/mean"),
                "LS-AIMD C=2^-7, 1,500 B: largest mean delay over base RTTs, us (the queue stays below the AQM's begin)",
                mean,
                target * above,
            ),
        );
    }
    let named = |name: &str| EXPERIMENTS.into_iter().find(|of| of.name == name);
    if let (Some(a), Some(b)) = (named("3A"), named("3B"))
        && settled
    {
        let ratio =
            of.read(&b, Sender::Full, |run| run.grid.mean) / of.read(&a, Sender::Full, |run| run.grid.mean);
        checks.push(Check::within(
            id("S6"),
            "LS-AIMD C=1: mean delay with stretch ACKs over that without (slightly lower)",
            ratio,
            (0.85, 1.02),
        ));
    }
    if let (Some(a), Some(b)) = (named("3A"), named("3B")) {
        let wait = |run: &Measurement| run.srtt_us - run.srtt_pace_us;
        let (without, with) = (of.read(&a, Sender::Full, wait), of.read(&b, Sender::Full, wait));
        let check = Check::at_least(
            id("S8"),
            "LS-AIMD C=1: what stretch ACKs add to SRTT and not to the clock's smoothed RTT, us",
            with - without,
            50.0,
        );
        checks.push(check);
    }
    checks
}

/// S5 and S7: if LS-AIMD has more than a segment per round trip.
pub(super) fn marking_order(results: &impl Results) -> Vec<Check> {
    let mut checks = vec![];
    let read = |of: &Experiment, aqm, get: fn(&Measurement) -> f64| {
        let case = Case { of: *of, aqm, sender: Sender::Full, reading: PROTOTYPE };
        results.get(&case).map_or(f64::NAN, get)
    };
    for of in EXPERIMENTS.iter().filter(|of| !of.jumbo()) {
        let marked = |aqm| read(of, aqm, |run| run.marked);
        let order = [Aqm::Ramp, Aqm::Instantaneous, Aqm::Step].map(marked);
        checks.push(Check::at_most(
            format!("shape/S5/{}", of.name),
            format!(
                "experiment {}: least step of marking from ramp over instantaneous to step, negated",
                of.name
            ),
            -least_rise(&order),
            0.0,
        ));
    }
    for of in EXPERIMENTS.iter().filter(|of| matches!(of.name, "3A" | "4A" | "4D")) {
        let mean = |aqm| read(of, aqm, |run| run.grid.mean);
        let others = mean(Aqm::Ramp).min(mean(Aqm::Instantaneous));
        checks.push(Check::at_most(
            format!("shape/S7/{}", of.name),
            format!("experiment {}: mean delay of the step over the smaller of the others", of.name),
            mean(Aqm::Step) / others,
            1.0,
        ));
    }
    checks
}

fn least_rise(values: &[f64]) -> f64 {
    values.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min)
}

/// C = auto beside the other two: it holds the queue below C = 1's with jumbo frames, and uses more
/// of the link than C = 2^-7.
pub(super) fn of_scale(results: &impl Results) -> Vec<Check> {
    let mut checks = vec![];
    for aqm in [Aqm::Step, Aqm::Instantaneous] {
        for of in EXPERIMENTS.into_iter().filter(Experiment::varies) {
            let read = |sender, get: fn(&Measurement) -> f64| {
                let case = Case { of, aqm, sender, reading: DESIGN };
                results.get(&case).map_or(f64::NAN, get)
            };
            let id = |what: &str| format!("auto/{}/{}/{what}", aqm.table(), of.name);
            let what = |what: &str| format!("C=auto, {}, experiment {}: {what}", aqm.name(), of.name);
            let mean = |sender| read(sender, |run| run.exact.mean);
            let share = mean(Sender::Auto) / mean(Sender::Full);
            let most = if of.jumbo() { 0.75 } else { 1.05 };
            checks.push(Check::at_most(id("mean"), what("mean delay over that of C=1"), share, most));
            let used = |sender| read(sender, |run| run.utilisation);
            let more = used(Sender::Auto) - used(Sender::Slow);
            checks.push(Check::at_least(
                id("utilisation"),
                what("utilisation less that of C=2^-7"),
                more,
                if of.jumbo() { 0.0 } else { -0.001 },
            ));
        }
    }
    checks
}

/// What tells the readings apart: deviations with jumbo frames and C = 1, which the thesis has and
/// ackline's default has not, and queues at C = 2^-7, which the thesis has and two of the readings
/// have not.
pub(super) fn of_readings(results: &impl Results, whole: bool) -> Vec<Check> {
    let mut checks = vec![];
    let over_thesis = |aqm, name: &str, sender, reading, statistic: &str| {
        let of = EXPERIMENTS.into_iter().find(|of| of.name == name)?;
        let case = Case { of, aqm, sender, reading };
        Some(results.get(&case)?.grid.get(statistic) / thesis(&case, statistic)?)
    };
    for aqm in AQMS {
        let name = aqm.name();
        let sd = |reading, names: &[&str]| -> Vec<f64> {
            let ratio = |name: &&str| over_thesis(aqm, name, Sender::Full, reading, "sd").unwrap_or(f64::NAN);
            names.iter().map(ratio).collect()
        };
        let jumbo = ["4E", "4F", "4G", "4H"];
        if aqm != Aqm::Ramp {
            let largest = sd(DESIGN, &jumbo).into_iter().fold(f64::NEG_INFINITY, f64::max);
            let what =
                format!("{name}, jumbo frames, C=1: ackline's default, largest deviation over the thesis'");
            checks.push(Check::at_most(format!("readings/{name}/design"), what, largest, 1.0 / 3.0));
        }
        let least = sd(RTT, &jumbo).into_iter().fold(f64::INFINITY, f64::min);
        let what = format!(
            "{name}, jumbo frames, C=1: only a new RTT moves a departure, least deviation over the thesis'"
        );
        checks.push(Check::at_least(format!("readings/{name}/rtt"), what, least, 1.0 / 3.0));
    }
    let mean = |aqm, reading| over_thesis(aqm, "4E", Sender::Slow, reading, "mean").unwrap_or(f64::NAN);
    // The average of RED's ramp settles in the whole run alone.
    if whole {
        checks.push(Check::at_most(
        "readings/ramp/off",
        "ramp, 4E, C=2^-7: nothing moves a departure, mean delay over the thesis' (too short: not what the prototype does)",
        mean(Aqm::Ramp, OFF),
        0.8,
    ));
        checks.push(Check::within(
            "readings/ramp/prototype",
            "ramp, 4E, C=2^-7: the reading of the tables, mean delay over the thesis'",
            mean(Aqm::Ramp, PROTOTYPE),
            (0.9, 1.1),
        ));
    }
    checks.push(Check::at_least(
        "readings/step/printed-d",
        "step, 4E, C=2^-7: d as printed, mean delay over the thesis' (too long: not what the prototype does)",
        mean(Aqm::Step, PRINTED_D),
        2.0,
    ));
    checks
}
