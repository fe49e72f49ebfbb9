import { type AskedSigner, GatewayClient } from '@skerry/client';
import { AppError } from '@skerry/protocol';

export interface TrafficOf {
  readonly coreUrl: string;
  readonly gatewayUrl: string;
  readonly instanceId: string;
}

/** What passed through one gateway to a machine. */
export interface Traffic {
  readonly sinceMs: number | null;
  readonly open: number;
  readonly connections: number;
  readonly bytesToMachine: number;
  readonly bytesToClients: number;
  readonly requests: number;
}

/** A pass is good for an hour: it is signed anew a while before. */
const PASS_MS = 55 * 60_000;

let opened:
  | { readonly key: string; readonly untilMs: number; readonly client: Promise<GatewayClient> }
  | undefined;

function open(gatewayUrl: string, signer: AskedSigner): Promise<GatewayClient> {
  const key = `${gatewayUrl} ${signer.address}`;
  if (opened?.key === key && opened.untilMs > Date.now()) return opened.client;
  const client = GatewayClient.open(gatewayUrl, signer);
  opened = { key, untilMs: Date.now() + PASS_MS, client };
  client.catch(() => {
    opened = undefined;
  });
  return client;
}

/** Asks a gateway in the owner's name. Throws AppError. */
export async function readTraffic(
  { gatewayUrl, instanceId }: TrafficOf,
  signer: AskedSigner | undefined,
): Promise<Traffic> {
  if (!signer) throw new AppError('SIGNATURE_REQUIRED', 'only its owner is told the traffic of a machine');
  const told = await (await open(gatewayUrl, signer)).readTraffic(instanceId);
  return {
    sinceMs: told.since === null ? null : told.since * 1_000,
    open: told.open,
    connections: told.connections,
    bytesToMachine: told.bytes_to_instance,
    bytesToClients: told.bytes_to_clients,
    requests: told.requests,
  };
}
