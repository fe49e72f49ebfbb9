import { call } from '@skerry/client/call';
import { readKeyFile } from '@skerry/gateway';
import { urlOfListener } from '@skerry/kit';
import { GATEWAY_API } from '@skerry/protocol/api/gateway';
import type { RefusalsView } from '@skerry/protocol/api/gateway-refusals';
import { AppError } from '@skerry/protocol/forms';
import { describeNode } from '../backup/role.ts';
import type { Context } from '../context.ts';
import { renderTime } from '../output/text.ts';
import type { DaemonOptions } from './daemon.ts';

export interface RefusedOptions extends DaemonOptions {
  readonly limit: number;
}

/** Of the gateway's settings, what its API is asked with. */
interface ApiSettings {
  readonly host: string;
  readonly apiHost?: string;
  readonly apiPort: number;
  readonly apiKeys: readonly string[];
  readonly apiKeyFile?: string;
}

/** The first key of the settings, or of the key file. Throws INVALID_CONFIG. */
async function findKey({ apiKeys, apiKeyFile }: ApiSettings): Promise<string> {
  const [key] = apiKeys.length > 0 || apiKeyFile === undefined ? apiKeys : await readKeyFile(apiKeyFile);
  if (key !== undefined) return key;
  throw new AppError(
    'INVALID_CONFIG',
    'the gateway tells this to who has one of its API keys: set SKERRY_GATEWAY_API_KEYS or SKERRY_GATEWAY_API_KEY_FILE. Its log names those that were refused most, too',
  );
}

const reasonsText = (reasons: RefusalsView['others']['reasons']) =>
  reasons.map(({ reason, count }) => `${reason} ${count}`).join(', ');

/** Lists whom the gateway of this machine refused most in the last minutes. Throws INVALID_CONFIG where it has no API key. */
export async function showRefused(context: Context, { settings, limit }: RefusedOptions): Promise<void> {
  const { config } = await describeNode(context, 'gateway', settings === undefined ? {} : { settings });
  const api = config as unknown as ApiSettings;
  const url = urlOfListener('http', api.apiHost ?? api.host, api.apiPort);
  const headers = { authorization: `Bearer ${await findKey(api)}` };
  const view = await call(url, GATEWAY_API.listRefusals, { query: { limit } }, { headers });
  const rows = [
    ...view.networks.map(({ network, count, reasons }) => [network, String(count), reasonsText(reasons)]),
    ...(view.others.count > 0
      ? [['all others', String(view.others.count), reasonsText(view.others.reasons)]]
      : []),
  ];
  const table = context.output.table(['NETWORK', 'REFUSED', 'WHY'], rows, 'Nobody was refused.');
  context.output.result(view, `Since ${renderTime(view.since)}:\n${table}`);
}
