import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { Client } from 'pg';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { limitsExcept } from '../../testing/strangers.ts';

const OWN = '127.0.0.9';
const CHARGES = '/credits/charges?kind=storage';
const ACCOUNTS = '/credits/accounts';

describe('questions about credit, of which each may look at everything that was ever charged', () => {
  let core: TestCore;
  let url: string;
  let beside: Client;
  before(async () => {
    core = await createTestCore({ settings: { limits: limitsExcept(OWN) } });
    url = `${await core.listen()}/api/v0`;
    beside = new Client({ connectionString: core.rooms.indexer.pool.options.connectionString });
    await beside.connect();
  });
  after(async () => {
    await beside.end();
    await core[Symbol.asyncDispose]();
  });

  async function ask(path: string, localAddress: string): Promise<{ status: number; code?: string }> {
    const asked = request(`${url}${path}`, { localAddress, agent: false });
    asked.end();
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of response) text += chunk;
    return { status: response.statusCode!, code: JSON.parse(text).code };
  }

  test('a stranger asks as often as what is heavy may be asked, and the services of the node as often as they like', async () => {
    for (const [path, stranger] of [
      [CHARGES, '127.0.0.2'],
      [ACCOUNTS, '127.0.0.3'],
    ] as const) {
      for (let n = 0; n < 10; n++) assert.equal((await ask(path, stranger)).status, 200);
      assert.equal((await ask(path, stranger)).code, 'RATE_LIMITED');
      for (let n = 0; n < 12; n++) assert.equal((await ask(path, OWN)).status, 200);
    }
  });

  test('a stranger has the time of a list, and who charges has what it takes', async () => {
    await beside.query('begin');
    await beside.query('lock table credit_entries in access exclusive mode');
    const own = ask(CHARGES, OWN);
    const paths = [CHARGES, ACCOUNTS, `/addresses/${signers.alice.address}/balance`];
    const answers = await Promise.all(paths.map((path, at) => ask(path, `127.0.0.${at + 4}`)));
    await beside.query('rollback');
    assert.deepEqual(
      answers.map(({ code }) => code),
      paths.map(() => 'LIST_TOO_COSTLY'),
    );
    assert.equal((await own).status, 200);
  });
});
