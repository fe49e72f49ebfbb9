/*
 * Sends a UDP datagram over IPv4 in the name of another: spoof FROM PORT TO PORT BYTES [TIMES], with BYTES in hexadecimal. A raw socket
 * needs root.
 */
#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { MAX_BYTES = 2048, USAGE = 2 };

struct datagram {
  struct iphdr ip;
  struct udphdr udp;
  unsigned char bytes[MAX_BYTES];
};

int main(int count, char **arguments) {
  if (count < 6) return count == 1 ? 0 : USAGE;
  struct datagram datagram = {.ip = {.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP}};
  size_t length = 0;
  for (const char *at = arguments[5]; at[0] && at[1] && length < MAX_BYTES; at += 2) sscanf(at, "%2hhx", &datagram.bytes[length++]);
  struct sockaddr_in to = {.sin_family = AF_INET};
  if (inet_pton(AF_INET, arguments[1], &datagram.ip.saddr) != 1 || inet_pton(AF_INET, arguments[3], &to.sin_addr) != 1) return USAGE;
  datagram.ip.daddr = to.sin_addr.s_addr;
  /* Without a checksum, which IPv4 allows. */
  datagram.udp = (struct udphdr){.source = htons((uint16_t)atoi(arguments[2])), .dest = htons((uint16_t)atoi(arguments[4])),
                                 .len = htons((uint16_t)(sizeof datagram.udp + length))};
  int fd = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
  size_t size = sizeof datagram.ip + sizeof datagram.udp + length;
  for (int times = count > 6 ? atoi(arguments[6]) : 1; times > 0; times--)
    if (sendto(fd, &datagram, size, 0, (struct sockaddr *)&to, sizeof to) < 0) return perror("spoof"), 1;
  return 0;
}
