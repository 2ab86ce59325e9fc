/* An echo server on a TUN device, with ackline instead of the kernel's TCP.
 *
 *   echo DEVICE OPTIONS ADDRESS:PORT
 *   echo tun0 addresses=10.0.0.2,cc=cubic 10.0.0.2:7
 *
 * The device exists, or is made, as root; then, to reach the stack from this machine:
 *   ip address add 10.0.0.1/24 dev tun0 && ip link set tun0 up */
#define _GNU_SOURCE
#include <ackline.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* A connection, and what it has sent and not got back. */
typedef struct client {
    struct client *next;
    ackline_socket socket;
    size_t start, end;
    uint8_t data[16384];
} client;

static client *clients;
static volatile sig_atomic_t stopped;

static void stop(int signal) {
    stopped = signal;
}

static uint64_t clock_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void check(int code, const char *what) {
    if (code < 0) {
        fprintf(stderr, "echo: %s: %s\n", what, ackline_last_error());
        exit(1);
    }
}

static int open_tun(const char *name) {
    struct ifreq request;
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    memset(&request, 0, sizeof request);
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &request) < 0) {
        perror("echo: could not open the TUN device");
        exit(1);
    }
    return fd;
}

/* The stack sends a packet. */
static int transmit(void *user, const uint8_t *packet, size_t len) {
    const int *tun = user;
    /* Any other error loses the packet, as a network may. */
    return write(*tun, packet, len) < 0 && errno == EAGAIN;
}

static void accept_all(ackline_stack *stack, ackline_socket listener) {
    ackline_socket socket;
    while (ackline_tcp_accept(stack, listener, &socket, NULL) == 0) {
        client *new = calloc(1, sizeof *new);
        if (new == NULL)
            abort();
        new->socket = socket;
        new->next = clients;
        clients = new;
    }
}

/* Sends back what there is, until there is no more or no room. Returns 0 when the connection is done. */
static int echo(ackline_stack *stack, client *c, uint64_t now) {
    for (;;) {
        int64_t n;
        if (c->start == c->end) {
            n = ackline_tcp_read(stack, c->socket, c->data, sizeof c->data, now);
            if (n == ACKLINE_EAGAIN)
                return 1;
            if (n <= 0)
                return 0; /* the end of the stream, or an error */
            c->start = 0;
            c->end = (size_t)n;
        }
        n = ackline_tcp_write(stack, c->socket, c->data + c->start, c->end - c->start, now);
        if (n == ACKLINE_EAGAIN)
            return 1;
        if (n < 0)
            return 0;
        c->start += (size_t)n;
    }
}

static void serve(ackline_stack *stack, ackline_socket socket, uint64_t now) {
    client **at = &clients;
    while (*at != NULL && (*at)->socket != socket)
        at = &(*at)->next;
    if (*at != NULL && !echo(stack, *at, now)) {
        client *done = *at;
        *at = done->next;
        ackline_socket_close(stack, socket, now); /* what was written still goes out */
        free(done);
    }
}

int main(int argc, char **argv) {
    ackline_stack *stack;
    ackline_socket listener;
    ackline_address address;
    sigset_t waiting, working;
    int tun;

    if (argc != 4) {
        fprintf(stderr, "usage: echo DEVICE OPTIONS ADDRESS:PORT\n");
        return 2;
    }
    /* Signals come only while the program waits. */
    sigemptyset(&working);
    sigaddset(&working, SIGTERM);
    sigaddset(&working, SIGINT);
    sigprocmask(SIG_BLOCK, &working, &waiting);
    signal(SIGTERM, stop);
    signal(SIGINT, stop);

    check(ackline_address_parse(argv[3], &address), argv[3]);
    check(ackline_stack_new(argv[2], transmit, &tun, NULL, &stack), argv[2]);
    check(ackline_tcp_listen(stack, &address, NULL, 0, clock_now(), &listener), argv[3]);
    tun = open_tun(argv[1]);
    printf("listening on %s\n", argv[3]);
    fflush(stdout);

    while (!stopped) {
        static uint8_t packet[65536];
        ackline_event events[64];
        uint64_t deadline, now = clock_now();
        int count, full, i;
        ssize_t n;

        /* Everything that has come, all at one instant. */
        for (i = 0; i < 128 && (n = read(tun, packet, sizeof packet)) > 0; i++)
            ackline_stack_input(stack, packet, (size_t)n, now);
        /* Send, and answer what has happened, until nothing happens any more. */
        do {
            check(full = ackline_stack_poll(stack, now, &deadline), "poll");
            check(count = ackline_stack_events(stack, events, 64), "events");
            for (i = 0; i < count; i++) {
                if (events[i].socket == listener)
                    accept_all(stack, listener);
                else
                    serve(stack, events[i].socket, now);
            }
        } while (count > 0);
        /* Sleep until the next packet, room for one, or the deadline. */
        struct pollfd ready = {tun, (short)(POLLIN | (full ? POLLOUT : 0)), 0};
        struct timespec rest = {0, 0};
        now = clock_now();
        if (deadline > now) {
            rest.tv_sec = (time_t)((deadline - now) / 1000000000u);
            rest.tv_nsec = (long)((deadline - now) % 1000000000u);
        }
        ppoll(&ready, 1, deadline == UINT64_MAX ? NULL : &rest, &waiting);
    }

    ackline_stack_free(stack);
    while (clients != NULL) {
        client *next = clients->next;
        free(clients);
        clients = next;
    }
    return 0;
}
