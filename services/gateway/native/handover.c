#define _GNU_SOURCE
#include "handover.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "loop.h"

/* Who asks waits for all that is open to have its turn. Who gives waits for one word at a time, and nothing is relayed meanwhile. */
enum { ASKING_TIMEOUT_S = 5, GIVING_TIMEOUT_S = 2 };

/*
 * What a process that wants the listeners says: it replaces the one that has them, or it takes them only from an orphan. When it
 * listens with them it says so, and the other answers as it stops. One that ends before has changed nothing.
 */
enum { ASK_REPLACE = 'R', ASK_ORPHAN = 'O', TAKEN = 'T', STOPPED = 'S' };

/* Room for as many descriptors as can be sent (cmsg(3)). */
union rights {
  struct cmsghdr header;
  char room[CMSG_SPACE(sizeof(int) * MAX_HANDED)];
};

static void (*give_more)(int fd), (*take_more)(int fd);
static int handover_fd = -1;
static int asking_fd = -1;

static struct sockaddr_un own_address(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, options.handover_path, sizeof address.sun_path - 1);
  return address;
}

static int receive_descriptors(int fd, int fds[MAX_HANDED]) {
  char byte;
  union rights rights;
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof rights};
  if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) != 1) return 0;
  const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) return 0;
  size_t bytes = header->cmsg_len - CMSG_LEN(0);
  memcpy(fds, CMSG_DATA(header), bytes);
  return (int)(bytes / sizeof(int));
}

static bool send_descriptors(int fd, const int fds[], unsigned count) {
  char byte = 0;
  union rights rights = {0};
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &rights,
                           .msg_controllen = CMSG_SPACE(sizeof(int) * count)};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int) * count), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  memcpy(CMSG_DATA(header), fds, sizeof(int) * count);
  return sendmsg(fd, &message, MSG_NOSIGNAL) == 1;
}

void handover_carries(void (*give)(int fd), void (*take)(int fd)) {
  give_more = give;
  take_more = take;
}

static void set_timeout(int fd, long seconds) {
  struct timeval timeout = {seconds, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
}

static bool say(int fd, char word) { return send(fd, &word, 1, MSG_NOSIGNAL) == 1; }

/* 0 where nothing comes in time. */
static char hear(int fd) {
  char word = 0;
  return recv(fd, &word, 1, 0) == 1 ? word : 0;
}

static void stop_asking(void) {
  if (asking_fd >= 0) close(asking_fd);
  asking_fd = -1;
}

int handover_take(int fds[MAX_HANDED]) {
  if (!options.handover_path) return 0;
  struct sockaddr_un address = own_address();
  int count = 0;
  asking_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (asking_fd < 0) return 0;
  set_timeout(asking_fd, ASKING_TIMEOUT_S);
  if (connect(asking_fd, (struct sockaddr *)&address, sizeof address) == 0 &&
      say(asking_fd, options.replace ? ASK_REPLACE : ASK_ORPHAN))
    count = receive_descriptors(asking_fd, fds);
  if (count == 0) stop_asking();
  return count;
}

bool handover_finish(bool taken) {
  bool alone = asking_fd < 0 || (taken && say(asking_fd, TAKEN) && hear(asking_fd) == STOPPED);
  if (asking_fd >= 0 && alone) take_more(asking_fd);
  stop_asking();
  return alone;
}

void handover_serve(uint64_t data) {
  if (!options.handover_path) return;
  struct sockaddr_un address = own_address();
  unlink(options.handover_path);
  mode_t mask = umask(077);
  handover_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (handover_fd >= 0 &&
      (bind(handover_fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(handover_fd, 1) < 0 ||
       !loop_watch(handover_fd, EPOLLIN, data)))
    handover_stop();
  umask(mask);
}

void handover_stop(void) {
  if (handover_fd >= 0) close(handover_fd);
  handover_fd = -1;
}

static bool may_ask(int fd, bool is_orphan) {
  struct ucred peer = {0};
  socklen_t length = sizeof peer;
  char ask = hear(fd);
  if (ask != ASK_REPLACE && !(ask == ASK_ORPHAN && is_orphan)) return false;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

bool handover_give(const int fds[], unsigned count, bool is_orphan) {
  int fd = accept4(handover_fd, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0) return false;
  set_timeout(fd, GIVING_TIMEOUT_S);
  bool taken = count > 0 && may_ask(fd, is_orphan) && send_descriptors(fd, fds, count) && hear(fd) == TAKEN &&
               say(fd, STOPPED);
  if (taken) give_more(fd);
  close(fd);
  return taken;
}
