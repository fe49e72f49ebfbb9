import type { Network } from './network.ts';
import { type Loose, NotOffered, type Sdk } from './sdk.ts';

/** What the calls have in common: who makes them, whom they ask, and what earlier ones made. */
export interface World {
  readonly sdk: Sdk;
  readonly network: Pick<Network, 'core' | 'compute'>;
  /** Of the chain that most clients use; new in every run. */
  readonly account: Loose;
  /** Of this run alone, so that lists have exactly what it made. */
  readonly channel: string;
  /** A client of one kind for the core node. Throws NotOffered where the SDK has none, as its methods do. */
  client(name: string): Loose;
  /** What became of a message, by the node's own word. */
  statusOf(itemHash: string): Promise<string>;
  note(name: string, value: Loose): void;
  /** What an earlier call noted. */
  noted(name: string): Loose;
}

/** Methods that are not there are not offered. */
const asOffered = (name: string, target: object): Loose =>
  new Proxy(target, {
    get(of, key) {
      const member = (of as Record<string | symbol, unknown>)[key];
      if (member === undefined && typeof key === 'string' && key !== 'then')
        throw new NotOffered(`${name} has no ${key}`);
      return typeof member === 'function' ? member.bind(of) : member;
    },
  });

export function createWorld(sdk: Sdk, network: Network): World {
  const { account } = sdk.load('ethereum').newAccount();
  const made = new Map<string, Loose>();
  const sockets = network.core.replace(/^http/, 'ws');
  return {
    sdk,
    network,
    account,
    channel: `compat-${Math.random().toString(36).slice(2)}`,
    client(name) {
      const Client = { ...sdk.load('client'), ...sdk.load('message') }[name];
      if (Client === undefined) throw new NotOffered(`there is no ${name}`);
      const isSigning = name === 'AuthenticatedAlephHttpClient';
      const client = isSigning
        ? new Client(account, network.core)
        : new Client(network.core, ...(name === 'BaseMessageClient' ? [sockets] : []));
      return asOffered(name, client);
    },
    async statusOf(itemHash) {
      const response = await fetch(`${network.core}/api/v0/messages/${itemHash}/status`);
      return ((await response.json()) as { status: string }).status;
    },
    note: (name, value) => void made.set(name, value),
    noted(name) {
      if (made.has(name)) return made.get(name);
      throw new Error(`the call that makes "${name}" did not work`);
    },
  };
}
