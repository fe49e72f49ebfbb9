import type { HostExamination } from '@skerry/compute';
import type { InfoView } from '@skerry/protocol/api/core/node';
import type { ReachabilityVerdict } from '@skerry/protocol/api/core/reachability';
import type { ListenPort, RoleSettings } from '../joining/roles.ts';

/** What was gathered; what it means is decided elsewhere (decide.ts). */
export interface MachineFacts {
  readonly platform: string;
  readonly nodeVersion: string;
  readonly isRoot: boolean;
  readonly memoryMib: number;
  /** Of the disk that the data will be on. */
  readonly diskFreeGib: number;
  /** Whether this user can write there. */
  readonly isDataWritable: boolean;
  readonly keys: readonly { readonly path: string; readonly mode: number }[];
  /** Of a compute node. */
  readonly host: HostExamination | undefined;
  /** Programs that the role runs and that are not there, each with its Debian package. */
  readonly missingPrograms: readonly (readonly [program: string, debianPackage: string])[];
}

export interface PortFacts extends ListenPort {
  readonly state: 'free' | 'taken' | 'forbidden' | 'absent';
}

export interface NetworkFacts {
  readonly url: string;
  /** Why it does not answer, where it does not. */
  readonly failure: string | undefined;
  readonly info: InfoView | undefined;
  /** How far this server's clock is ahead of the core node's, in seconds; undefined where it does not say. */
  readonly clockSeconds: number | undefined;
}

export interface Attempt {
  /** A URL or a /64. */
  readonly place: string;
  /** `UNASKED`: nobody could be asked; `why` says so. */
  readonly verdict: ReachabilityVerdict | 'UNASKED';
  readonly why?: string;
  readonly seenAs: string | null;
}

/** Whether a core node of this server itself was asked: what it sees, nobody outside has to. */
export const isFromInside = ({ seenAs }: Pick<Attempt, 'seenAs'>): boolean =>
  seenAs !== null && /^(127\.|::1$)/.test(seenAs);

export interface NameFacts {
  readonly name: string;
  readonly addresses: readonly string[];
}

export interface Facts {
  readonly settings: RoleSettings;
  readonly machine: MachineFacts;
  readonly ports: readonly PortFacts[];
  /** How whoever reads this names another core node to the command that asked. */
  readonly another: string;
  /** The role's daemon answers already. */
  readonly isRunning: boolean;
  readonly network: NetworkFacts | undefined;
  /** Addresses of this server's interfaces. */
  readonly ownAddresses: readonly string[];
  readonly places: readonly Attempt[];
  readonly prefix: Attempt | undefined;
  /** A name that should lead here: the host of the URL, or one below the gateway's domain. */
  readonly name: NameFacts | undefined;
}
