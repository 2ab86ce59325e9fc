package main

import (
	"net"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/link/tun"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const (
	mtu = 1500
	// Of the packet socket, in bytes, as in runsc.
	socketBuffer = 4 << 20
	// Of a super-packet, in bytes.
	gsoMaxSize = 65536
)

// openTun makes a TUN interface. fdbased has super-packets and checksum offload on sockets only, so a TUN carries
// single packets with complete checksums.
func openTun(name string) stack.LinkEndpoint {
	fd, err := tun.Open(name)
	check(err)
	device, err := fdbased.New(&fdbased.Options{FDs: []int{fd}, MTU: mtu})
	check(err)
	return device
}

// openPacket opens a packet socket as runsc does for a sandbox: virtio headers (super-packets and checksum offload in both
// directions), and several packets per system call.
func openPacket(name string) stack.LinkEndpoint {
	device, err := net.InterfaceByName(name)
	check(err)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	check(err)
	const everything = unix.ETH_P_ALL << 8 // In network order.
	check(unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: everything, Ifindex: device.Index}))
	check(unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1))
	check(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBuffer))
	check(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, socketBuffer))
	endpoint, err := fdbased.New(&fdbased.Options{
		FDs:                []int{fd},
		MTU:                mtu,
		EthernetHeader:     true,
		Address:            tcpip.LinkAddress(device.HardwareAddr),
		PacketDispatchMode: fdbased.RecvMMsg,
		GSOMaxSize:         gsoMaxSize,
		RXChecksumOffload:  true,
	})
	check(err)
	return endpoint
}
