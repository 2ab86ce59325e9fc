//! One measurement: two ends, a path between them, and packets from both sides.

use crate::Outcome;
use crate::case::{Case, DELAY, Load, PACKET, RATE};
use crate::end::{End, SharedStats, TimedTun, check_rights};
use crate::results::{Metric, Sample};
use crate::usage::cpu_of_thread;
use ackline_emulate::{Emulator, LinkSpec, Path};
use ackline_netsim::queue::{DropTail, Limit};
use ackline_netsim::serialisation;
use ackline_tcp_core::Duration;
use std::net::Ipv4Addr;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

const ENDS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 79, 1, 1), Ipv4Addr::new(10, 79, 2, 1)];
/// Before anything counts.
const WARM_UP: Duration = Duration::from_millis(500);

pub(crate) fn run(case: Case, length: Duration) -> Outcome<Sample> {
    check_rights()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _entered = runtime.enter();
    let ((near, tun), (far, other)) = (End::make(ENDS[0])?, End::make(ENDS[1])?);
    let takes = DELAY.saturating_add(serialisation(RATE, PACKET));
    let watched = [tun, other].map(|tun| TimedTun::new(tun, takes));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let gap = case.load.gap();
        let senders = [(&near, &far), (&far, &near)].map(|(from, to)| {
            let stop = &stop;
            scope.spawn(move || from.send(to, gap, stop))
        });
        let measured = runtime.block_on(emulate(case, length, [&near, &far], watched));
        stop.store(true, Ordering::Relaxed);
        let ended =
            senders.map(|sender| sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        // The devices are there until nobody sends any more, unless the emulator has failed.
        let (sample, _emulator) = measured?;
        ended.into_iter().collect::<std::io::Result<()>>()?;
        Ok(sample)
    })
}

async fn emulate(
    case: Case,
    length: Duration,
    ends: [&End; 2],
    [(near, to_near), (far, to_far)]: [(TimedTun, SharedStats); 2],
) -> Outcome<(Sample, Emulator)> {
    let link = || LinkSpec::new(RATE, DELAY).with_queue(Box::new(DropTail::new(Limit::Packets(1_000))));
    let mut path = Path::new([ENDS[0].into()], link(), link(), 1);
    let mut emulator = Emulator::new(case.wait.pacing())?;
    emulator.attach(&path.sim, path.inside, Box::new(near))?;
    emulator.attach(&path.sim, path.outside, Box::new(far))?;
    run_for(&mut emulator, &mut path, WARM_UP).await?;
    let take =
        |handed: &SharedStats| std::mem::take(&mut *handed.lock().unwrap_or_else(PoisonError::into_inner));
    for handed in [&to_near, &to_far] {
        take(handed);
    }
    let cpu = cpu_of_thread();
    run_for(&mut emulator, &mut path, length).await?;
    let cpu = (cpu_of_thread() - cpu) / length.as_secs_f64();
    let handed = [take(&to_near), take(&to_far)];

    let mut lost = ends[0].dropped()? + ends[1].dropped()?;
    lost += emulator.ports().map(|port| port.refused).sum::<u64>();
    let worst = |values: [f64; 2]| values[0].max(values[1]);
    let lateness: Vec<_> = emulator.ports().map(|port| port.lateness.clone()).collect();
    let late = |share: f64| worst([0, 1].map(|way| micros(lateness[way].quantile(share))));
    let mut sample = Sample::default();
    sample.set(Metric::Lost, lost as f64);
    sample.set(Metric::Cpu, cpu);
    sample.set(Metric::LateP50, late(0.5));
    sample.set(Metric::LateP99, late(0.99));
    sample.set(Metric::LateMost, late(1.0));
    match case.load {
        Load::Full => {
            for link in [path.up, path.down] {
                if path.sim.view().stats(link).overflows == 0 {
                    return Err("the senders did not fill the path".into());
                }
            }
            let rates = handed.map(|handed| {
                let bits = (handed.packets.saturating_sub(1) * PACKET * 8) as f64;
                bits / handed.last.since(handed.first).as_secs_f64() / RATE as f64
            });
            let [one, other] = rates.map(|rate| (rate - 1.0).abs());
            sample.set(Metric::Rate, rates[usize::from(other > one)]);
        }
        Load::Sparse => {
            let more = |share| worst([0, 1].map(|way| micros(handed[way].delay.quantile(share))));
            sample.set(Metric::DelayP50, more(0.5));
            sample.set(Metric::DelayP99, more(0.99));
        }
    }
    Ok((sample, emulator))
}

async fn run_for(emulator: &mut Emulator, path: &mut Path, time: Duration) -> Outcome<()> {
    let end = path.sim.now() + time;
    Ok(emulator.run_until(&mut path.sim, end).await?)
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}
