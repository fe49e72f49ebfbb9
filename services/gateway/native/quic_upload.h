/* What clients send to instances, on its way: datagrams of one flow that come together go on together. */
#pragma once
#include "quic_flow.h"

/* Where the next datagrams are to be received, so that those that wait can be continued there: room for one call's. */
uint8_t *quic_upload_room(void);
/* Lets a datagram go on that lies in that room, now or with those that follow. Until it has gone, its flow must not end. */
void quic_upload_add(struct quic_flow *flow, const uint8_t *bytes, uint32_t length);
/* One that lies elsewhere, at once. */
void quic_upload_send(struct quic_flow *flow, struct quic_batch batch);
/* Nothing waits any more. */
void quic_upload_flush(void);
