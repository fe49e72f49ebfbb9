import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { NODE_PROOF_PATH, type NodeProofView, nodeIdOf, provesNode } from '@skerry/protocol';
import { CORE_PLACE, createTestCore, type TestCore } from '../testing/core.ts';

const challenge = 'ab'.repeat(32);

describe('H3: a core node proves its key', () => {
  let core: TestCore;
  let url: string;
  before(async () => {
    core = await createTestCore();
    url = await core.listen();
  });
  after(() => core[Symbol.asyncDispose]());

  async function ask(query: Readonly<Record<string, string>>, headers: Record<string, string> = {}) {
    const response = await fetch(`${url}${NODE_PROOF_PATH}?${new URLSearchParams(query)}`, { headers });
    assert.equal(response.headers.get('access-control-allow-origin'), '*', 'a page may ask');
    return { status: response.status, body: new Uint8Array(await response.arrayBuffer()) };
  }
  const placeIn = (body: Uint8Array) => (JSON.parse(new TextDecoder().decode(body)) as NodeProofView).place;
  const proves = (body: Uint8Array, place: string) => {
    const address = core.rooms.nodeAddress;
    return provesNode(body, { nodeId: nodeIdOf(address), place, challenge }, address);
  };

  test('where its operator says that it is, and where the connection leads to', async () => {
    for (const place of [CORE_PLACE, url, url.replace('127.0.0.1', 'localhost')]) {
      const { status, body } = await ask({ challenge, place });
      assert.equal(status, 200);
      assert.ok(proves(body, place), place);
    }
    assert.ok(proves((await ask({ challenge })).body, CORE_PLACE));
  });

  test('and nowhere else, whatever the request calls it', async () => {
    const liar = 'http://liar.example:4024';
    const host = { host: 'liar.example:4024', 'x-forwarded-host': 'liar.example:4024' };
    for (const query of [{ challenge, place: liar }, { challenge }])
      for (const headers of [{}, host]) {
        const { status, body } = await ask(query, headers);
        assert.equal(status, 200);
        assert.ok(!proves(body, liar));
        assert.equal(placeIn(body), CORE_PLACE);
      }
    assert.equal((await ask({ challenge: 'AB'.repeat(32) })).status, 400);
  });

  test('peers tell the address of its key', async () => {
    const { body } = await core.get('/sync/status');
    assert.equal(body.address, core.rooms.nodeAddress);
  });
});
