import { CoreClient, createSigner, type Signer } from '@skerry/client';
import { type SkerryPaths, skerryPaths } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import {
  COMMAND_VARIABLES,
  DEFAULT_CORE_URL,
  DEFAULT_GATEWAY_URL,
  DEFAULT_KEY_NAME,
  type Environment,
} from './config.ts';
import { loadKey } from './keys/key-store.ts';
import type { GlobalOptions } from './options.ts';
import type { Output } from './output/output.ts';

/** What an action works with. */
export interface Context {
  readonly environment: Environment;
  readonly paths: SkerryPaths;
  readonly output: Output;
  readonly stdin: NodeJS.ReadStream;
  readonly coreUrl: string;
  readonly gatewayUrl: string;
  readonly keyName: string;
  /** A core client that can only read. */
  readonly reader: CoreClient;
  /** Throws KEY_NOT_FOUND. */
  loadSigner(): Promise<Signer>;
  /** A core client that signs with the person's key. Throws KEY_NOT_FOUND. */
  openWriter(): Promise<CoreClient>;
}

export interface ContextSources {
  readonly environment: Environment;
  readonly stdin: NodeJS.ReadStream;
  readonly output: Output;
}

function chooseUrl(given: string | undefined, environment: Environment, variable: string, fallback: string) {
  const url = given ?? (environment[variable] || fallback);
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new AppError(
      'INVALID_CONFIG',
      `${variable} must be an http or https URL, not ${JSON.stringify(url)}`,
    );
  return url.replace(/\/+$/, '');
}

/** Options win over the environment, the environment over what is usual. */
export function createContext(sources: ContextSources, options: GlobalOptions): Context {
  const { environment, stdin, output } = sources;
  const paths = skerryPaths(environment);
  const coreUrl = chooseUrl(options.core, environment, COMMAND_VARIABLES.coreUrl, DEFAULT_CORE_URL);
  const gatewayUrl = chooseUrl(
    options.gateway,
    environment,
    COMMAND_VARIABLES.gatewayUrl,
    DEFAULT_GATEWAY_URL,
  );
  const keyName = options.key ?? (environment[COMMAND_VARIABLES.keyName] || DEFAULT_KEY_NAME);
  const loadSigner = async () => createSigner((await loadKey(paths.config, keyName)).privateKey);
  return {
    environment,
    paths,
    output,
    stdin,
    coreUrl,
    gatewayUrl,
    keyName,
    reader: new CoreClient({ url: coreUrl }),
    loadSigner,
    openWriter: async () => new CoreClient({ url: coreUrl, signer: await loadSigner() }),
  };
}
