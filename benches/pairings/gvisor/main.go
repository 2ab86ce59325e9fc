// Command gvisor is an end of benches/pairings: gVisor's netstack on the socket of IP packets that is standard input.
//
//	gvisor client|server HERE PEER PORT SENDS RECEIVES WAITS PAUSE MTU
//
// It sends SENDS bytes and closes its direction, and receives RECEIVES; with WAITS = 1 it sends after it has received. It
// reads nothing for PAUSE milliseconds at first, and again after half. It says "ready", and at the end the length and the
// hash of what it has received.
package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/link/qdisc/fifo"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

const (
	nic    = 1
	prefix = 24
	chunk  = 64 << 10
	// Packets that wait for the device, as in runsc.
	queue = 1000
)

func main() {
	if len(os.Args) != 10 {
		check(fmt.Errorf("usage: gvisor client|server HERE PEER PORT SENDS RECEIVES WAITS PAUSE MTU"))
	}
	numbers := make([]int, 6)
	for i := range numbers {
		number, err := strconv.Atoi(os.Args[4+i])
		check(err)
		numbers[i] = number
	}
	port, sends, receives, waits, pause, mtu := numbers[0], numbers[1], numbers[2], numbers[3] == 1, numbers[4], numbers[5]
	s := newStack(os.Args[2], mtu)
	seed, conn := uint64(1), (*gonet.TCPConn)(nil)
	if os.Args[1] == "server" {
		seed = 2
		listener, err := gonet.ListenTCP(s, address(os.Args[2], port), ipv4.ProtocolNumber)
		check(err)
		fmt.Println("ready")
		accepted, err := listener.Accept()
		check(err)
		conn = accepted.(*gonet.TCPConn)
	} else {
		fmt.Println("ready")
		dialled, err := gonet.DialContextTCP(context.Background(), s, address(os.Args[3], port), ipv4.ProtocolNumber)
		check(err)
		conn = dialled
	}

	sent := make(chan struct{})
	send := func() {
		write(conn, seed, sends)
		close(sent)
	}
	if !waits {
		go send()
	}
	hash := fnv.New64a()
	buffer := make([]byte, chunk)
	received := 0
	for _, until := range []int{receives / 2, 1 << 62} {
		time.Sleep(time.Duration(pause) * time.Millisecond)
		for received < until {
			count, err := conn.Read(buffer)
			hash.Write(buffer[:count])
			received += count
			if err == io.EOF {
				break
			}
			check(err)
		}
	}
	if waits {
		go send()
	}
	<-sent
	fmt.Printf("%d %016x\n", received, hash.Sum64())
	select {}
}

// write sends count bytes that follow from the seed, and closes the direction.
func write(conn *gonet.TCPConn, state uint64, count int) {
	for count > 0 {
		data := make([]byte, min(count, chunk))
		for i := range data {
			state = state*6364136223846793005 + 1442695040888963407
			data[i] = byte(state >> 56)
		}
		_, err := conn.Write(data)
		check(err)
		count -= len(data)
	}
	check(conn.CloseWrite())
}

// newStack has the defaults of gVisor, and SACK as runsc sets it.
func newStack(here string, mtu int) *stack.Stack {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	sack := tcpip.TCPSACKEnabled(true)
	allow("enable SACK", s.SetTransportProtocolOption(tcp.ProtocolNumber, &sack))
	device, err := fdbased.New(&fdbased.Options{FDs: []int{0}, MTU: uint32(mtu)})
	check(err)
	// As in runsc. Without it a device that is full loses the packet.
	waiting := stack.NICOptions{QDisc: fifo.New(device, runtime.GOMAXPROCS(0), queue)}
	allow("create the interface", s.CreateNICWithOptions(nic, device, waiting))
	local := tcpip.AddressWithPrefix{Address: address(here, 0).Addr, PrefixLen: prefix}
	allow("add the address", s.AddProtocolAddress(nic,
		tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: local}, stack.AddressProperties{}))
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return s
}

func address(text string, port int) tcpip.FullAddress {
	addr, err := netip.ParseAddr(text)
	check(err)
	return tcpip.FullAddress{Addr: tcpip.AddrFromSlice(addr.AsSlice()), Port: uint16(port)}
}

func check(err error) {
	if err != nil {
		fmt.Println("gvisor:", err)
		os.Exit(1)
	}
}

// allow is check for gVisor's own errors.
func allow(what string, err tcpip.Error) {
	if err != nil {
		check(fmt.Errorf("%s: %s", what, err))
	}
}
