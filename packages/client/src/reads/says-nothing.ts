import type { ErrorCode } from '@skerry/protocol/forms';

/** Somebody did not answer, had no room or time for the question, or failed at something of their own. */
const SILENT: ReadonlySet<string> = new Set<ErrorCode>([
  ...(['UPSTREAM_UNAVAILABLE', 'OVERLOADED', 'RATE_LIMITED', 'SHUTTING_DOWN', 'ROLE_ELSEWHERE'] as const),
  ...(['DATABASE_UNAVAILABLE', 'DATABASE_INCOMPATIBLE', 'STORAGE_UNAVAILABLE', 'STORAGE_FULL'] as const),
  ...(['IPFS_UNAVAILABLE', 'IPFS_TIMEOUT', 'REQUEST_TIMEOUT', 'TIMED_OUT', 'LIST_TOO_COSTLY'] as const),
  'INTERNAL',
]);

/** Whether a failure says nothing of what was to be checked: the same is asked again, and nobody is contradicted. */
export const saysNothing = ({ code }: { readonly code: string }): boolean => SILENT.has(code);
