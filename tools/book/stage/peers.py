"""What answers on the small network of `run`: `there` as servers behind 192.168.1.1, `here` a SOCKS server and a web server."""

import select
import socket
import socketserver
import ssl
import struct
import sys
import threading

NAMES = {"example.org": "203.0.113.9", "nas": "198.51.100.9"}
PAGE = b"a page\n"


def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def join(one, other):
    back = threading.Thread(target=pump, args=(other, one), daemon=True)
    back.start()
    pump(one, other)
    back.join()


def address(name):
    """The address of a name: that of the names above, or of the domain that it is in."""
    while name:
        if name in NAMES:
            return NAMES[name]
        name = name.partition(".")[2]
    return None


class Http(socketserver.StreamRequestHandler):
    """One page at every path; CONNECT as a proxy."""

    def handle(self):
        method, target, _ = self.rfile.readline().decode().split()
        while self.rfile.readline().strip():
            pass
        if method == "CONNECT":
            host, _, port = target.rpartition(":")
            with socket.create_connection((address(host) or host, int(port))) as far:
                self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
                join(self.connection, far)
        else:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(PAGE), PAGE))


class Sink(socketserver.BaseRequestHandler):
    """Takes everything."""

    def handle(self):
        while self.request.recv(1 << 20):
            pass


class Socks(socketserver.BaseRequestHandler):
    """RFC 1928: CONNECT and UDP ASSOCIATE, without authentication."""

    def exactly(self, size):
        data = b""
        while len(data) < size:
            data += self.request.recv(size - len(data)) or sys.exit()
        return data

    def handle(self):
        self.exactly(self.exactly(2)[1])
        self.request.sendall(b"\5\0")
        command, kind = self.exactly(4)[1::2]
        if kind == 3:
            name = self.exactly(self.exactly(1)[0]).decode()
            host = address(name) or name
        else:
            host = socket.inet_ntop(*((socket.AF_INET, self.exactly(4)) if kind == 1 else (socket.AF_INET6, self.exactly(16))))
        port = struct.unpack("!H", self.exactly(2))[0]
        reply = lambda code: self.request.sendall(b"\5" + bytes([code]) + b"\0\1" + bytes(6))
        if command == 3:
            return self.associate()
        if command != 1:
            return reply(7)
        try:
            far = socket.create_connection((host, port), 5)
        except OSError:
            return reply(5)
        with far:
            far.settimeout(None)
            reply(0)
            join(self.request, far)


    def associate(self):
        """Relays datagrams of IPv4 until the connection ends."""
        near, far = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        near.bind(("127.0.0.1", 0))
        self.request.sendall(b"\5\0\0\1" + socket.inet_aton("127.0.0.1") + struct.pack("!H", near.getsockname()[1]))
        client = None
        while True:
            ready, _, _ = select.select([self.request, near, far], [], [])
            if self.request in ready and not self.request.recv(1):
                return
            if near in ready:
                data, client = near.recvfrom(65535)
                if data[:4] == b"\0\0\0\1":
                    far.sendto(data[10:], (socket.inet_ntoa(data[4:8]), struct.unpack("!H", data[8:10])[0]))
            if far in ready:
                data, (host, port) = far.recvfrom(65535)
                near.sendto(b"\0\0\0\1" + socket.inet_aton(host) + struct.pack("!H", port) + data, client)


def resolved(question):
    """The answer to a DNS question, RFC 1035: an address, or none for what is no name of ours."""
    labels, at = [], 12
    while question[at]:
        labels.append(question[at + 1 : at + 1 + question[at]].decode().lower())
        at += 1 + question[at]
    end = at + 5
    found = address(".".join(labels))
    is_a = question[end - 4 : end - 2] == b"\0\1"
    answers = int(found is not None and is_a)
    answer = question[:2] + struct.pack("!HHHHH", 0x8180 if found else 0x8183, 1, answers, 0, 0) + question[12:end]
    if answers:
        answer += b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(found)
    return answer


class DnsUdp(socketserver.BaseRequestHandler):
    def handle(self):
        question, at = self.request
        at.sendto(resolved(question), self.client_address)


class DnsTcp(socketserver.StreamRequestHandler):
    def handle(self):
        while length := self.rfile.read(2):
            answer = resolved(self.rfile.read(struct.unpack("!H", length)[0]))
            self.wfile.write(struct.pack("!H", len(answer)) + answer)
            self.wfile.flush()


class Tcp(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128


def serve(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


if sys.argv[1] == "here":
    serve(Tcp(("127.0.0.1", 1080), Socks))
    serve(Tcp(("", 80), Http))
else:
    for port, handler in ((80, Http), (3128, Http), (5001, Sink), (53, DnsTcp)):
        serve(Tcp(("", port), handler))
    # Answers come from the address that was asked.
    serve(socketserver.ThreadingUDPServer(("192.0.2.53", 53), DnsUdp))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("/mnt/cert.pem", "/mnt/key.pem")
    secure = Tcp(("", 443), Http)
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    serve(secure)
print("ready", flush=True)
threading.Event().wait()
