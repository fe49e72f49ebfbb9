import type { Service } from '@skerry/kit';
import { type GatewayConfig, gatewayConfig } from './config.ts';
import { startGateway } from './gateway.ts';
import { gatewayKeeping } from './keeping.ts';

export { describeApi } from './http/api.ts';
export { readKeyFile } from './http/keys.ts';

/** Names and traffic: four-word host names, TLS passed through by server name, HTTP by Host. */
export const gatewayService: Service<GatewayConfig> = {
  name: 'gateway',
  summary: 'routes host names of four words to instances',
  config: gatewayConfig,
  keeping: gatewayKeeping,
  // While one takes over from the other.
  sharesDataDir: true,
  start: startGateway,
};
