import type { Signer } from '@skerry/client';
import { CoreClient } from '@skerry/client/core-client';
import { askTextBy } from '@skerry/client/request';
import { type SkerryPaths, skerryPaths } from '@skerry/kit/paths';
import type { NetworkService } from '@skerry/protocol/api/core/node';
import { askOverHttp } from './ask.ts';
import type { Environment } from './config.ts';
import { noteKept } from './messages/verdict.ts';
import { type ChosenNetwork, chooseNetwork } from './networks/choose.ts';
import { createServiceFinder, isLoopback } from './networks/services.ts';
import { LOCAL, loadNetworks } from './networks/store.ts';
import type { GlobalOptions } from './options.ts';
import type { Output } from './output/output.ts';

/** What an action works with. */
export interface Context {
  readonly environment: Environment;
  readonly paths: SkerryPaths;
  readonly output: Output;
  readonly stdin: NodeJS.ReadStream;
  /** The network that the command works on. */
  readonly network: ChosenNetwork;
  readonly coreUrl: string;
  readonly keyName: string;
  /** A core client that can only read. */
  readonly reader: CoreClient;
  /** Where a service of the network is. Throws SERVICE_UNKNOWN, UPSTREAM_UNAVAILABLE. */
  findService(service: NetworkService): Promise<string>;
  /** Throws KEY_NOT_FOUND. */
  loadSigner(): Promise<Signer>;
  /** A core client that signs with the person's key, to read what is theirs. Throws KEY_NOT_FOUND. */
  openSigned(): Promise<CoreClient>;
  /**
   * The same, to change something: says on which network, where that is not this machine's, and what becomes of each message.
   * @param signer in the place of the person's key
   */
  openWriter(signer?: Signer): Promise<CoreClient>;
  /** Says on which network something is changed, where that is not this machine's. */
  tellNetwork(): void;
}

export interface ContextSources {
  readonly environment: Environment;
  readonly stdin: NodeJS.ReadStream;
  readonly output: Output;
}

/** A network that nobody could take for their own machine's is told before something is changed in it. */
function describeElsewhere({ name, network: { core } }: ChosenNetwork): string | undefined {
  if (name === LOCAL || (name === undefined && isLoopback(core))) return undefined;
  return name === undefined ? `network of ${core}` : `network ${name} (${core})`;
}

export async function createContext(sources: ContextSources, options: GlobalOptions): Promise<Context> {
  const { environment, stdin, output } = sources;
  askTextBy(askOverHttp);
  const paths = skerryPaths(environment);
  const network = chooseNetwork({ options, environment, networks: await loadNetworks(paths) });
  if (network.warning !== undefined) output.note(network.warning);
  const { keyName } = network;
  const coreUrl = network.network.core;
  let elsewhere = describeElsewhere(network);
  const tellNetwork = () => {
    if (elsewhere !== undefined) output.note(elsewhere);
    elsewhere = undefined;
  };
  // Most commands sign nothing.
  const loadSigner = async () => {
    const [{ createSigner }, { loadKey }] = await Promise.all([
      import('@skerry/client/signer'),
      import('./keys/key-store.ts'),
    ]);
    return createSigner((await loadKey(paths.config, keyName)).privateKey);
  };
  const openSigned = async () => new CoreClient({ url: coreUrl, signer: await loadSigner() });
  return {
    ...{ environment, paths, output, stdin, network, coreUrl, keyName },
    reader: new CoreClient({ url: coreUrl }),
    findService: createServiceFinder(network),
    ...{ loadSigner, openSigned, tellNetwork },
    async openWriter(given) {
      const signer = given ?? (await loadSigner());
      tellNetwork();
      return new CoreClient({ url: coreUrl, signer, onKept: (answer) => noteKept(output, answer) });
    },
  };
}
