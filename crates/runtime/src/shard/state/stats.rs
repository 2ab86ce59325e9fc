//! Statistics of a shard.

use super::StackState;
use crate::shard::hub::HubPort;
use crate::stats::{Meters, Stats};

impl StackState {
    pub(crate) fn stats(&self) -> Stats {
        let Meters {
            departure_lateness,
            timer_lateness,
            departure_gaps,
            data_gaps,
            awake,
            driver_runs,
            timer_expiries,
            device_drops,
            rx_super_packets,
            tx_super_packets,
            ..
        } = &self.meters;
        Stats {
            departure_lateness: departure_lateness.clone(),
            timer_lateness: timer_lateness.clone(),
            departure_gaps: departure_gaps.clone(),
            data_gaps: data_gaps.clone(),
            awake: *awake,
            wakes_early_by: self.schedule.waiter.lead(),
            driver_runs: *driver_runs,
            timer_expiries: *timer_expiries,
            device_drops: *device_drops,
            turn_waits: self.turns.waits(),
            device_backlogs: self.backlog.times(),
            rx_super_packets: *rx_super_packets,
            tx_super_packets: *tx_super_packets,
            handed_over: self.hub_port.as_ref().map_or(0, |hub_port| hub_port.handed),
            taken_over: self.hub_port.as_ref().map_or(0, |hub_port| hub_port.taken),
            handover_drops: self.hub_port.as_ref().map_or(0, HubPort::dropped),
            connections: self.endpoint.connections(),
            half_open: self.endpoint.half_open(),
            held_syns: self.endpoint.held_syns(),
            fast_open_pending: self.endpoint.fast_open_pending(),
            fast_open_entries: self.endpoint.fast_open_entries(),
            orphans: self.endpoint.orphans(),
            time_wait: self.endpoint.time_wait_records(),
            memory: self.endpoint.memory(),
            max_memory: self.endpoint.config().max_memory,
            memory_pressure: self.endpoint.is_under_memory_pressure(),
            path_entries: self.endpoint.path_entries(),
            incomplete_packets: self.endpoint.incomplete_packets(),
            udp_sockets: self.endpoint.udp_sockets(),
            udp_flows: self.endpoint.udp_flows(),
            mtu: self.endpoint.config().mtu,
            egress: self.endpoint.egress_stats(),
            device: self.device.device.stats(),
            counters: self.endpoint.counters().clone(),
        }
    }
}
