export const DAEMON_NAMES = [
  'core',
  'scheduler',
  'compute',
  'gateway',
  'monitor',
  'status',
  'credit',
  'ipfs',
] as const;
export type DaemonName = (typeof DAEMON_NAMES)[number];
