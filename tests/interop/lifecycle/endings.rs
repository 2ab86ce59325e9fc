//! How connections end: what the applications at both ends are told, for every state, event and
//! fate of data that can come together, beside what the kernel tells in the same place.
//!
//! Each cell is done twice: with ackline as the *subject* and the kernel as its peer over a TUN
//! device, and with a kernel's socket as the subject and another one as its peer over the loopback
//! interface. What the kernel's subject and its peer are told is the expectation. If ackline
//! differs, [`differences`] says so and why; a difference that is not there, or that is there and
//! does not exist, fails. `-- --nocapture` prints the whole table.
//!
//! A cell has three connections, since telling an error once can use it up: one whose ends read,
//! one whose ends write, and one that is asked how it ended. They are opened by either end. All
//! cells run at once.

mod cell;
mod differences;
mod ends;
mod outcome;

use crate::support::watchdog::Watchdog;
use crate::support::{Setup, World};
use ackline_runtime::Error;
use ackline_runtime::netlink::Netlink;
use ackline_runtime::testing::isolated;
use cell::{Cell, Data, Event, SubjectState};
use ends::{Kind, Sample};
use outcome::{Operation, Report};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::task::JoinSet;

/// The number of the loopback interface in every namespace.
const LOOPBACK: u32 = 1;

/// Between the beginnings of two samples.
const STAGGER: Duration = Duration::from_millis(2);

/// What both kinds of subject, and their peers, were told.
type Table = BTreeMap<Cell, BTreeMap<Kind, Report>>;

/// The samples of every cell whose event `wanted` picks.
fn samples(wanted: impl Fn(Event) -> bool) -> impl Iterator<Item = (Kind, Cell, Operation)> {
    Cell::all()
        .filter(move |cell| wanted(cell.event))
        .flat_map(|cell| [Kind::Stack, Kind::Kernel].map(|kind| (kind, cell)))
        .flat_map(|(kind, cell)| Operation::ALL.map(|asked| (kind, cell, asked)))
}

fn table(told: Vec<(Cell, Kind, Report)>) -> Table {
    let mut table = Table::new();
    for (cell, kind, report) in told {
        table.entry(cell).or_default().entry(kind).or_default().add(report);
    }
    table
}

/// All that happens to one connection and leaves the others alone.
async fn connections_end(world: &World) -> Table {
    let mut running = JoinSet::new();
    for (kind, cell, asked) in samples(|event| event != Event::DeviceGone) {
        let world = world.clone();
        running.spawn(async move { Sample::prepare(&world, kind, cell, asked).await.run().await });
        // All at once they would fill the device's queue, and a single lost packet can decide what
        // one end is told.
        tokio::time::sleep(STAGGER).await;
    }
    table(running.join_all().await)
}

/// The devices go when every connection is in its state.
async fn devices_go(world: &World) -> Table {
    let mut preparing = JoinSet::new();
    for (kind, cell, asked) in samples(|event| event == Event::DeviceGone) {
        let world = world.clone();
        preparing.spawn(async move { Sample::prepare(&world, kind, cell, asked).await });
    }
    let samples = preparing.join_all().await;
    world.remove_interface();
    Netlink::open().and_then(|mut netlink| netlink.set_down(LOOPBACK)).expect("it is there");
    let mut running = JoinSet::new();
    for sample in samples {
        running.spawn(sample.run());
    }
    table(running.join_all().await)
}

/// As many descriptors as the system permits: each connection of the reference takes two.
fn raise_limit_of_descriptors() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: maximum, maximum };
    setrlimit(Resource::Nofile, wanted).expect("the hard limit is permitted");
}

#[test]
#[ignore = "slow"]
fn both_ends_are_told_what_the_kernel_tells() {
    let name = "lifecycle::endings::both_ends_are_told_what_the_kernel_tells";
    let _watchdog = Watchdog::start(name, Duration::from_secs(120));
    raise_limit_of_descriptors();
    isolated(name, || {
        Netlink::open()?.set_mtu(LOOPBACK, 1_500)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| Error::System { action: "start tokio", source })?;
        let table = runtime.block_on(async {
            let world = Setup::plain().start()?;
            let mut table = connections_end(&world).await;
            table.extend(devices_go(&world).await);
            Ok::<_, Error>(table)
        })?;
        let complaints = differences::check(&table);
        for (cell, reports) in &table {
            println!("{cell}: {}", reports[&Kind::Kernel]);
            if reports[&Kind::Stack] != reports[&Kind::Kernel] {
                println!("    ackline: {}", reports[&Kind::Stack]);
            }
        }
        assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
        Ok(())
    });
}

#[test]
fn every_state_and_event_is_reached() {
    let cells: Vec<Cell> = Cell::all().collect();
    for state in SubjectState::ALL {
        for event in Event::ALL {
            let reached = cells.iter().filter(|cell| (cell.state, cell.event) == (state, event)).count();
            let fin_came =
                !matches!(state, SubjectState::Established | SubjectState::FinWait1 | SubjectState::FinWait2);
            let expected = match event {
                // The peer has nothing left to say.
                Event::Fin if fin_came => 0,
                Event::Rst if state == SubjectState::TimeWait => 0,
                // Everything was acknowledged.
                _ if matches!(state, SubjectState::FinWait2 | SubjectState::TimeWait) => 2,
                _ => Data::ALL.len(),
            };
            assert_eq!(reached, expected, "{state:?}, {event:?}");
        }
    }
}
