// Command gvisor is an end of a measurement of benches/compare: gVisor's netstack with its application.
//
//	gvisor tun|packet INTERFACE HERE/PREFIX PEER:PORT send|receive|round-trip|open COUNT
//
// It opens the device and says "ready". The first line on standard input starts COUNT connections. Each further line is
// answered by one: bytes, round trips or connections so far, then the nanoseconds of each round trip since the last
// answer. The program ends when standard input does.
package main

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Bytes that an application writes at once, as with the other stacks.
const chunk = 256 << 10

// What has come through.
var (
	total atomic.Uint64
	mutex sync.Mutex
	times []time.Duration
)

var devices = map[string]func(string) stack.LinkEndpoint{"tun": openTun, "packet": openPacket}
var acts = map[string]func(*connection){"send": send, "receive": receive, "round-trip": ping, "open": open}

func main() {
	if len(os.Args) != 7 || devices[os.Args[1]] == nil || acts[os.Args[5]] == nil {
		check(fmt.Errorf("usage: gvisor tun|packet INTERFACE HERE/PREFIX PEER:PORT send|receive|round-trip|open COUNT"))
	}
	here, err := netip.ParsePrefix(os.Args[3])
	check(err)
	peer, err := netip.ParseAddrPort(os.Args[4])
	check(err)
	count, err := strconv.Atoi(os.Args[6])
	check(err)
	host := newHost(devices[os.Args[1]](os.Args[2]), here, peer)
	fmt.Println("ready")

	lines := bufio.NewScanner(os.Stdin)
	lines.Scan()
	for range count {
		go func() {
			for {
				acts[os.Args[5]](host.dial())
			}
		}()
	}
	for lines.Scan() {
		answer()
	}
}

func answer() {
	mutex.Lock()
	took := times
	times = nil
	mutex.Unlock()
	out := bufio.NewWriter(os.Stdout)
	fmt.Fprint(out, total.Load())
	for _, time := range took {
		fmt.Fprint(out, " ", time.Nanoseconds())
	}
	fmt.Fprintln(out)
	out.Flush()
}

func send(conn *connection) {
	for data := make([]byte, chunk); ; {
		_, err := conn.Write(data)
		check(err)
	}
}

// receive uses the data in place, as the applications of the other stacks do.
func receive(conn *connection) {
	for {
		_, err := conn.endpoint.Read(counter{}, tcpip.ReadOptions{})
		if _, empty := err.(*tcpip.ErrWouldBlock); empty {
			<-conn.readable
			continue
		}
		allow("read", err)
	}
}

// A counter counts bytes and does not look at them.
type counter struct{}

func (counter) Write(data []byte) (int, error) {
	total.Add(uint64(len(data)))
	return len(data), nil
}

func ping(conn *connection) {
	for data := []byte{7}; ; {
		start := time.Now()
		_, err := conn.Write(data)
		check(err)
		_, err = conn.Read(data)
		check(err)
		mutex.Lock()
		times = append(times, time.Since(start))
		mutex.Unlock()
		total.Add(1)
	}
}

// open sends a byte, and closes when the peer has closed.
func open(conn *connection) {
	data := []byte{7}
	_, err := conn.Write(data)
	check(err)
	if read, err := conn.Read(data); read != 0 {
		check(fmt.Errorf("the peer sent a byte and did not close: %v", err))
	}
	check(conn.Close())
	total.Add(1)
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
