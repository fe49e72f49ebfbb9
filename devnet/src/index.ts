export type { DevnetChain } from './chain/chain.ts';
export type { Daemon, DaemonEvent } from './daemon.ts';
export { type Devnet, type DevnetOptions, startDevnet } from './devnet.ts';
export { recordOf } from './event-record.ts';
export { CORES_MAX, type DaemonName, type DevnetUrls, daemonDataDir, START_ORDER } from './plan.ts';
export { choosePorts, type DevnetPorts, PORTS, type PortName } from './ports.ts';
export { type DevnetState, stopDevnet } from './stop.ts';
