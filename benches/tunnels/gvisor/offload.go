package main

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Of virtio_net_hdr (linux/virtio_net.h).
const (
	virtioHeader  = 10
	needsChecksum = 1
	gsoTCPv4      = 1
)

// offload is a link with super-packets in both directions and checksums that the device completes, as fdbased has it on sockets: every packet
// behind a virtio header. Of the channel it has what every link needs.
type offload struct {
	*channel.Endpoint
}

func newOffload() *offload {
	link := channel.New(0, mtu, "")
	link.SupportedGSOKind = stack.HostGSOSupported
	// With CapabilityTXChecksumOffload, SYN-ACKs would have no checksum at all.
	link.LinkEPCapabilities = stack.CapabilityRXChecksumOffload
	return &offload{link}
}

// GSOMaxSize is that of fdbased in runsc.
func (*offload) GSOMaxSize() uint32 { return 1 << 16 }

// WritePackets writes each with one system call.
func (l *offload) WritePackets(packets stack.PacketBufferList) (int, tcpip.Error) {
	for written, packet := range packets.AsSlice() {
		var before [virtioHeader]byte
		gso := packet.GSOOptions
		if gso.NeedsCsum {
			before[0] = needsChecksum
			binary.NativeEndian.PutUint16(before[6:], gso.L3HdrLen)
			binary.NativeEndian.PutUint16(before[8:], gso.CsumOffset)
		}
		if gso.Type == stack.GSOTCPv4 && packet.Data().Size() > int(gso.MSS) {
			before[1] = gsoTCPv4
			binary.NativeEndian.PutUint16(before[2:], uint16(packet.HeaderSize()))
			binary.NativeEndian.PutUint16(before[4:], gso.MSS)
		}
		parts := append([][]byte{before[:]}, packet.AsSlices()...)
		if _, err := unix.Writev(device, parts); err != nil {
			return written, &tcpip.ErrNoBufferSpace{}
		}
	}
	return packets.Len(), nil
}

// receive delivers what the device has until it is gone.
func (l *offload) receive() error {
	read := make([]byte, virtioHeader+1<<16)
	for {
		length, err := unix.Read(device, read)
		if err == unix.EAGAIN || err == unix.EINTR {
			unix.Poll([]unix.PollFd{{Fd: device, Events: unix.POLLIN}}, -1)
			continue
		}
		if err != nil {
			return err
		}
		packet := stack.NewPacketBuffer(stack.PacketBufferOptions{
			Payload: buffer.MakeWithData(read[virtioHeader:length]),
		})
		l.InjectInbound(header.IPv4ProtocolNumber, packet)
		packet.DecRef()
	}
}
