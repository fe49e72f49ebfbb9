/** A kubo daemon's RPC address to run the suite of IPFS against; undefined where the tests' own stands in. */
export function readTestKuboUrl(): string | undefined {
  return process.env.SKERRY_TEST_KUBO_URL || undefined;
}
