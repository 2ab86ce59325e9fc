//! What both ends of one connection say of it: `tcp_info` of the kernel, and `Info` of the stack.

use crate::support::stream::{read_all, write_all};
use crate::support::{Ip, Opens, Setup, World};
use ackline_runtime::device::impair::{ImpairConfig, Impairment};
use ackline_runtime::kernel::KernelTcpInfo;
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// Sends 4 MiB each way, and compares when everything is acknowledged.
async fn agree(world: &World, opens: Opens, ip: Ip, lossy: bool) {
    let len = 4 * MIB;
    let (mut kernel, mut stack) = world.connection(opens, ip).await;
    tokio::join!(write_all(&mut kernel, 1, len), read_all(&mut stack, 1, len));
    tokio::join!(write_all(&mut stack, 2, len), read_all(&mut kernel, 2, len));
    // For the FINs, and delayed ACKs: at most 200 ms at either end.
    tokio::time::sleep(Duration::from_millis(400)).await;
    let theirs = KernelTcpInfo::of(&kernel).expect("a TCP socket");
    let ours = stack.info().expect("it exists");

    assert_eq!((ours.bytes_received, ours.bytes_acked), (len, len));
    // The FIN has a sequence number, too.
    assert!((len..=len + 1).contains(&ours.delivered), "{}", ours.delivered);
    assert_eq!((ours.unacked, ours.notsent_bytes), (0, 0));
    // The kernel counts sequence numbers of SYN and FIN.
    assert!((len..=len + 2).contains(&theirs.bytes_acked), "{}", theirs.bytes_acked);
    assert!((len..=len + 2).contains(&theirs.bytes_received), "{}", theirs.bytes_received);
    assert_eq!(ours.bytes_sent, len + ours.bytes_retrans);
    assert_eq!(u64::from(theirs.snd_mss), u64::from(ours.advmss), "what we accept, they send");
    assert_eq!((ours.snd_mss, ours.advmss, ours.pmtu), (theirs.advmss, theirs.advmss, theirs.pmtu));

    // Nothing arrives that was not sent. What the path loses was retransmitted, or was a pure ACK.
    // In TIME-WAIT the kernel has no socket that could count.
    assert!(ours.data_segs_in <= theirs.data_segs_out.into(), "{ours:?}\n{theirs:?}");
    assert!(ours.segs_in <= u64::from(theirs.segs_out) + 2, "{ours:?}\n{theirs:?}");
    assert!(u64::from(theirs.data_segs_in) <= ours.data_segs_out, "{ours:?}\n{theirs:?}");
    assert!(u64::from(theirs.segs_in) <= ours.segs_out, "{ours:?}\n{theirs:?}");
    assert!(
        ours.data_segs_in + u64::from(theirs.total_retrans) >= theirs.data_segs_out.into(),
        "{ours:?}\n{theirs:?}"
    );
    if !world.offload {
        // The kernel counts a super-packet from a TUN device as one segment.
        assert!(
            u64::from(theirs.data_segs_in) + ours.total_retrans >= ours.data_segs_out,
            "{ours:?}\n{theirs:?}"
        );
    }
    if lossy {
        assert!(theirs.rcv_ooopack > 0, "there were holes");
        assert!(ours.total_retrans > 0 && theirs.total_retrans > 0);
    } else {
        // Of pure ACKs the device's queue may drop some.
        assert!(
            ours.segs_in + u64::from(theirs.segs_out) / 20 + 2 >= theirs.segs_out.into(),
            "{ours:?}\n{theirs:?}"
        );
    }
    // Each end measures the same path, one after the other: within a factor of ten, on a busy
    // machine.
    let least = (Duration::from(ours.min_rtt.expect("measured")), theirs.min_rtt.expect("measured"));
    assert!(least.0 < least.1 * 10 && least.1 < least.0 * 10, "{least:?}");
}

against_kernel! {
    fn kernel_opens(world) from Setup::offload(); { agree(&world, Opens::Kernel, Ip::V4, false).await; }
    fn stack_opens(world) from Setup::offload(); { agree(&world, Opens::Stack, Ip::V6, false).await; }
    fn kernel_opens_plain(world) from Setup::plain(); { agree(&world, Opens::Kernel, Ip::V6, false).await; }
    fn stack_opens_plain(world) from Setup::plain(); { agree(&world, Opens::Stack, Ip::V4, false).await; }
    fn with_losses(world) from Setup::plain().impair(lossy()); {
        agree(&world, Opens::Stack, Ip::V4, true).await;
    }
}

/// One packet in a hundred is lost, in both directions.
fn lossy() -> ImpairConfig {
    let loss = Impairment { loss: 1.0, ..Impairment::default() };
    ImpairConfig::both(loss, 7)
}
