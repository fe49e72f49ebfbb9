/** A PostgreSQL server for tests to make their databases on; undefined where each test process starts one of its own. */
export function readTestServerUrl(): string | undefined {
  return process.env.SKERRY_TEST_DATABASE_URL || undefined;
}
