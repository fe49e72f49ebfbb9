/* Listeners: opening them, taking them over from a process that is replaced, and giving them away. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "plane.h"

enum { BACKLOG = 4096, ACCEPTS_PER_TURN = 64, PAUSE_MS = 50, KEEP_ALIVE_PROBE_S = 60, HANDOVER_TIMEOUT_S = 5, ASK_TIMEOUT_US = 200000 };

/* What a process that wants the listeners says: it replaces the one that has them, or it takes them only from an orphan. */
enum { ASK_REPLACE = 'R', ASK_ORPHAN = 'O' };

struct listener listeners[MAX_LISTENERS];
static int handover_fd = -1;
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

/* The listening sockets of the process that serves now, which stops accepting as it gives them. */
static int take_over(int fds[MAX_LISTENERS]) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), count = 0;
  if (fd < 0) return 0;
  struct timeval timeout = {HANDOVER_TIMEOUT_S, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  strncpy(address.sun_path, options.handover_path, sizeof address.sun_path - 1);
  char byte = options.replace ? ASK_REPLACE : ASK_ORPHAN;
  if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 && send(fd, &byte, 1, MSG_NOSIGNAL) == 1) {
    union {
      struct cmsghdr header;
      char room[CMSG_SPACE(sizeof(int) * MAX_LISTENERS)];
    } control;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    const struct cmsghdr *header;
    if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) == 1 && (header = CMSG_FIRSTHDR(&message)) &&
        header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
      count = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
      memcpy(fds, CMSG_DATA(header), (size_t)count * sizeof(int));
    }
  }
  close(fd);
  return count;
}

/* The socket among them that listens where `host` says. */
static int adopt(int fds[], int count, const char *host) {
  struct sockaddr_storage wanted, has;
  socklen_t length = parse_host(host, options.port, &wanted);
  for (int i = 0; i < count; i++) {
    socklen_t has_length = sizeof has;
    memset(&has, 0, sizeof has);
    if (fds[i] < 0 || getsockname(fds[i], (struct sockaddr *)&has, &has_length) < 0) continue;
    if (has_length != length || memcmp(&wanted, &has, length) != 0) continue;
    int fd = fds[i];
    fds[i] = -1;
    return fd;
  }
  return -1;
}

static bool watch(unsigned index) {
  struct epoll_event event = {EPOLLIN, {.u64 = (uint64_t)index << 2 | TAG_LISTENER}};
  return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listeners[index].fd, &event) == 0;
}

void listen_stop(void) {
  for (unsigned i = 0; i < options.host_count; i++) {
    if (listeners[i].fd < 0) continue;
    /* Another process may have the same socket: closing alone would leave it watched. */
    epoll_ctl(epoll_fd, EPOLL_CTL_DEL, listeners[i].fd, NULL);
    close(listeners[i].fd);
    listeners[i].fd = -1;
  }
  if (handover_fd >= 0) close(handover_fd);
  handover_fd = -1;
}

static bool open_all(uint16_t *port, int *error, unsigned *failed_host, int given[], int given_count) {
  for (unsigned i = 0; i < MAX_LISTENERS; i++) listeners[i].fd = -1;
  *port = options.port;
  for (unsigned i = 0; i < options.host_count; i++) {
    int fd = adopt(given, given_count, options.hosts[i]);
    if (fd < 0) fd = open_listener(options.hosts[i], *port);
    listeners[i].fd = fd;
    if (fd < 0 || !watch(i)) {
      *error = errno;
      *failed_host = i;
      listen_stop();
      return false;
    }
    *port = port_of(fd);
  }
  return true;
}

bool listen_all(uint16_t *port, int *error, unsigned *failed_host) {
  enum { TRIES = 10 };
  int given[MAX_LISTENERS], count = 0;
  if (options.handover_path && options.port != 0) count = take_over(given);
  bool opened = false;
  /* A port that the system chose for one address may be taken on another. */
  for (int tries = 0; !opened && tries < TRIES; tries++) {
    opened = open_all(port, error, failed_host, given, count);
    if (!opened && (options.port != 0 || *error != EADDRINUSE)) break;
  }
  for (int i = 0; i < count; i++)
    if (given[i] >= 0) close(given[i]);
  return opened;
}

/* Without descriptors there is nothing to accept into: a listener that stays readable would keep the loop spinning. */
void listen_pause(void) {
  for (unsigned i = 0; i < options.host_count; i++)
    if (listeners[i].fd >= 0) epoll_ctl(epoll_fd, EPOLL_CTL_DEL, listeners[i].fd, NULL);
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
  for (unsigned i = 0; i < options.host_count; i++)
    if (listeners[i].fd >= 0) watch(i);
}

void accept_from(unsigned index) {
  for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
    if (listeners[index].fd < 0) return;
    int fd = accept4(listeners[index].fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) listen_pause();
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return;
    }
    if (listeners[index].open >= options.max_connections) {
      stats->outcomes[TOO_MANY]++;
      close(fd);
    } else {
      conn_accepted(fd, index);
    }
  }
}

/* Offers the listeners to a process that replaces this one. */
void handover_serve(void) {
  if (!options.handover_path) return;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, options.handover_path, sizeof address.sun_path - 1);
  unlink(options.handover_path);
  mode_t mask = umask(077);
  handover_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  struct epoll_event event = {EPOLLIN, {.u64 = CONTROL_HANDOVER << 2 | TAG_CONTROL}};
  if (handover_fd >= 0 &&
      (bind(handover_fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(handover_fd, 1) < 0 ||
       epoll_ctl(epoll_fd, EPOLL_CTL_ADD, handover_fd, &event) < 0)) {
    close(handover_fd);
    handover_fd = -1;
  }
  umask(mask);
}

/* Whether they are given: then accepting is the other's, and what is open here ends here. */
bool handover_give(bool is_orphan) {
  int fd = accept4(handover_fd, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0) return false;
  struct timeval timeout = {0, ASK_TIMEOUT_US};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  char ask = 0;
  if (recv(fd, &ask, 1, 0) != 1 || (ask != ASK_REPLACE && !is_orphan)) {
    close(fd);
    return false;
  }
  struct ucred peer = {0};
  socklen_t length = sizeof peer;
  int fds[MAX_LISTENERS];
  unsigned count = 0;
  for (unsigned i = 0; i < options.host_count; i++)
    if (listeners[i].fd >= 0) fds[count++] = listeners[i].fd;
  bool given = false;
  if (count > 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid()) {
    union {
      struct cmsghdr header;
      char room[CMSG_SPACE(sizeof(int) * MAX_LISTENERS)];
    } control = {0};
    char byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = CMSG_SPACE(sizeof(int) * count)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int) * count), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(header), fds, sizeof(int) * count);
    given = sendmsg(fd, &message, MSG_NOSIGNAL) == 1;
  }
  close(fd);
  return given;
}
