/*
 * Many clients of a gateway on this machine, for the tests: crowd PORT COUNT KIND HELLO, where HELLO is a ClientHello in
 * hexadecimal and KIND is what each does with it. Says how many are open, and ends them when its standard input ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PER_ADDRESS = 200, FLOOD_BYTES = 1 << 20, MAX_HELLO_BYTES = 65536, USAGE = 2 };

static unsigned char hello[MAX_HELLO_BYTES], zeros[65536];
static size_t hello_length;

static int open_client(unsigned index, uint16_t port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  /* One address has too few ports for all, and counts as one client. */
  uint32_t source = 0x7f010001u + index / PER_ADDRESS;
  struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(source)};
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(0x7f000001)};
  if (bind(fd, (struct sockaddr *)&from, sizeof from) == 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0) return fd;
  close(fd);
  return -1;
}

static void speak(int fd, unsigned index, const char *kind) {
  if (strcmp(kind, "silent") == 0) return;
  size_t length = strcmp(kind, "part") == 0 ? 1 + index % (hello_length - 1) : hello_length;
  send(fd, hello, length, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (strcmp(kind, "flood") != 0) return;
  ssize_t sent;
  size_t all = 0;
  while (all < FLOOD_BYTES && (sent = send(fd, zeros, sizeof zeros, MSG_NOSIGNAL | MSG_DONTWAIT)) > 0) all += (size_t)sent;
}

static void end_client(int fd, unsigned index, const char *kind) {
  struct linger abrupt = {1, 0};
  /* An orderly end behind bytes that nobody reads would wait until that is too long. */
  if (index % 2 || strcmp(kind, "flood") == 0) setsockopt(fd, SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt);
  close(fd);
}

int main(int count, char **arguments) {
  if (count != 5) return USAGE;
  uint16_t port = (uint16_t)atoi(arguments[1]);
  unsigned wanted = (unsigned)atoi(arguments[2]), opened = 0;
  for (const char *at = arguments[4]; at[0] && at[1] && hello_length < MAX_HELLO_BYTES; at += 2)
    sscanf(at, "%2hhx", &hello[hello_length++]);
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  int *clients = calloc(wanted, sizeof *clients);
  if (!clients || hello_length < 2) return USAGE;
  for (unsigned i = 0; i < wanted; i++) {
    if ((clients[i] = open_client(i, port)) < 0) continue;
    opened++;
    speak(clients[i], i, arguments[3]);
  }
  printf("%u\n", opened);
  fflush(stdout);
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) continue;
  for (unsigned i = 0; i < wanted; i++)
    if (clients[i] >= 0) end_client(clients[i], i, arguments[3]);
  return 0;
}
