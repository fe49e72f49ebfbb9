/**
 * What HAProxy does not do as the other planes do. The suite of data planes (`testing/suite.ts`) checks that each is so, and
 * fails where one is not any more; docs/gateway.md shows the list. Each is what happens, and why.
 */
export const HAPROXY_DIFFERENCES = {
  alerts:
    'Refused clients get no TLS alert: the connection ends, since HAProxy cannot send bytes of its own in TCP mode.',
  cut_hellos:
    'A ClientHello that is cut into several TLS records is refused: HAProxy reads the server name from the first record only. A hello of one record may come in any number of segments.',
  malformed:
    'A malformed hello is counted as one without a server name: HAProxy does not tell the two apart.',
  crowding_out:
    'Connections that never speak are not crowded out by others: HAProxy cannot end the oldest of them. They end after the time for a hello, and count towards the limits of their client and of the listener.',
  yielding:
    'Where no place is left, everybody is refused, also who has none: HAProxy cannot end the connections of those who have many. Lower `SKERRY_GATEWAY_MAX_CONNECTIONS_PER_CLIENT`, so that no few clients hold all.',
  orderly_ends:
    'Where the instance refuses, does not answer, resets or is idle, or the time of a drain is over, the client sees an orderly end in place of a reset. TLS itself tells a cut from an end.',
  unreachable:
    'In `why`, the last attempt to reach an address without a route is told as refused: HAProxy tells only refusals and timeouts. The test connection that `why` makes itself knows the difference.',
  late_changes:
    'A change of routes counts some milliseconds later: it goes through the admin socket, in order.',
} as const satisfies Record<string, string>;

export type Difference = keyof typeof HAPROXY_DIFFERENCES;
