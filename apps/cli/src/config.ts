/** The only file of the command that reads the environment. Kept free of imports that are slow to load. */
export type Environment = Readonly<Record<string, string | undefined>>;

export const readEnvironment = (): Environment => process.env;

/** What the command itself understands; none of them is a daemon's setting. */
export const COMMAND_VARIABLES = {
  coreUrl: 'SKERRY_CORE_URL',
  gatewayUrl: 'SKERRY_GATEWAY_URL',
  schedulerUrl: 'SKERRY_SCHEDULER_URL',
  creditUrl: 'SKERRY_CREDIT_URL',
  statusUrl: 'SKERRY_STATUS_URL',
  computeUrl: 'SKERRY_COMPUTE_URL',
  network: 'SKERRY_NETWORK',
  keyName: 'SKERRY_KEY',
} as const;

// Not "localhost": a machine whose only other addresses are IPv6 (offline, with the interfaces of virtual machines) may not
// find its IPv4 address by that name (getaddrinfo(3), AI_ADDRCONFIG).
export const DEFAULT_CORE_URL = 'http://127.0.0.1:4024';
export const DEFAULT_KEY_NAME = 'default';

/** For the daemons, which refuse variables with their prefix that are not their settings. */
export function withoutCommandVariables(environment: Environment): Environment {
  const own = new Set<string>(Object.values(COMMAND_VARIABLES));
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !own.has(name)));
}
