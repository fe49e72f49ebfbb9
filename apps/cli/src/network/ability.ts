import { probe } from './gateway.ts';

/** What a compute node says of itself at /status/config, as far as it is told here. */
export interface ComputeConfigView {
  readonly computing?: {
    readonly ACCELERATOR?: string | null;
    readonly ACCELERATOR_REASON?: string | null;
  };
  /** Why it can run nothing, where it cannot. */
  readonly reason?: { readonly message?: string } | null;
}

/** What a credit service says of itself at /status, as far as it is told here. */
export interface CreditStatusView {
  readonly sales?: readonly { readonly token: string; readonly network: string }[];
  readonly enforcement?: boolean;
}

/** One line about what a credit service sells. */
export function describeCredit({ sales = [], enforcement = false }: CreditStatusView): string {
  const sold = sales.map(({ token, network }) => `${token} on ${network}`).join(', ');
  const bought =
    sold === '' ? 'no chain is configured, so nothing can be bought' : `sells credits for ${sold}`;
  return `charges for usage; ${bought}; ${enforcement ? 'instances without credit are stopped' : 'nothing is stopped'}`;
}

/** @param url undefined: it does not run */
export async function findCreditAbility(url: string | undefined): Promise<string> {
  if (url === undefined) return 'the credit service is not running';
  try {
    return describeCredit((await probe(`${url}/status`)).body as CreditStatusView);
  } catch {
    return UNKNOWN;
  }
}

const UNKNOWN = 'capabilities unknown';

/** One line about what a compute node can do. */
export function describeAbility({ computing = {}, reason }: ComputeConfigView): string {
  if (reason) return `no virtual machines: ${reason.message}`;
  const { ACCELERATOR: accelerator, ACCELERATOR_REASON: why } = computing;
  if (accelerator === undefined) return UNKNOWN;
  if (accelerator === null) return 'virtual machines; KVM is tested when the first one starts';
  if (accelerator === 'kvm') return 'virtual machines with hardware acceleration (KVM)';
  return `virtual machines by software emulation, which is slow (${why})`;
}

/** @param url undefined: it does not run */
export async function findComputeAbility(url: string | undefined): Promise<string> {
  if (url === undefined) return 'no virtual machines: the compute node is not running';
  try {
    return describeAbility((await probe(`${url}/status/config`)).body as ComputeConfigView);
  } catch {
    return UNKNOWN;
  }
}

/** How many virtual machines run on a node; 0 where it does not answer. */
export async function countRunning(url: string | undefined): Promise<number> {
  if (url === undefined) return 0;
  try {
    return Object.keys((await probe(`${url}/about/executions/list`)).body).length;
  } catch {
    return 0;
  }
}
