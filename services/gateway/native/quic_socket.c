#define _GNU_SOURCE
#include "quic_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop.h"
#include "options.h"
#include "scarcity.h"
#include "stats.h"

enum { BUFFER_BYTES = 4 * 1024 * 1024 };
/* Of SO_MEMINFO: what the kernel calls SK_MEMINFO_DROPS, and how much there is (its header is not part of every C library). */
enum { MEMORY_DROPS = 8, MEMORY_NUMBERS };

static int sockets[MAX_LISTENERS];
static struct in6_addr addresses[MAX_LISTENERS];
static uint32_t dropped[MAX_LISTENERS];
static unsigned socket_count;

/* Of both families in the form of IPv6, so that one kind of socket serves both. */
static bool parse_host(const char *host, uint16_t port, struct sockaddr_in6 *out) {
  char mapped[INET6_ADDRSTRLEN];
  *out = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
  if (inet_pton(AF_INET6, host, &out->sin6_addr) == 1) return true;
  snprintf(mapped, sizeof mapped, "::ffff:%s", host);
  return inet_pton(AF_INET6, mapped, &out->sin6_addr) == 1;
}

/* Datagrams are passed on whole or not at all: their senders find out what fits (RFC 9000 section 14). */
static int open_datagrams(void) {
  int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  int off = 0, whole = IP_PMTUDISC_DO, whole6 = IPV6_PMTUDISC_DO;
  if (fd < 0) return -1;
  setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &whole6, sizeof whole6);
  setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof whole);
  return fd;
}

static int close_with_errno(int fd) {
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

static int open_bound(const struct sockaddr_in6 *address) {
  int fd = open_datagrams(), on = 1, bytes = BUFFER_BYTES;
  if (fd < 0) return -1;
  setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on);
  /* Beyond what the system lets everybody have, where we may: what comes in one burst is otherwise lost. */
  if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) < 0)
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  if (bind(fd, (const struct sockaddr *)address, sizeof *address) == 0) return fd;
  return close_with_errno(fd);
}

/* The one among them that is bound where we want to be. */
static int adopt(const struct sockaddr_in6 *wanted, int given[], int given_count) {
  for (int i = 0; i < given_count; i++) {
    struct sockaddr_in6 has = {0};
    socklen_t has_length = sizeof has, type_length = sizeof(int);
    int type = 0, fd = given[i];
    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_length) < 0 || type != SOCK_DGRAM) continue;
    if (getsockname(fd, (struct sockaddr *)&has, &has_length) < 0 || has.sin6_port != wanted->sin6_port) continue;
    if (memcmp(&has.sin6_addr, &wanted->sin6_addr, sizeof has.sin6_addr) != 0) continue;
    given[i] = -1;
    return fd;
  }
  return -1;
}

static void join_datagrams(int fd, int on) { setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof on); }

void quic_socket_tell_drops(int fd, int on) { setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on); }

uint32_t quic_socket_drops(int fd) {
  uint32_t memory[MEMORY_NUMBERS] = {0};
  socklen_t length = sizeof memory;
  getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &length);
  return memory[MEMORY_DROPS];
}

bool quic_socket_open(unsigned index, const char *host, uint16_t port, int given[], int given_count) {
  struct sockaddr_in6 address;
  if (!parse_host(host, port, &address)) return errno = EADDRNOTAVAIL, false;
  int fd = adopt(&address, given, given_count);
  if (fd < 0) fd = open_bound(&address);
  if (fd < 0) return false;
  /* Also of one that was given. */
  join_datagrams(fd, true);
  quic_socket_tell_drops(fd, true);
  if (!loop_watch(fd, EPOLLIN, (uint64_t)index << TAG_BITS | TAG_QUIC_SOCKET)) return close_with_errno(fd) >= 0;
  sockets[index] = fd;
  dropped[index] = quic_socket_drops(fd);
  addresses[index] = address.sin6_addr;
  socket_count = index + 1;
  return true;
}

void quic_socket_stop(void) {
  for (; socket_count > 0; socket_count--) {
    /* Another process may have the same socket: closing alone would leave it watched. */
    loop_forget(sockets[socket_count - 1]);
    close(sockets[socket_count - 1]);
  }
}

bool quic_socket_is_open(void) { return socket_count > 0; }

void quic_socket_tell_more(bool is_told) {
  for (unsigned i = 0; i < socket_count; i++) {
    join_datagrams(sockets[i], is_told);
    quic_socket_tell_drops(sockets[i], is_told);
  }
}

uint32_t quic_socket_room(uint8_t *is_scarce) {
  int bytes = 0;
  socklen_t length = sizeof bytes;
  if (socket_count > 0) getsockopt(sockets[0], SOL_SOCKET, SO_RCVBUF, &bytes, &length);
  *is_scarce = socket_count > 0 && bytes < BUFFER_BYTES;
  return (uint32_t)bytes;
}

struct in6_addr quic_socket_address(unsigned index) { return addresses[index]; }

int quic_socket_find(const struct in6_addr *address) {
  for (unsigned i = 0; i < socket_count; i++)
    if (memcmp(&addresses[i], address, sizeof *address) == 0) return (int)i;
  return -1;
}

unsigned quic_socket_descriptors(int fds[]) {
  memcpy(fds, sockets, socket_count * sizeof *fds);
  return socket_count;
}

/* Room for the address that a datagram came to, the size of those that the kernel has joined, and how many it has dropped. */
union origin {
  struct cmsghdr header;
  char room[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint32_t))];
};

