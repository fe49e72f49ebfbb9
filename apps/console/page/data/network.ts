import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { linkTo } from '../pure/route.ts';
import type { Info } from './answers.ts';

/** The core node that everything begins at: the one that serves this page, or the one that `?core=` names. */
export const CORE_URL = (new URLSearchParams(location.search).get('core') ?? location.origin).replace(
  /\/+$/,
  '',
);

export interface Network {
  readonly coreUrl: string;
  /** Undefined while the core node did not answer. */
  readonly info: Info | undefined;
}

export const NetworkContext = createContext<Network>({ coreUrl: CORE_URL, info: undefined });
export const useNetwork = () => useContext(NetworkContext);

type ServiceName = 'gateway' | 'scheduler' | 'credit' | 'status';

/** Where a service of the network is, by the core node's word; null: it does not say, undefined: not known yet. */
export function serviceUrl({ info }: Network, name: ServiceName): string | null | undefined {
  if (!info) return undefined;
  return info.services?.[name]?.replace(/\/+$/, '') ?? null;
}

export const nodeLink = (nodeId: string) => linkTo(['nodes', nodeId]);
export const machineLink = (id: string) => linkTo(['machines', id]);
export const messageLink = (hash: string) => linkTo(['messages', hash]);
