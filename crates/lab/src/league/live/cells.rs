//! The cells that run in real time: of M1 those up to 50 Mbit/s with few flows, made shorter.

use super::super::cell::{Cell, HOST};
use super::super::m1::{
    CODEL_DROP, Times, alone, equals, harm, joins, loss, lossy, managed, outage, requests,
};
use super::super::matrix::Matrix;
use super::machine::Machine;
use super::sender;

/// Hosts that send under test.
const UNDER_TEST: [&str; 3] = ["sender", "first", "second"];

/// The matrix of live runs; with `quick` a few short cells with one seed.
#[must_use]
pub fn live_matrix(quick: bool) -> Matrix {
    let (name, cells) = if quick { ("M1-live-quick", short()) } else { ("M1-live", whole()) };
    let cells = cells.into_iter().map(|cell| Cell { text: on_hosts(&cell.text), ..cell });
    Matrix::new(name, cells.collect())
}

/// Why a cell cannot run on this machine, if it cannot.
#[must_use]
pub fn unavailable(cell: &Cell, machine: &Machine) -> Option<String> {
    let peer = match cell.family {
        "H" | "H0" => cell.id.split('-').nth(1)?,
        "U" => "cubic",
        _ => return None,
    };
    let has = machine.controls.iter().any(|control| control == peer);
    (!has).then(|| format!("{}: the kernel has no congestion control {peer:?}", cell.id))
}

fn whole() -> Vec<Cell> {
    const SEEDS: u32 = 3;
    let minute = Times(60.0, 20.0);
    let mut cells = [1.0, 4.0].map(|buffer| alone(20.0, 40.0, buffer, minute, SEEDS)).to_vec();
    cells.push(lossy("L-1e-2", 20.0, &loss(1e-2), 1e-2, minute, SEEDS));
    cells.push(equals(2, 1.0, minute, SEEDS));
    cells.push(joins(1.0, Times(60.0, 30.0), SEEDS));
    for victim in ["cubic", "reno", "bbr"] {
        cells.extend(harm(victim, 1.0, minute, SEEDS));
    }
    cells.push(requests(1, minute, SEEDS));
    cells.push(outage(2.0, Times(60.0, 10.0), SEEDS));
    cells.push(managed("codel", CODEL_DROP, None, minute, SEEDS));
    cells
}

fn short() -> Vec<Cell> {
    let (usual, longer) = (Times(15.0, 5.0), Times(20.0, 5.0));
    let mut cells = [1.0, 4.0].map(|buffer| alone(20.0, 40.0, buffer, usual, 1)).to_vec();
    cells.push(lossy("L-1e-2", 20.0, &loss(1e-2), 1e-2, longer, 1));
    cells.push(equals(2, 1.0, usual, 1));
    cells.extend(harm("cubic", 1.0, longer, 1));
    cells.push(requests(1, usual, 1));
    cells.push(managed("codel", CODEL_DROP, None, usual, 1));
    cells
}

/// Gives each host its world: those that send under test their sender's, all others the kernel's.
fn on_hosts(text: &str) -> String {
    const NODE: &str = "[[node]]\nname = \"";
    let mut parts = text.split(NODE);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once("\"\n").unwrap_or((part, ""));
        let world = match rest.starts_with("kind = \"router\"") {
            true => String::new(),
            false if UNDER_TEST.contains(&name) => format!("{HOST}\n"),
            false => sender::kernel() + "\n",
        };
        whole += &format!("{NODE}{name}\"\n{world}{rest}");
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::super::sender::Sender;
    use super::*;
    use crate::stage::World;
    use ackline_registry::Registry;

    #[test]
    fn whoever_sends_under_test_is_the_sender_and_all_others_are_the_kernel() {
        let registry = Registry::default();
        let machine = Machine { controls: vec!["bbr".to_owned()], ..Machine::default() };
        for (name, world) in [("bbr", World::Live), ("linux:bbr", World::Kernel)] {
            let sender = Sender::named(name, &machine, &registry).unwrap();
            for cell in live_matrix(false).cells.iter().chain(&live_matrix(true).cells) {
                let scenario = cell.parse(&sender.text(cell), &registry);
                let setup = scenario.unwrap_or_else(|error| panic!("{error}")).setup(0).unwrap();
                assert!(setup.duration.as_secs_f64() <= 60.0);
                for flow in &setup.flows {
                    let host = |place: usize| setup.nodes[place].host.as_ref().unwrap();
                    let (ours, other) = (host(flow.from), host(flow.to));
                    let is_tested = matches!(flow.app.as_str(), "a" | "second");
                    let expected = if is_tested { world } else { World::Kernel };
                    assert_eq!(
                        (ours.world, other.world),
                        (expected, World::Kernel),
                        "{}: {}",
                        cell.id,
                        flow.app
                    );
                    let cc = ours.kernel.cc.as_ref().map(|cc| cc.value.as_str());
                    assert_eq!(cc, (is_tested && name == "linux:bbr").then_some("bbr"));
                }
            }
        }
    }

    #[test]
    fn the_quick_form_takes_two_minutes_a_control() {
        let registry = Registry::default();
        let sender = Sender::named("reno", &Machine::default(), &registry).unwrap();
        let seconds = |matrix: &Matrix| -> f64 {
            let cells = matrix.cells.iter().filter(|cell| cell.family != "H0");
            cells
                .map(|cell| {
                    let scenario = cell.parse(&sender.text(cell), &registry).unwrap();
                    f64::from(cell.seeds) * scenario.setup(0).unwrap().duration.as_secs_f64()
                })
                .sum()
        };
        assert!((60.0..=120.0).contains(&seconds(&live_matrix(true))));
        assert_eq!(seconds(&live_matrix(false)) / 60.0, 33.0);
    }

    #[test]
    fn a_cell_beside_a_control_that_the_kernel_lacks_is_not_available() {
        let machine = Machine { controls: vec!["cubic".to_owned()], ..Machine::default() };
        let matrix = live_matrix(false);
        let out: Vec<String> = matrix.cells.iter().filter_map(|cell| unavailable(cell, &machine)).collect();
        assert_eq!(out.len(), 4, "{out:?}");
        assert_eq!(out[0], "H-reno-1: the kernel has no congestion control \"reno\"");
    }
}
