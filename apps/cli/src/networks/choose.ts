import type { NetworkService } from '@skerry/protocol/api/core/node';
import { AppError } from '@skerry/protocol/forms';
import { COMMAND_VARIABLES, DEFAULT_KEY_NAME, type Environment } from '../config.ts';
import type { GlobalOptions } from '../options.ts';
import type { Output } from '../output/output.ts';
import { isServiceUrl } from './service-url.ts';
import { getNetwork, LOCAL, type Network, type Networks } from './store.ts';

/** Which network a command works on. Pure: option before environment before current network before the local one. */

export interface ChosenNetwork {
  /** Undefined where an option named a core node, or a variable another one than that of the network that holds without it. */
  readonly name: string | undefined;
  /** What is known of it beside its core node. */
  readonly network: Network;
  /** Whether an option or variable named the core node or the network. */
  readonly isNamed: boolean;
  /** Whether a variable named the network, and no option anything. */
  readonly isByVariable: boolean;
  readonly keyName: string;
  /** Services that a variable names. */
  readonly given: Partial<Record<NetworkService | 'compute', string>>;
  /** Variables that beat the network that would be used without them. */
  readonly beats: string | undefined;
  /** The same where somebody chose that network, so that every command says it. */
  readonly warning: string | undefined;
}

const SERVICE_VARIABLES: Readonly<Record<NetworkService | 'compute', string>> = {
  gateway: COMMAND_VARIABLES.gatewayUrl,
  scheduler: COMMAND_VARIABLES.schedulerUrl,
  credit: COMMAND_VARIABLES.creditUrl,
  status: COMMAND_VARIABLES.statusUrl,
  compute: COMMAND_VARIABLES.computeUrl,
};

function checkUrl(url: string, variable: string): string {
  // It is not repeated: a password may stand in it.
  if (!isServiceUrl(url))
    throw new AppError(
      'INVALID_CONFIG',
      `${variable} must be an http or https URL, without a user name or password`,
    );
  return url.replace(/\/+$/, '');
}

const readUrl = (environment: Environment, variable: string) => {
  const text = environment[variable];
  return text ? checkUrl(text, variable) : undefined;
};

/** Services that variables name. An option that names the network or its core node beats them all. */
function readGiven(options: GlobalOptions, environment: Environment): ChosenNetwork['given'] {
  const isBeaten = options.network !== undefined || options.core !== undefined;
  const found = Object.entries(SERVICE_VARIABLES).flatMap(([service, variable]) => {
    const url = isBeaten ? undefined : readUrl(environment, variable);
    return url === undefined ? [] : [[service, url] as const];
  });
  const { gateway } = options;
  return { ...Object.fromEntries(found), ...(gateway === undefined ? {} : { gateway }) };
}

/** The network that holds where nothing else is said, for whatever the environment says of its core node. */
function findDefault({ environment, networks }: Sources): { name: string; network: Network } {
  const name = environment[COMMAND_VARIABLES.network] || networks.current || LOCAL;
  return { name, network: getNetwork(networks, name) };
}

interface Sources {
  readonly options: GlobalOptions;
  readonly environment: Environment;
  readonly networks: Networks;
}

interface Found {
  readonly name: string | undefined;
  readonly network: Network;
  readonly isNamed: boolean;
}

function find({ options, environment, networks }: Sources, usual: { name: string; network: Network }): Found {
  if (options.core !== undefined) {
    if (options.network !== undefined)
      throw new AppError('INVALID_PARAMETERS', 'use --core or --network, not both');
    return { name: undefined, network: { core: options.core }, isNamed: true };
  }
  if (options.network !== undefined)
    return { name: options.network, network: getNetwork(networks, options.network), isNamed: true };
  const coreUrl = readUrl(environment, COMMAND_VARIABLES.coreUrl);
  if (coreUrl !== undefined && coreUrl !== usual.network.core)
    return { name: undefined, network: { core: coreUrl }, isNamed: true };
  return { ...usual, isNamed: coreUrl !== undefined || Boolean(environment[COMMAND_VARIABLES.network]) };
}

/** What a person might not expect of this shell. */
function beatsOf(
  { options, environment }: Sources,
  usual: { name: string },
  { name }: Found,
  given: ChosenNetwork['given'],
): string | undefined {
  if (options.core !== undefined || options.network !== undefined) return undefined;
  const services = Object.keys(given).filter(
    (service) => service !== 'gateway' || options.gateway === undefined,
  );
  const variables = [
    ...(name === undefined ? [COMMAND_VARIABLES.coreUrl] : []),
    ...services.map((service) => SERVICE_VARIABLES[service as NetworkService]),
  ];
  if (variables.length === 0) return undefined;
  const told = variables.map((variable) => `${variable} (${environment[variable]})`).join(' and ');
  return `${told} ${variables.length === 1 ? 'is' : 'are'} used instead of the network ${usual.name}`;
}

/** Throws NETWORK_UNKNOWN, INVALID_CONFIG (a variable is no URL). */
export function chooseNetwork(sources: Sources): ChosenNetwork {
  const { options, environment } = sources;
  // A current network that is gone must not stand in the way of one that is named.
  const isBeaten = options.core !== undefined || options.network !== undefined;
  const usual = isBeaten ? { name: LOCAL, network: { core: '' } } : findDefault(sources);
  const found = find(sources, usual);
  const given = readGiven(options, environment);
  const { network } = found;
  const beats = beatsOf(sources, usual, found, given);
  return {
    ...found,
    isByVariable:
      !isBeaten && found.name !== undefined && found.name === environment[COMMAND_VARIABLES.network],
    keyName: options.key ?? (environment[COMMAND_VARIABLES.keyName] || network.key || DEFAULT_KEY_NAME),
    given,
    beats,
    warning: usual.name === LOCAL ? undefined : beats,
  };
}

/** Said beside what tells where commands work, unless the command has said it already. */
export function tellBeats({ beats, warning }: ChosenNetwork, { note }: Pick<Output, 'note'>): void {
  if (beats !== undefined && warning === undefined) note(beats);
}

/** A core node that does not answer may be one that nobody thinks of any more: its hint is the variable that names it. */
export function blameVariable(error: unknown, { name, beats, network: { core } }: ChosenNetwork): unknown {
  if (!(error instanceof AppError) || error.code !== 'UPSTREAM_UNAVAILABLE') return error;
  // The core node of a network that has a name is that one's, whatever other services are named by variables.
  if (name !== undefined || beats === undefined) return error;
  const { code, message } = error;
  const details = error.details as { readonly hint?: unknown; readonly item_hash?: unknown } | undefined;
  // One that had a message sent to it was there.
  if (details?.hint !== undefined || details?.item_hash !== undefined) return error;
  if (!message.includes(new URL(core).origin)) return error;
  return new AppError(code, message, {
    cause: error,
    details: { ...details, hint: `${beats}; without the variable, or with --network, another is asked` },
  });
}
