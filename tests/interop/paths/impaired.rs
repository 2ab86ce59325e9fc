//! A bad path between the stack and the kernel: whatever it does to packets, every byte arrives.

use crate::support::stream::{read_all, write_all};
use crate::support::{Ip, Opens, Setup, World};
use ackline_runtime::device::impair::{ImpairConfig, Impairment, Stall, SuperPackets};
use ackline_tcp_core::Duration;

const MIB: u64 = 1 << 20;
const NOTHING: Impairment = Impairment {
    loss: 0.0,
    duplicate: 0.0,
    reorder: 0.0,
    reorder_by: Duration::ZERO,
    corrupt: 0.0,
    delay: Duration::from_micros(200),
    jitter: Duration::ZERO,
    rate: None,
    stall: Stall { every: Duration::ZERO, lasts: Duration::ZERO },
};

fn setup(impairment: Impairment, seed: u64) -> Setup {
    Setup::offload().impair(ImpairConfig::both(impairment, seed))
}

fn whole(impairment: Impairment, seed: u64) -> Setup {
    let mut config = ImpairConfig::both(impairment, seed);
    config.super_packets = SuperPackets::Whole;
    Setup::offload().impair(config)
}

fn plain(impairment: Impairment, seed: u64) -> Setup {
    Setup { offload: false, ..setup(impairment, seed) }
}

/// Both ways, one after the other and at once; then the path must have done what it was asked for.
async fn survives(world: World, asked: Impairment, len: u64) {
    let (mut kernel, mut stack) = world.connection(Opens::Kernel, Ip::V4).await;
    tokio::join!(write_all(&mut kernel, 1, len), read_all(&mut stack, 1, len));
    tokio::join!(write_all(&mut stack, 2, len), read_all(&mut kernel, 2, len));
    let (mut kernel, mut stack) = world.connection(Opens::Stack, Ip::V6).await;
    let (mut kernel_reads, mut kernel_writes) = kernel.split();
    let (mut stack_reads, mut stack_writes) = stack.split();
    tokio::join!(
        write_all(&mut kernel_writes, 3, len),
        write_all(&mut stack_writes, 4, len),
        read_all(&mut kernel_reads, 4, len),
        read_all(&mut stack_reads, 3, len),
    );
    let path = world.path.as_ref().expect("a bad path");
    for (way, did) in [("out", path.outgoing()), ("in", path.incoming())] {
        eprintln!("{way}: {did:?}");
        assert!(asked.loss == 0.0 || did.lost > 0, "nothing was lost {way}");
        assert!(asked.duplicate == 0.0 || did.duplicated > 0, "nothing was duplicated {way}");
        assert!(asked.reorder == 0.0 || did.reordered > 0, "nothing was reordered {way}");
        assert!(asked.corrupt == 0.0 || did.corrupted > 0, "nothing was damaged {way}");
    }
}

const LOSS_1: Impairment = Impairment { loss: 1.0, ..NOTHING };
const LOSS_5: Impairment = Impairment { loss: 5.0, ..NOTHING };
const DUPLICATES: Impairment = Impairment { duplicate: 10.0, ..NOTHING };
const REORDERING: Impairment = Impairment { reorder: 5.0, reorder_by: Duration::from_micros(500), ..NOTHING };
const JITTER: Impairment =
    Impairment { delay: Duration::from_millis(1), jitter: Duration::from_millis(1), ..NOTHING };
const DAMAGE: Impairment = Impairment { corrupt: 2.0, ..NOTHING };
const EVERYTHING: Impairment = Impairment {
    loss: 2.0,
    duplicate: 2.0,
    reorder: 5.0,
    reorder_by: Duration::from_millis(1),
    corrupt: 1.0,
    delay: Duration::from_millis(1),
    jitter: Duration::from_micros(200),
    ..NOTHING
};

against_kernel! {
    fn nothing(world) from setup(NOTHING, 0x10); { survives(world, NOTHING, 4 * MIB).await; }
    fn loss_of_1_percent(world) from setup(LOSS_1, 0x11); { survives(world, LOSS_1, 4 * MIB).await; }
    fn loss_of_1_percent_plain(world) from plain(LOSS_1, 0x12); { survives(world, LOSS_1, 4 * MIB).await; }
    fn loss_of_5_percent(world) from setup(LOSS_5, 0x13); { survives(world, LOSS_5, MIB).await; }
    fn loss_of_5_percent_of_super_packets(world) from whole(LOSS_5, 0x14); {
        survives(world, LOSS_5, 4 * MIB).await;
    }
    fn duplicates(world) from setup(DUPLICATES, 0x15); { survives(world, DUPLICATES, 4 * MIB).await; }
    fn duplicates_of_super_packets(world) from whole(DUPLICATES, 0x16); {
        survives(world, DUPLICATES, 8 * MIB).await;
    }
    fn reordering(world) from setup(REORDERING, 0x17); { survives(world, REORDERING, 2 * MIB).await; }
    fn reordering_of_super_packets(world) from whole(REORDERING, 0x18); {
        survives(world, REORDERING, 8 * MIB).await;
    }
    fn jitter(world) from setup(JITTER, 0x19); { survives(world, JITTER, 2 * MIB).await; }
    fn damage(world) from setup(DAMAGE, 0x1a); { survives(world, DAMAGE, 2 * MIB).await; }
    fn damage_plain(world) from plain(DAMAGE, 0x1b); { survives(world, DAMAGE, 2 * MIB).await; }
    fn everything(world) from setup(EVERYTHING, 0x1c); { survives(world, EVERYTHING, MIB).await; }
    fn everything_to_super_packets(world) from whole(EVERYTHING, 0x1d); {
        // Few packets: enough of them for each fate to come up.
        survives(world, EVERYTHING, 8 * MIB).await;
    }
    fn everything_plain(world) from plain(EVERYTHING, 0x1e); { survives(world, EVERYTHING, MIB).await; }
    fn everything_without_sack(world) from setup(EVERYTHING, 0x1f).connections(|config| config.sack = false); {
        survives(world, EVERYTHING, MIB / 2).await;
    }
    fn everything_without_timestamps(world) from
        setup(EVERYTHING, 0x20).connections(|config| config.timestamps = false); {
        survives(world, EVERYTHING, MIB / 2).await;
    }
}
