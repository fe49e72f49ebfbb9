/** What a core node answers, or nobody, where something cannot be told or given now, and may be later. */
export const AWAY: ReadonlySet<string> = new Set([
  'OVERLOADED',
  'RATE_LIMITED',
  'SHUTTING_DOWN',
  'ROLE_ELSEWHERE',
  'UPSTREAM_UNAVAILABLE',
  'UNEXPECTED_ANSWER',
  'DATABASE_UNAVAILABLE',
  'STORAGE_UNAVAILABLE',
  'IPFS_UNAVAILABLE',
]);
