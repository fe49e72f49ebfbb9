import { signal } from '@preact/signals';
import { AskFailure } from '../data/failure.ts';
import { type Identity, identity } from '../data/identity.ts';
import { toHex } from '../pure/hex.ts';
import { fields, list, type Read, text } from '../pure/read.ts';

/** Wallets of the browser: each announces itself (EIP-6963), or there is one at `window.ethereum` (EIP-1193). */

interface Provider {
  request(asked: { readonly method: string; readonly params?: readonly unknown[] }): Promise<unknown>;
  on?(event: string, listener: (value: unknown) => void): void;
}

export interface Wallet {
  readonly id: string;
  readonly name: string;
  /** A `data:` address, or nothing that is shown. */
  readonly icon: string | undefined;
  readonly provider: Provider;
}

/** What a page may announce: more are strangers that fill the list. */
const WALLETS_MAX = 20;
const NAME_CHARS = 40;
const REFUSED = 4001;

export const wallets = signal<readonly Wallet[]>([]);

const readAnnounced = fields({ uuid: text, name: text, icon: text });
const readAccounts = list(text);
const ADDRESS = /^0x[0-9a-f]{40}$/i;

const isProvider = (value: unknown): value is Provider =>
  typeof value === 'object' && value !== null && 'request' in value && typeof value.request === 'function';

function add(wallet: Wallet): void {
  const isKnown = wallets.value.some(({ id, provider }) => id === wallet.id || provider === wallet.provider);
  if (!isKnown && wallets.value.length < WALLETS_MAX) wallets.value = [...wallets.value, wallet];
}

function hearAnnounced({ detail }: CustomEvent<{ info?: unknown; provider?: unknown }>): void {
  if (!isProvider(detail?.provider)) return;
  let info: Read<typeof readAnnounced>;
  try {
    info = readAnnounced(detail.info, 'the wallet');
  } catch {
    return;
  }
  const { uuid: id, name, icon } = info;
  add({
    id,
    name: name.slice(0, NAME_CHARS),
    icon: /^data:image\//.test(icon) ? icon : undefined,
    provider: detail.provider,
  });
}

let isListening = false;

/** Asks wallets to announce themselves. One that is only at `window.ethereum` is added where none announced itself as it. */
export function findWallets(): void {
  if (!isListening)
    addEventListener('eip6963:announceProvider', (event) => hearAnnounced(event as CustomEvent));
  isListening = true;
  dispatchEvent(new Event('eip6963:requestProvider'));
  const { ethereum } = globalThis as { ethereum?: unknown };
  if (wallets.value.length === 0 && isProvider(ethereum))
    add({ id: 'ethereum', name: 'The wallet of this browser', icon: undefined, provider: ethereum });
}

const codeOf = (error: unknown) =>
  typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;

function refusalOf(error: unknown, name: string): AskFailure {
  if (codeOf(error) === REFUSED)
    return new AskFailure('SIGNATURE_REQUIRED', `you refused it in ${name}; nothing was sent`);
  const message = error instanceof Error ? error.message : String(codeOf(error) ?? 'it gave no reason');
  return new AskFailure('UPSTREAM_UNAVAILABLE', `${name} failed: ${message.slice(0, 200)}`);
}

async function ask({ name, provider }: Wallet, method: string, params: readonly unknown[]): Promise<unknown> {
  try {
    return await provider.request({ method, params });
  } catch (error) {
    throw refusalOf(error, name);
  }
}

function firstOf(accounts: unknown): string | undefined {
  const first = readAccounts(accounts, 'the accounts of the wallet')[0];
  return first !== undefined && ADDRESS.test(first) ? first.toLowerCase() : undefined;
}

const identityOf = (wallet: Wallet, address: string): Identity => ({
  chain: 'ETH',
  address,
  name: wallet.name,
  place: 'wallet',
  async sign(message) {
    const signature = await ask(wallet, 'personal_sign', [
      `0x${toHex(new TextEncoder().encode(message))}`,
      address,
    ]);
    if (typeof signature !== 'string')
      throw new AskFailure('INVALID_SIGNATURE', `${wallet.name} returned no signature`);
    return signature;
  },
});

/** Whoever changes the account in the wallet changes who signs here. */
function follow(wallet: Wallet): void {
  wallet.provider.on?.('accountsChanged', (accounts) => {
    if (identity.value?.name !== wallet.name || identity.value.place !== 'wallet') return;
    const address = firstOf(accounts);
    identity.value = address === undefined ? undefined : identityOf(wallet, address);
  });
}

const followed = new Set<Provider>();

/** Asks a wallet for the account that signs. Throws AskFailure, Unreadable. */
export async function connect(wallet: Wallet): Promise<void> {
  const address = firstOf(await ask(wallet, 'eth_requestAccounts', []));
  if (address === undefined) throw new AskFailure('SIGNATURE_REQUIRED', `${wallet.name} gave no account`);
  if (!followed.has(wallet.provider)) follow(wallet);
  followed.add(wallet.provider);
  identity.value = identityOf(wallet, address);
}
