/**
 * Which receivers are slow, and how much of the kernel's memory slow ones may hold together: the same for both data planes. native/layout.h
 * has it from here.
 */
export const STALL_RULE = {
  /** Any connection may have on its way. */
  fewBytes: 256 * 1024,
  /** The same where all of TCP has more than stalled ones may have: so many connections may be open that little of each is much. */
  fewScarceBytes: 16 * 1024,
  /** Who would need as long for what waits is slow. */
  slowMs: 8_000,
  /** Who does not take as much */
  movingBytes: 32 * 1024,
  /** in this time is stalled: a phone on a bad way takes six times that. */
  stalledMs: 4_000,
  /** Of what all of TCP may have before the kernel saves (the first number of tcp_mem), stalled ones have one of so many parts; */
  tcpParts: 2,
  /** so many times that with those who read: they drain, and many may be behind one address. */
  readingTimes: 2,
  /** Where the system does not tell what TCP may have, it is one of so many parts of the machine's memory: the kernel's own choice is 3/64. */
  memoryParts: 22,
  /** Whose connections end in one look. */
  mostNetworks: 16,
} as const;
