import { CREDIT_CHANNEL, CREDIT_POST } from '@skerry/protocol';
import { signers, type TestCore } from '../core.ts';
import { type Cases, given, refuses, refusesTooMany, succeeds } from './case.ts';

const ADDRESS = signers.alice.address;

const bought = async (core: TestCore) => {
  const credits = [{ address: ADDRESS, amount: 5_000_000, ref: 'contract' }];
  await core.send(signers.credit, {
    type: 'POST',
    channel: CREDIT_CHANNEL,
    content: { type: CREDIT_POST.distribution, content: { distribution: { credits } } },
  });
};

const after = (make: (core: TestCore) => Promise<unknown>, path: string) =>
  succeeds(async (core: TestCore) => {
    await make(core);
    return { path };
  });

const misused = (path: string, ...queries: string[]) =>
  queries.map((query) => refuses('INVALID_PARAMETERS', `${path}?${query}`));

const BALANCE = `/api/v0/addresses/${ADDRESS}/balance`;
const HISTORY = `/api/v0/addresses/${ADDRESS}/credit_history`;

export const creditCases: Cases = {
  'GET /api/v0/addresses/{address}/balance': [
    after(bought, BALANCE),
    after(given.instance, `${BALANCE}?time=4000000000`),
    refuses('INVALID_ADDRESS', '/api/v0/addresses/nobody/balance'),
    ...misused(BALANCE, 'time=-1', 'time=x'),
    refusesTooMany(BALANCE),
  ],
  'GET /api/v0/addresses/{address}/credit_history': [
    after(bought, HISTORY),
    after(bought, `${HISTORY}?kind=purchase&ref=contract&page=1&limit=1`),
    refuses('INVALID_ADDRESS', '/api/v0/addresses/nobody/credit_history'),
    succeeds(`${HISTORY}?transfer=1/0x${'12'.repeat(32)}/7`),
    ...misused(HISTORY, 'kind=gift', 'page=0', 'limit=101', 'transfer=1/0x12/7'),
  ],
  'GET /api/v0/credits/prices': [
    succeeds('/api/v0/credits/prices'),
    refusesTooMany('/api/v0/credits/prices'),
  ],
  'GET /api/v0/credits/charges': [
    after(given.instance, '/api/v0/credits/charges?kind=instance'),
    ...misused('/api/v0/credits/charges', '', 'kind=air', 'kind=instance&time=x', 'kind=storage&limit=501'),
  ],
  'GET /api/v0/credits/accounts': [
    after(bought, '/api/v0/credits/accounts?after=&limit=1'),
    ...misused('/api/v0/credits/accounts', 'limit=0', 'after=%00'),
  ],
};
