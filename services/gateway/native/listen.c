#define _GNU_SOURCE
#include "listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "handover.h"
#include "loop.h"
#include "quic_socket.h"
#include "scarcity.h"

enum { BACKLOG = 4096, ACCEPTS_PER_TURN = 64, PAUSE_MS = 50, KEEP_ALIVE_PROBE_S = 60 };

static struct {
  int fd; /* -1 for none */
  uint32_t open;
} listeners[MAX_LISTENERS];
static bool paused;
static uint32_t paused_at_ms;

static socklen_t parse_host(const char *host, uint16_t port, struct sockaddr_storage *out) {
  struct sockaddr_in *four = (struct sockaddr_in *)out;
  struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
  memset(out, 0, sizeof *out);
  if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    return sizeof *four;
  }
  if (inet_pton(AF_INET6, host, &six->sin6_addr) != 1) return 0;
  six->sin6_family = AF_INET6;
  six->sin6_port = htons(port);
  return sizeof *six;
}

static uint16_t port_of(int fd) {
  struct sockaddr_storage address = {0};
  socklen_t length = sizeof address;
  getsockname(fd, (struct sockaddr *)&address, &length);
  return ntohs(((struct sockaddr_in *)&address)->sin_port); /* the same place in both families */
}

static int open_listener(const char *host, uint16_t port) {
  struct sockaddr_storage address;
  socklen_t length = parse_host(host, port, &address);
  if (length == 0) return errno = EADDRNOTAVAIL, -1;
  int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  int on = 1, off = 0, idle = KEEP_ALIVE_PROBE_S;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (options.share_port) setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  if (address.ss_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  /* Accepted connections inherit these. */
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  if (bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, BACKLOG) == 0) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

/* The socket among them that listens where `host` says. */
static int adopt(int fds[], int count, const char *host) {
  struct sockaddr_storage wanted, has;
  socklen_t length = parse_host(host, options.port, &wanted);
  for (int i = 0; i < count; i++) {
    socklen_t has_length = sizeof has;
    memset(&has, 0, sizeof has);
    int type = 0;
    socklen_t type_length = sizeof type;
    if (fds[i] < 0 || getsockopt(fds[i], SOL_SOCKET, SO_TYPE, &type, &type_length) < 0 || type != SOCK_STREAM) continue;
    if (getsockname(fds[i], (struct sockaddr *)&has, &has_length) < 0) continue;
    if (has_length != length || memcmp(&wanted, &has, length) != 0) continue;
    int fd = fds[i];
    fds[i] = -1;
    return fd;
  }
  return -1;
}

static bool watch(unsigned index) {
  return loop_watch(listeners[index].fd, EPOLLIN, (uint64_t)index << TAG_BITS | TAG_LISTENER);
}

void listen_stop(void) {
  quic_socket_stop();
  for (unsigned i = 0; i < options.host_count; i++) {
    if (listeners[i].fd < 0) continue;
    /* Another process may have the same socket: closing alone would leave it watched. */
    loop_forget(listeners[i].fd);
    close(listeners[i].fd);
    listeners[i].fd = -1;
  }
}

static bool fail(struct listen_failure *failure, unsigned host) {
  *failure = (struct listen_failure){.error = errno, .host = (uint8_t)host};
  listen_stop();
  return false;
}

/* Where QUIC may be missing it is, on all addresses, if one of them cannot have it. */
static bool open_quic(struct listening *opened, unsigned host, bool may_be_missing, int given[], int given_count) {
  if (options.quic == QUIC_NO || opened->quic_error != 0) return true;
  if (quic_socket_open(host, options.hosts[host], opened->port, given, given_count)) return true;
  if (!may_be_missing) return false;
  opened->quic_error = errno;
  quic_socket_stop();
  return true;
}

static bool open_all(struct listening *opened, struct listen_failure *failure, bool quic_may_be_missing, int given[], int given_count) {
  for (unsigned i = 0; i < MAX_LISTENERS; i++) listeners[i].fd = -1;
  *opened = (struct listening){.port = options.port};
  for (unsigned i = 0; i < options.host_count; i++) {
    int fd = adopt(given, given_count, options.hosts[i]);
    if (fd < 0) fd = open_listener(options.hosts[i], opened->port);
    listeners[i].fd = fd;
    if (fd < 0 || !watch(i)) return fail(failure, i);
    opened->port = port_of(fd);
    if (!open_quic(opened, i, quic_may_be_missing, given, given_count)) return fail(failure, i);
  }
  opened->quic_room_bytes = quic_socket_room(&opened->is_room_scarce);
  return true;
}

bool listen_all(struct listening *opened, struct listen_failure *failure) {
  enum { TRIES = 10 };
  int given[MAX_HANDED], count = 0;
  if (options.port != 0) count = handover_take(given);
  bool is_open = false;
  /* A port that the system chose for one address, or for TCP, may be taken on another, or for UDP. */
  for (int left = options.port == 0 ? TRIES : 1; !is_open && left > 0; left--) {
    is_open = open_all(opened, failure, options.quic == QUIC_IF_POSSIBLE && left == 1, given, count);
    if (!is_open && failure->error != EADDRINUSE && (options.quic != QUIC_IF_POSSIBLE)) break;
  }
  if (!handover_finish(is_open) && is_open) {
    errno = ETIMEDOUT;
    is_open = fail(failure, 0);
  }
  for (int i = 0; i < count; i++)
    if (given[i] >= 0) close(given[i]);
  return is_open;
}

/* Without descriptors there is nothing to accept into: a listener that stays readable would keep the loop spinning. */
static void pause_all(void) {
  for (unsigned i = 0; i < options.host_count; i++)
    if (listeners[i].fd >= 0) loop_forget(listeners[i].fd);
  paused = true;
  paused_at_ms = now_ms;
}

uint32_t listen_resume_in_ms(void) {
  if (!paused) return UINT32_MAX;
  uint32_t passed = now_ms - paused_at_ms;
  return passed >= PAUSE_MS ? 0 : PAUSE_MS - passed;
}

void listen_resume_when_due(void) {
  if (listen_resume_in_ms() > 0) return;
  paused = false;
  for (unsigned i = 0; i < options.host_count; i++) {
    if (listeners[i].fd < 0 || watch(i)) continue;
    /* The system lacks still more: a listener that is not watched would never be heard of again. */
    pause_all();
    return;
  }
}

void listen_accept(unsigned index, void (*accepted)(int fd, unsigned listener)) {
  for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
    if (listeners[index].fd < 0) return;
    int fd = accept4(listeners[index].fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (scarcity_note(errno) || errno == ENOBUFS || errno == ENOMEM) pause_all();
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return;
    }
    accepted(fd, index);
  }
}

bool listen_is_full(unsigned index) { return listeners[index].open >= options.max_connections; }
void listen_entered(unsigned index) { listeners[index].open++; }
void listen_left(unsigned index) { listeners[index].open--; }

unsigned listen_descriptors(int fds[MAX_HANDED]) {
  unsigned count = 0;
  for (unsigned i = 0; i < options.host_count; i++)
    if (listeners[i].fd >= 0) fds[count++] = listeners[i].fd;
  return count + quic_socket_descriptors(fds + count);
}
