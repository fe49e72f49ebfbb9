#include "proxy.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

static const uint8_t SIGNATURE[12] = "\r\n\r\n\0\r\nQUIT\n";
enum { VERSION_2_PROXY = 0x21, TCP_OVER_IPV4 = 0x11, TCP_OVER_IPV6 = 0x21 };

/* An address as 16 bytes of IPv6, with its port; IPv4 mapped. */
static void widen(const struct sockaddr_storage *from, uint8_t address[16], uint16_t *port) {
  memset(address, 0, 16);
  if (from->ss_family == AF_INET6) {
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)from;
    memcpy(address, &six->sin6_addr, 16);
    *port = six->sin6_port;
  } else {
    const struct sockaddr_in *four = (const struct sockaddr_in *)from;
    address[10] = address[11] = 0xff;
    memcpy(address + 12, &four->sin_addr, 4);
    *port = four->sin_port;
  }
}

uint32_t proxy_header(int client_fd, uint8_t out[MAX_PROXY_HEADER_BYTES]) {
  struct sockaddr_storage peer = {0}, self = {0};
  socklen_t length = sizeof peer;
  getpeername(client_fd, (struct sockaddr *)&peer, &length);
  length = sizeof self;
  getsockname(client_fd, (struct sockaddr *)&self, &length);
  uint8_t addresses[2][16];
  uint16_t ports[2];
  widen(&peer, addresses[0], &ports[0]);
  widen(&self, addresses[1], &ports[1]);
  bool is_ipv4 = IN6_IS_ADDR_V4MAPPED((struct in6_addr *)addresses[0]) &&
                 IN6_IS_ADDR_V4MAPPED((struct in6_addr *)addresses[1]);
  uint32_t size = is_ipv4 ? 4 : 16, at = 16;
  memcpy(out, SIGNATURE, 12);
  out[12] = VERSION_2_PROXY;
  out[13] = is_ipv4 ? TCP_OVER_IPV4 : TCP_OVER_IPV6;
  out[14] = 0;
  out[15] = (uint8_t)(2 * size + 4);
  for (int i = 0; i < 2; i++, at += size) memcpy(out + at, addresses[i] + 16 - size, size);
  memcpy(out + at, ports, 4);
  return at + 4;
}
