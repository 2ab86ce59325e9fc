// Command gvisor is a terminator of benches/tunnels: gVisor's netstack on the TUN device that is its standard input. It carries each
// connection on to the destination that its SYN named.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/link/qdisc/fifo"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	device = 0
	mtu    = 1500
	nic    = 1
	// Packets that wait for the device, as in runsc.
	queue = 1000
	// Connections that wait for their destination, as in tun2socks.
	waiting = 2 << 10
)

// Limits of a connection's buffers, in bytes, as Tailscale raises them.
var (
	sendBuffer = tcpip.TCPSendBufferSizeRangeOption{
		Min: tcp.MinBufferSize, Default: tcp.DefaultSendBufferSize, Max: 6 << 20}
	receiveBuffer = tcpip.TCPReceiveBufferSizeRangeOption{
		Min: tcp.MinBufferSize, Default: tcp.DefaultReceiveBufferSize, Max: 8 << 20}
	// Without RACK, as in Tailscale.
	recovery = tcpip.TCPRecovery(0)
)

func main() {
	check(unix.SetNonblock(device, true))
	var link stack.LinkEndpoint
	var super *offload
	if len(os.Args) > 1 && os.Args[1] == "offload" {
		super = newOffload()
		link = super
	} else {
		// It has super-packets and checksum offload on sockets only.
		plain, err := fdbased.New(&fdbased.Options{FDs: []int{device}, MTU: mtu})
		check(err)
		link = plain
	}
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocolCUBIC},
	})
	for _, option := range []tcpip.SettableTransportProtocolOption{&sendBuffer, &receiveBuffer, &recovery} {
		allow("set an option of TCP", s.SetTransportProtocolOption(tcp.ProtocolNumber, option))
	}
	forwarder := tcp.NewForwarder(s, 0, waiting, carryOn)
	s.SetTransportProtocolHandler(tcp.ProtocolNumber, forwarder.HandlePacket)
	// As in runsc. Without it a device that is full loses the packet.
	options := stack.NICOptions{QDisc: fifo.New(link, runtime.GOMAXPROCS(0), queue)}
	allow("create the interface", s.CreateNICWithOptions(nic, link, options))
	allow("take packets for any address", s.SetPromiscuousMode(nic, true))
	allow("send packets from any address", s.SetSpoofing(nic, true))
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	if super != nil {
		check(super.receive())
	}
	select {}
}

// carryOn answers a SYN when its destination has answered. The forwarder calls it in a goroutine of its own.
func carryOn(request *tcp.ForwarderRequest) {
	id := request.ID()
	out, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: id.LocalAddress.AsSlice(), Port: int(id.LocalPort)})
	if err != nil {
		request.Complete(true)
		return
	}
	defer out.Close()
	events := new(waiter.Queue)
	endpoint, failed := request.CreateEndpoint(events)
	if failed != nil {
		request.Complete(true)
		return
	}
	request.Complete(false)
	client := gonet.NewTCPConn(events, endpoint)
	defer client.Close()
	done := make(chan struct{})
	go func() {
		relay(out, client)
		close(done)
	}()
	relay(client, out)
	<-done
}

type halfCloser interface {
	io.ReadWriter
	CloseWrite() error
}

// relay passes the end of a direction on; what fails is passed on as an end.
func relay(to, from halfCloser) {
	io.Copy(to, from)
	to.CloseWrite()
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "gvisor:", err)
		os.Exit(1)
	}
}

// allow is check for gVisor's own errors.
func allow(what string, err tcpip.Error) {
	if err != nil {
		check(fmt.Errorf("%s: %s", what, err))
	}
}
