/* listen.c alone, in a loop that cannot watch for a while: whether its listener is watched again. */
#include <arpa/inet.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../../native/handover.h"
#include "../../../../native/listen.h"
#include "../../../../native/loop.h"
#include "../../../../native/options.h"
#include "../../../../native/quic_socket.h"
#include "../../../../native/stats.h"

enum { DESCRIPTORS = 64, LATER_MS = 1000 };

struct options options = {.hosts = {"127.0.0.1"}, .host_count = 1, .max_connections = 1};
uint32_t now_ms;
static struct shared_stats figures;
struct shared_stats *stats = &figures;
static bool is_scarce;
static int watched;

bool loop_watch(int fd, uint32_t events, uint64_t data) {
  (void)fd, (void)events, (void)data;
  if (is_scarce) return false;
  watched++;
  return true;
}

void loop_forget(int fd) {
  (void)fd;
  watched = 0;
}

int handover_take(int fds[MAX_HANDED]) {
  (void)fds;
  return 0;
}

bool handover_finish(bool taken) { return taken; }

bool quic_socket_open(unsigned index, const char *host, uint16_t port, int given[], int given_count) {
  (void)index, (void)host, (void)port, (void)given, (void)given_count;
  return false;
}

void quic_socket_stop(void) {}

uint32_t quic_socket_room(uint8_t *is_room_scarce) {
  *is_room_scarce = 0;
  return 0;
}

unsigned quic_socket_descriptors(int fds[]) {
  (void)fds;
  return 0;
}

static void accepted(int fd, unsigned listener) {
  (void)listener;
  close(fd);
}

static void resume_later(void) {
  now_ms += LATER_MS;
  listen_resume_when_due();
  printf("%s, %d watched\n", listen_resume_in_ms() == UINT32_MAX ? "listens" : "waits", watched);
}

int main(int count, char **arguments) {
  (void)arguments;
  if (count == 1) return 0;
  struct listening opened;
  struct listen_failure failure;
  if (!listen_all(&opened, &failure)) return 1;
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(opened.port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  int client = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(client, (struct sockaddr *)&to, sizeof to) != 0) return 1;
  const struct rlimit few = {DESCRIPTORS, DESCRIPTORS};
  if (setrlimit(RLIMIT_NOFILE, &few) != 0) return 1;
  while (dup(client) >= 0) continue;
  listen_accept(0, accepted);
  is_scarce = true;
  resume_later();
  is_scarce = false;
  resume_later();
  return 0;
}
