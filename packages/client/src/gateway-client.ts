import { GATEWAY_API } from '@skerry/protocol/api/gateway';
import type { TrafficView } from '@skerry/protocol/api/gateway-names';
import { type CallOptions, call, urlOfCall } from './call.ts';
import { OwnerPass } from './owner-pass.ts';
import type { AskedSigner } from './signer.ts';

/** What an owner asks a gateway. Every request is signed; every failure is an AppError. */
export class GatewayClient {
  readonly url: string;
  readonly #pass: OwnerPass;
  readonly #signal: AbortSignal | undefined;

  private constructor(url: string, pass: OwnerPass, signal: AbortSignal | undefined) {
    this.url = url;
    this.#pass = pass;
    this.#signal = signal;
  }

  /** The owner signs once, for an hour. @param signal ends every request of this client */
  static async open(
    url: string,
    signer: AskedSigner,
    { signal }: Pick<CallOptions, 'signal'> = {},
  ): Promise<GatewayClient> {
    const { domain } = await call(url, GATEWAY_API.getGatewayStatus, {}, { signal });
    return new GatewayClient(url, await OwnerPass.create(signer, { domain }), signal);
  }

  /** What passed through the gateway to an instance of the owner's. */
  async readTraffic(instanceId: string): Promise<TrafficView> {
    const input = { params: { hash: instanceId } };
    const path = urlOfCall('', GATEWAY_API.getTraffic, input);
    const headers = await this.#pass.headers({ method: 'GET', path });
    return call(this.url, GATEWAY_API.getTraffic, input, { headers, signal: this.#signal });
  }
}
