package main

import (
	"net/netip"
	"runtime"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/qdisc/fifo"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	nic = 1
	// Packets that wait for the device, as in runsc.
	queue = 1000
)

// Limits of a connection's buffers, in bytes, as Tailscale raises them.
var (
	sendBuffer = tcpip.TCPSendBufferSizeRangeOption{
		Min: tcp.MinBufferSize, Default: tcp.DefaultSendBufferSize, Max: 6 << 20}
	receiveBuffer = tcpip.TCPReceiveBufferSizeRangeOption{
		Min: tcp.MinBufferSize, Default: tcp.DefaultReceiveBufferSize, Max: 8 << 20}
	// Without RACK, as in Tailscale: here, too, it resent what was not lost.
	recovery = tcpip.TCPRecovery(0)
)

// A host is a stack with one interface, and the peer that it connects to.
type host struct {
	stack *stack.Stack
	peer  tcpip.FullAddress
}

func newHost(device stack.LinkEndpoint, here netip.Prefix, peer netip.AddrPort) *host {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocolCUBIC},
	})
	for _, option := range []tcpip.SettableTransportProtocolOption{&sendBuffer, &receiveBuffer, &recovery} {
		allow("set an option of TCP", s.SetTransportProtocolOption(tcp.ProtocolNumber, option))
	}
	// As in runsc. Without it a device that is full loses the packet.
	waiting := stack.NICOptions{QDisc: fifo.New(device, runtime.GOMAXPROCS(0), queue)}
	allow("create the interface", s.CreateNICWithOptions(nic, device, waiting))
	address := tcpip.AddressWithPrefix{Address: tcpip.AddrFromSlice(here.Addr().AsSlice()), PrefixLen: here.Bits()}
	allow("add the address", s.AddProtocolAddress(nic,
		tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: address}, stack.AddressProperties{}))
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return &host{s, tcpip.FullAddress{Addr: tcpip.AddrFromSlice(peer.Addr().AsSlice()), Port: peer.Port()}}
}

// A connection is a net.Conn whose endpoint can also be read in place.
type connection struct {
	*gonet.TCPConn
	endpoint tcpip.Endpoint
	// Says that there is something to read.
	readable chan struct{}
}

func (h *host) dial() *connection {
	events := new(waiter.Queue)
	endpoint, err := h.stack.NewEndpoint(tcp.ProtocolNumber, ipv4.ProtocolNumber, events)
	allow("make an endpoint", err)
	writable, connected := waiter.NewChannelEntry(waiter.WritableEvents)
	events.EventRegister(&writable)
	defer events.EventUnregister(&writable)
	err = endpoint.Connect(h.peer)
	if _, started := err.(*tcpip.ErrConnectStarted); started {
		<-connected
		err = endpoint.LastError()
	}
	allow("connect", err)
	entry, readable := waiter.NewChannelEntry(waiter.ReadableEvents | waiter.EventHUp | waiter.EventErr)
	events.EventRegister(&entry)
	return &connection{gonet.NewTCPConn(events, endpoint), endpoint, readable}
}