/* Of datagrams that the kernel has joined: the size of all but the last, which is as large or smaller. */
static void read_segment(const struct cmsghdr *header, uint32_t *segment) {
  int size;
  if (header->cmsg_level != SOL_UDP || header->cmsg_type != UDP_GRO) return;
  memcpy(&size, CMSG_DATA(header), sizeof size);
  if (size > 0) *segment = (uint32_t)size;
}

/* What the kernel has dropped on the socket before what came now; it says nothing where there is nothing. */
static void count_drops(const struct cmsghdr *header, uint32_t *before, uint64_t *count) {
  uint32_t now;
  if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SO_RXQ_OVFL) return;
  memcpy(&now, CMSG_DATA(header), sizeof now);
  /* Several processors count. */
  if ((int32_t)(now - *before) <= 0) return;
  *count += now - *before;
  *before = now;
}

ssize_t quic_receive(unsigned index, struct quic_peer *peer, uint8_t *bytes, uint32_t capacity, uint32_t *segment) {
  if (index >= socket_count) return -1;
  struct sockaddr_in6 from;
  union origin origin;
  struct iovec part = {bytes, capacity};
  struct msghdr message = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &part, .msg_iovlen = 1,
                           .msg_control = &origin, .msg_controllen = sizeof origin};
  ssize_t size = recvmsg(sockets[index], &message, 0);
  if (size < 0) return -1;
  *segment = (uint32_t)size;
  *peer = (struct quic_peer){.address = from.sin6_addr, .port = from.sin6_port, .socket = (uint8_t)index};
  for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); at; at = CMSG_NXTHDR(&message, at)) {
    struct in6_pktinfo info;
    read_segment(at, segment);
    count_drops(at, &dropped[index], &stats->quic_dropped_to_instances);
    if (at->cmsg_level != IPPROTO_IPV6 || at->cmsg_type != IPV6_PKTINFO) continue;
    memcpy(&info, CMSG_DATA(at), sizeof info);
    peer->local = info.ipi6_addr;
  }
  return size;
}

/* Room for the address that datagrams are to come from, and their size where they are joined. */
union outgoing {
  struct cmsghdr header;
  char room[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(uint16_t))];
};

static void put_control(struct msghdr *message, int level, int type, const void *data, size_t size) {
  struct cmsghdr *header = (struct cmsghdr *)((char *)message->msg_control + message->msg_controllen);
  *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(size), .cmsg_level = level, .cmsg_type = type};
  memcpy(CMSG_DATA(header), data, size);
  message->msg_controllen += CMSG_SPACE(size);
}

/* To a client, or without one to where the socket leads; joined with one call. */
static bool send_joined(int fd, const struct quic_peer *peer, struct quic_batch batch) {
  struct sockaddr_in6 to = {.sin6_family = AF_INET6};
  union outgoing outgoing = {0};
  struct iovec part = {(void *)batch.bytes, batch.length};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &outgoing};
  if (peer) {
    struct in6_pktinfo info = {.ipi6_addr = peer->local};
    to.sin6_addr = peer->address;
    to.sin6_port = peer->port;
    message.msg_name = &to;
    message.msg_namelen = sizeof to;
    put_control(&message, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
  }
  if (batch.length > batch.segment) {
    uint16_t segment = (uint16_t)batch.segment;
    put_control(&message, SOL_UDP, UDP_SEGMENT, &segment, sizeof segment);
  }
  if (sendmsg(fd, &message, MSG_NOSIGNAL) >= 0) return true;
  /* That nobody takes an earlier one was told now, and only once: sent again, it is told by the socket's event. */
  return errno == ECONNREFUSED && sendmsg(fd, &message, MSG_NOSIGNAL) >= 0;
}

/* How many bytes went. What cannot be sent is lost, as datagrams are. */
static uint32_t send_batch(int fd, const struct quic_peer *peer, struct quic_batch batch) {
  if (send_joined(fd, peer, batch)) return batch.length;
  if (errno == EAGAIN || batch.length <= batch.segment) return 0;
  /* One is too large, or the way takes none that are joined: each by itself. */
  uint32_t sent = 0;
  for (uint32_t at = 0; at < batch.length; at += batch.segment) {
    uint32_t left = batch.length - at, size = left < batch.segment ? left : batch.segment;
    if (send_joined(fd, peer, (struct quic_batch){batch.bytes + at, size, size})) sent += size;
  }
  return sent;
}

void quic_answer(const struct quic_peer *peer, struct quic_batch batch) {
  if (peer->socket < socket_count) send_batch(sockets[peer->socket], peer, batch);
}

uint32_t quic_pass_on(int fd, struct quic_batch batch) { return send_batch(fd, NULL, batch); }

ssize_t quic_receive_joined(int fd, uint32_t *drops, uint8_t *bytes, uint32_t capacity, uint32_t *segment) {
  union origin origin;
  struct iovec part = {bytes, capacity};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &origin, .msg_controllen = sizeof origin};
  ssize_t size = recvmsg(fd, &message, 0);
  if (size < 0) return -1;
  *segment = (uint32_t)size;
  for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); at; at = CMSG_NXTHDR(&message, at)) {
    read_segment(at, segment);
    count_drops(at, drops, &stats->quic_dropped_to_clients);
  }
  return size;
}

int quic_connect(const uint8_t address[16], uint16_t port) {
  struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
  memcpy(&to.sin6_addr, address, sizeof to.sin6_addr);
  int fd = open_datagrams(), bytes = BUFFER_BYTES;
  if (fd < 0) {
    scarcity_note(errno);
    return -1;
  }
  join_datagrams(fd, true);
  quic_socket_tell_drops(fd, true);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0) return fd;
  return close_with_errno(fd);
}
