/* PROXY protocol, version 2 (haproxy's proxy-protocol.txt, section 2.2): who the client is, ahead of its bytes. */
#pragma once
#include <stdint.h>

enum { MAX_PROXY_HEADER_BYTES = 16 + 36 };

/* Returns the header's length. */
uint32_t proxy_header(int client_fd, uint8_t out[MAX_PROXY_HEADER_BYTES]);
