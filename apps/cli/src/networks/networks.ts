import { isDeepStrictEqual } from 'node:util';
import { NETWORK_SERVICES, type NetworkService } from '@skerry/protocol/api/core/node';
import { AppError } from '@skerry/protocol/forms';
import { COMMAND_VARIABLES } from '../config.ts';
import type { Context } from '../context.ts';
import { renderFields } from '../output/text.ts';
import { chooseNetwork, tellBeats } from './choose.ts';
import { askServices, findService, type Told } from './services.ts';
import {
  checkNetworkName,
  getNetwork,
  LOCAL,
  loadNetworks,
  type Network,
  type Networks,
  saveNetworks,
} from './store.ts';

export interface NetworkAddOptions {
  readonly scheduler?: string;
  readonly credit?: string;
  readonly status?: string;
  readonly use?: boolean;
}

export interface NetworkAddGlobals {
  readonly gateway?: string;
  readonly key?: string;
}

const SOURCES = {
  given: 'as given',
  network: 'as added',
  core: 'as its core node says',
  usual: 'the usual port',
} as const;

/** Where each service of a network is and how that is known, for people and for programs. */
function describeServices(network: Network, given: Context['network']['given'], told: Told | undefined) {
  return NETWORK_SERVICES.map((service) => {
    const found = findService({ network, given }, service, told);
    return { service, url: found?.url ?? null, from: found?.from ?? null };
  });
}

function tellServices(
  { output }: Context,
  record: {
    readonly name: string | null;
    readonly network: Network;
    readonly current: boolean;
    /** Of one that is added: what had its name; null where nothing had. */
    readonly replaced?: Network | null;
  },
  services: ReturnType<typeof describeServices>,
  answers: boolean,
): void {
  const { name, network, current, replaced } = record;
  const fields = renderFields([
    ['network', name ?? '(none: named by its core node)'],
    ['current', current ? 'yes' : 'no'],
    ['core', `${network.core}${answers ? '' : ' (does not answer)'}`],
    ...services.map(({ service, url, from }): [string, string] => [
      service,
      url === null || from === null ? 'unknown' : `${url} (${SOURCES[from]})`,
    ]),
    ['key', network.key],
  ]);
  const urls = Object.fromEntries(services.map(({ service, url }) => [service, url]));
  output.result(
    {
      ...{ name, current, core: network.core, ...urls, key: network.key ?? null },
      ...(replaced === undefined ? {} : { replaced }),
    },
    fields,
  );
}

const isCurrent = (networks: Networks, name: string) => (networks.current ?? LOCAL) === name;

/** What a core node says of its services, before its network has a name. */
const askNew = (core: string) =>
  askServices(core).catch((error: unknown) => {
    if (!(error instanceof AppError) || error.code !== 'UPSTREAM_UNAVAILABLE') throw error;
    throw new AppError(error.code, error.message, {
      cause: error,
      details: { hint: 'nothing was added: give the URL of a core node that answers' },
    });
  });

const describeNetwork = (network: Network) =>
  Object.entries(network)
    .map(([what, value]) => `${what} ${value}`)
    .join(', ');

/** Asks the core node first: a network that cannot be reached is more often a typing error than a network. */
export async function addNetwork(
  context: Context,
  name: string,
  core: string,
  options: NetworkAddOptions,
  { gateway, key }: NetworkAddGlobals,
): Promise<void> {
  const { paths, output } = context;
  checkNetworkName(name);
  const { use, ...services } = options;
  const named: Partial<Record<NetworkService, string>> = { ...services, ...(gateway ? { gateway } : {}) };
  const network: Network = { core, ...named, ...(key === undefined ? {} : { key }) };
  const told = await askNew(core);
  const before = await loadNetworks(paths);
  const networks: Networks = {
    ...before,
    ...(use ? { current: name } : {}),
    networks: { ...before.networks, [name]: network },
  };
  await saveNetworks(paths, networks);
  const replaced = Object.hasOwn(before.networks, name) ? before.networks[name]! : null;
  const record = { name, network, current: isCurrent(networks, name), replaced };
  tellServices(context, record, describeServices(network, {}, told), true);
  if (replaced !== null && !isDeepStrictEqual(replaced, network))
    output.note(`this replaces what was known as ${name}: ${describeNetwork(replaced)}`);
  if (!record.current) output.note(`"skerry network use ${name}" makes it the one that commands work on`);
}

export async function useNetwork(context: Context, name: string): Promise<void> {
  const { paths, output, environment } = context;
  const { current: _, ...others } = await loadNetworks(paths);
  const { core } = getNetwork(others, name);
  const networks = name === LOCAL ? others : { ...others, current: name };
  await saveNetworks(paths, networks);
  output.result({ name, core }, `commands work on ${name} (${core})`);
  const { name: used, network, beats } = chooseNetwork({ options: {}, environment, networks });
  if (used === name) {
    // Of the network that was current until now, every command has said it at its begin.
    if (beats !== undefined && beats !== context.network.warning) output.note(beats);
    return;
  }
  const set = [COMMAND_VARIABLES.coreUrl, COMMAND_VARIABLES.network].filter((one) => environment[one]);
  output.note(
    `but not those of this shell, which work on ${used ?? network.core}: unset ${set.join(' ')} to change that`,
  );
}

export async function removeNetwork({ paths, output }: Context, name: string): Promise<void> {
  checkNetworkName(name);
  const { networks: all, ...rest } = await loadNetworks(paths);
  getNetwork({ networks: all }, name);
  const { [name]: removed, ...networks } = all;
  const { current, ...others } = rest;
  const isGone = current === name;
  await saveNetworks(paths, { ...others, ...(isGone || !current ? {} : { current }), networks });
  output.result({ name, core: removed!.core }, `removed ${name}`);
  if (isGone) output.note(`commands work on ${LOCAL} again`);
}

/** The variable names a network that is known here: nobody is told of it with every command. */
function tellNamed({ output, network: { name, isByVariable } }: Context, networks: Networks): void {
  if (!isByVariable || name === undefined || isCurrent(networks, name)) return;
  const instead = `is used instead of the network ${networks.current ?? LOCAL}`;
  output.note(`${COMMAND_VARIABLES.network} (${name}) ${instead}`);
}

export async function listNetworks(context: Context): Promise<void> {
  const { paths, output, network: chosen } = context;
  const networks = await loadNetworks(paths);
  const all = [LOCAL, ...Object.keys(networks.networks).sort()].map((name) => {
    const network = getNetwork(networks, name);
    return { name, current: isCurrent(networks, name), used: name === chosen.name, ...network };
  });
  const rows = all.map(({ name, current, core, key }) => [current ? '*' : '', name, core, key ?? '']);
  output.result(all, output.table(['', 'NAME', 'CORE', 'KEY'], rows, 'no networks'));
  tellBeats(chosen, output);
  tellNamed(context, networks);
}

/** @param name the one that commands work on where it is left out, with what options and variables say */
export async function showNetwork(context: Context, name: string | undefined): Promise<void> {
  const networks = await loadNetworks(context.paths);
  const { name: chosen, network: used, given } = context.network;
  const network = name === undefined ? used : getNetwork(networks, name);
  const told = await askServices(network.core).catch(() => undefined);
  const shown = name ?? chosen;
  const record = {
    name: shown ?? null,
    network,
    current: shown !== undefined && isCurrent(networks, shown),
  };
  const services = describeServices(network, name === undefined ? given : {}, told);
  tellServices(context, record, services, told !== undefined);
  if (name === undefined) tellBeats(context.network, context.output);
}
