//! netstack-smoltcp, set up as in its README; with the argument `offload` as its example
//! `forward-offload-linux`, on a device with virtio headers.

use ackline_tunnel_rivals::{MTU, Tun, carry_on};
use futures::{SinkExt as _, StreamExt as _};
use netstack_smoltcp::StackBuilder;
use std::io;
use std::sync::Arc;
use tun_rs::{
    IDEAL_BATCH_SIZE, VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_TCPV6, VIRTIO_NET_HDR_LEN, VirtioNetHdr,
    checksum, gso_split,
};

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the checksum is that of the pseudo-header alone.
const NEEDS_CHECKSUM: u8 = 1;

#[tokio::main]
async fn main() -> io::Result<()> {
    let offload = std::env::args().nth(1).as_deref() == Some("offload");
    let device = Arc::new(Tun::inherited()?);
    let (stack, runner, _, listener) = StackBuilder::default()
        .stack_buffer_size(512)
        .tcp_buffer_size(4096)
        .enable_tcp(true)
        .mtu(usize::from(MTU))
        .build()?;
    let (Some(runner), Some(mut listener)) = (runner, listener) else {
        return Err(io::Error::other("a stack without TCP"));
    };
    tokio::spawn(runner);
    let (mut to_stack, mut from_stack) = stack.split();

    let out = device.clone();
    tokio::spawn(async move {
        while let Some(Ok(packet)) = from_stack.next().await {
            // A packet that the device does not take is lost.
            let _ = if offload {
                // A header of zeros: one packet with a complete checksum.
                let mut framed = vec![0; VIRTIO_NET_HDR_LEN + packet.len()];
                framed[VIRTIO_NET_HDR_LEN..].copy_from_slice(&packet);
                out.write_packet(&framed).await
            } else {
                out.write_packet(&packet).await
            };
        }
    });
    tokio::spawn(async move {
        let mut original = vec![0; VIRTIO_NET_HDR_LEN + 65_535];
        let mut packets = vec![vec![0; 1600]; IDEAL_BATCH_SIZE];
        let mut sizes = vec![0; IDEAL_BATCH_SIZE];
        while let Ok(read) = device.read_packet(&mut original).await {
            if !offload {
                let _ = to_stack.send(original[..read].to_vec()).await;
                continue;
            }
            let count = split(&mut original[..read], &mut packets, &mut sizes).unwrap_or(0);
            for (packet, &size) in packets.iter().zip(&sizes).take(count) {
                let _ = to_stack.send(packet[..size].to_vec()).await;
            }
        }
    });

    while let Some((mut stream, _, destination)) = listener.next().await {
        tokio::spawn(async move {
            // What fails ends with it.
            let _ = carry_on(&mut stream, destination).await;
        });
    }
    Ok(())
}

/// The packets of a super-packet, as `recv_multiple` of tun-rs makes them on a device that it has
/// opened itself.
fn split(input: &mut [u8], packets: &mut [Vec<u8>], sizes: &mut [usize]) -> io::Result<usize> {
    let mut header = VirtioNetHdr::decode(input)?;
    let input = &mut input[VIRTIO_NET_HDR_LEN..];
    let transport = usize::from(header.csum_start);
    match header.gso_type {
        VIRTIO_NET_HDR_GSO_TCPV4 | VIRTIO_NET_HDR_GSO_TCPV6 if input.len() > transport + 12 => {
            header.hdr_len = header.csum_start + u16::from(input[transport + 12] >> 4) * 4;
            gso_split(input, header, packets, sizes, 0, header.gso_type == VIRTIO_NET_HDR_GSO_TCPV6)
        }
        _ => {
            if header.flags & NEEDS_CHECKSUM != 0 {
                let at = transport + usize::from(header.csum_offset);
                let pseudo_header = u16::from_be_bytes([input[at], input[at + 1]]);
                input[at..at + 2].fill(0);
                let sum = !checksum(&input[transport..], u64::from(pseudo_header));
                input[at..at + 2].copy_from_slice(&sum.to_be_bytes());
            }
            let packet = packets[0].get_mut(..input.len()).ok_or(io::ErrorKind::InvalidData)?;
            packet.copy_from_slice(input);
            sizes[0] = input.len();
            Ok(1)
        }
    }
}
