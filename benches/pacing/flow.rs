//! One flow over TUN: ackline's to the kernel, or the kernel's to ackline.

use crate::Outcome;
use crate::case::{Case, Who};
use crate::log::{Log, LoggingDevice, Way};
use crate::results::{Metric, Sample};
use crate::sample::{set_flow, set_lateness};
use crate::usage::cpu_of_thread;
use ackline_runtime::device::tun::{Tun, TunConfig};
use ackline_runtime::netlink::InterfaceAddress;
use ackline_runtime::timer::now;
use ackline_runtime::{Pacing, Stack, kernel};
use ackline_tcp_core::policy::CongestionControl;
use ackline_tcp_core::policy::cc::{
    AckSample, CcInit, CongestionEvent, FlowView, Pacing as Pace, Reaction, Restart, Revise, SendDecision,
    Undo,
};
use ackline_tcp_core::{ConnConfig, Duration, ListenOn, Rate, Window};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
const STACK: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 2);
const PORT: u16 = 7001;
/// Bytes that an application makes or takes at once.
const CHUNK: usize = 16 << 10;
/// Before the first look: connecting, and what a spinning driver learns.
const WARM_UP: Duration = Duration::from_millis(200);

/// In a namespace of the calling thread's.
pub(crate) fn device() -> Outcome<Tun> {
    let network = ipnet::Ipv4Net::new_assert(KERNEL, 24).into();
    Ok(Tun::create(&TunConfig::new().address(InterfaceAddress::network(network)))?)
}

/// ackline sends at the asked rate, the kernel reads.
pub(crate) fn send(case: &Case, length: Duration) -> Outcome<Sample> {
    let log = Log::new();
    let device = LoggingDevice::new(device()?, Way::Sent, log.clone());
    let listener = TcpListener::bind((KERNEL, PORT))?;
    std::thread::spawn(move || -> io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        let mut buffer = vec![0; CHUNK];
        while stream.read(&mut buffer)? > 0 {}
        Ok(())
    });
    let mut config = ConnConfig::default();
    let rate = case.rate();
    config.policies.cc = Arc::new(move |_: &CcInit| Box::new(Fixed { rate }));
    let pacing = if case.who == Who::Spin { Pacing::spin() } else { Pacing::Timer };
    runtime()?.block_on(async {
        let stack = Stack::builder(device).address(STACK).connections(config).pacing(pacing).spawn()?;
        let mut stream = stack.connect((KERNEL, PORT)).await?;
        let data = vec![7; CHUNK];
        let write = async {
            loop {
                stream.write_all(&data).await?;
            }
        };
        let look = async {
            tokio::time::sleep(WARM_UP.into()).await;
            let (start, cpu) = (now(), cpu_of_thread());
            tokio::time::sleep(length.into()).await;
            (start, now(), cpu_of_thread() - cpu)
        };
        let (start, end, cpu) = tokio::select! {
            failed = write => return failed,
            looked = look => looked,
        };
        let mut sample = Sample::default();
        sample.set(Metric::Cpu, cpu / end.since(start).as_secs_f64());
        set_lateness(&mut sample, &stack.stats().departure_lateness);
        set_flow(&mut sample, case, &log.between(start, end));
        Ok(sample)
    })
}

/// The kernel sends at the asked rate; ackline, which never sleeps, notes when packets come.
pub(crate) fn receive(case: &Case, length: Duration) -> Outcome<Sample> {
    let log = Log::new();
    let device = LoggingDevice::new(device()?, Way::Received, log.clone());
    let rate = case.rate();
    let awake = std::time::Duration::from_secs(3600);
    runtime()?.block_on(async {
        let stack = Stack::builder(device).address(STACK).busy_poll(awake).spawn()?;
        let listener = stack.listen(ListenOn::Port(PORT))?;
        // It ends with the process.
        std::thread::spawn(move || -> io::Result<()> {
            let mut stream = TcpStream::connect((STACK, PORT))?;
            kernel::set_max_pacing_rate(&stream, rate)?;
            let data = vec![7; CHUNK];
            loop {
                stream.write_all(&data)?;
            }
        });
        let (mut stream, _) = listener.accept().await?;
        let (start, end) = (now() + WARM_UP, now() + WARM_UP + length);
        let mut buffer = vec![0; CHUNK];
        while now() < end && stream.read(&mut buffer).await? > 0 {}
        let mut sample = Sample::default();
        set_flow(&mut sample, case, &log.between(start, end));
        Ok(sample)
    })
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// A congestion control with one rate, and a window that never limits it.
#[derive(Clone, Copy, Debug)]
struct Fixed {
    rate: Rate,
}

impl CongestionControl for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn decision(&self) -> SendDecision {
        let window = Window::from_bytes(16 << 20);
        let mut decision = SendDecision::window(window, window).paced(Pace::AtRate(self.rate));
        decision.revise = Revise::Banked;
        decision
    }

    fn on_ack(&mut self, _: &FlowView, _: &AckSample) -> Reaction {
        Reaction::None
    }

    fn on_congestion(&mut self, _: &FlowView, _: &CongestionEvent) {}

    fn on_restart(&mut self, _: &FlowView, _: &Restart) {}

    fn checkpoint(&mut self, _: &FlowView) {}

    fn undo(&mut self, _: &FlowView, _: &Undo) {}
}
