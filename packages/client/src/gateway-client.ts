import { GATEWAY_API } from '@skerry/protocol/api/gateway';
import type { TrafficView } from '@skerry/protocol/api/gateway-names';
import { call, urlOfCall } from './call.ts';
import { OwnerPass } from './owner-pass.ts';
import type { AskedSigner } from './signer.ts';

/** What an owner asks a gateway. Every request is signed; every failure is an AppError. */
export class GatewayClient {
  readonly url: string;
  readonly #pass: OwnerPass;

  private constructor(url: string, pass: OwnerPass) {
    this.url = url;
    this.#pass = pass;
  }

  /** The owner signs once, for an hour. */
  static async open(url: string, signer: AskedSigner): Promise<GatewayClient> {
    const { domain } = await call(url, GATEWAY_API.getGatewayStatus, {});
    return new GatewayClient(url, await OwnerPass.create(signer, { domain }));
  }

  /** What passed through the gateway to an instance of the owner's. */
  async readTraffic(instanceId: string): Promise<TrafficView> {
    const input = { params: { hash: instanceId } };
    const path = urlOfCall('', GATEWAY_API.getTraffic, input);
    const headers = await this.#pass.headers({ method: 'GET', path });
    return call(this.url, GATEWAY_API.getTraffic, input, { headers });
  }
}
