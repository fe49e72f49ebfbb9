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

enum { BUFFER_BYTES = 4 * 1024 * 1024 };

static int sockets[MAX_LISTENERS];
static struct in6_addr addresses[MAX_LISTENERS];
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

bool quic_socket_open(unsigned index, const char *host, uint16_t port, int given[], int given_count) {
  struct sockaddr_in6 address;
  if (!parse_host(host, port, &address)) return errno = EADDRNOTAVAIL, false;
  int fd = adopt(&address, given, given_count);
  if (fd < 0) fd = open_bound(&address);
  if (fd < 0) return false;
  if (!loop_watch(fd, EPOLLIN, (uint64_t)index << TAG_BITS | TAG_QUIC_SOCKET)) return close_with_errno(fd) >= 0;
  sockets[index] = fd;
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

/* Room for the address that a datagram came to, or is to come from. */
union origin {
  struct cmsghdr header;
  char room[CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

ssize_t quic_receive(unsigned index, struct quic_peer *peer, uint8_t *bytes, uint32_t capacity) {
  if (index >= socket_count) return -1;
  struct sockaddr_in6 from;
  union origin origin;
  struct iovec part = {bytes, capacity};
  struct msghdr message = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &part, .msg_iovlen = 1,
                           .msg_control = &origin, .msg_controllen = sizeof origin};
  ssize_t size = recvmsg(sockets[index], &message, 0);
  if (size < 0) return -1;
  *peer = (struct quic_peer){.address = from.sin6_addr, .port = from.sin6_port, .socket = (uint8_t)index};
  for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); at; at = CMSG_NXTHDR(&message, at)) {
    struct in6_pktinfo info;
    if (at->cmsg_level != IPPROTO_IPV6 || at->cmsg_type != IPV6_PKTINFO) continue;
    memcpy(&info, CMSG_DATA(at), sizeof info);
    peer->local = info.ipi6_addr;
  }
  return size;
}

/* Room for that and the size of datagrams that are joined. */
union outgoing {
  struct cmsghdr header;
  char room[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(uint16_t))];
};

static bool send_joined(const struct quic_peer *peer, struct quic_batch batch) {
  struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_addr = peer->address, .sin6_port = peer->port};
  union outgoing outgoing = {0};
  struct in6_pktinfo info = {.ipi6_addr = peer->local};
  uint16_t segment = (uint16_t)batch.segment;
  bool is_joined = batch.length > batch.segment;
  struct iovec part = {(void *)batch.bytes, batch.length};
  struct msghdr message = {.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &part, .msg_iovlen = 1,
                           .msg_control = &outgoing, .msg_controllen = sizeof outgoing};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof info), .cmsg_level = IPPROTO_IPV6, .cmsg_type = IPV6_PKTINFO};
  memcpy(CMSG_DATA(header), &info, sizeof info);
  if (is_joined) {
    header = CMSG_NXTHDR(&message, header);
    *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof segment), .cmsg_level = SOL_UDP, .cmsg_type = UDP_SEGMENT};
    memcpy(CMSG_DATA(header), &segment, sizeof segment);
  } else {
    message.msg_controllen = CMSG_SPACE(sizeof info);
  }
  return sendmsg(sockets[peer->socket], &message, MSG_NOSIGNAL) >= 0 || errno == EAGAIN;
}

void quic_answer(const struct quic_peer *peer, struct quic_batch batch) {
  if (peer->socket >= socket_count || send_joined(peer, batch)) return;
  /* One is too large, or the way takes none that are joined: each by itself. What cannot be sent is lost, as datagrams are. */
  for (uint32_t at = 0; batch.length > batch.segment && at < batch.length; at += batch.segment) {
    uint32_t left = batch.length - at, size = left < batch.segment ? left : batch.segment;
    send_joined(peer, (struct quic_batch){batch.bytes + at, size, size});
  }
}

ssize_t quic_receive_joined(int fd, uint8_t *bytes, uint32_t capacity, uint32_t *segment) {
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
  } joined;
  struct iovec part = {bytes, capacity};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &joined, .msg_controllen = sizeof joined};
  ssize_t size = recvmsg(fd, &message, 0);
  if (size < 0) return -1;
  *segment = (uint32_t)size;
  for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); at; at = CMSG_NXTHDR(&message, at)) {
    int joined_size;
    if (at->cmsg_level != SOL_UDP || at->cmsg_type != UDP_GRO) continue;
    memcpy(&joined_size, CMSG_DATA(at), sizeof joined_size);
    if (joined_size > 0) *segment = (uint32_t)joined_size;
  }
  return size;
}

int quic_connect(const uint8_t address[16], uint16_t port) {
  struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
  memcpy(&to.sin6_addr, address, sizeof to.sin6_addr);
  int fd = open_datagrams(), on = 1, bytes = BUFFER_BYTES;
  if (fd < 0) return -1;
  setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0) return fd;
  return close_with_errno(fd);
}
