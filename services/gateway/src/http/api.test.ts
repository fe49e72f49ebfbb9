import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createSigner, generatePrivateKey, OwnerPass } from '@skerry/client';
import { overHttp, testContractOver } from '@skerry/kit/testing';
import { GATEWAY_EXAMPLES } from '@skerry/protocol/api/examples/gateway';
import { GATEWAY_API } from '@skerry/protocol/api/gateway';
import { HASH, HOST, KEY, NAME, Scene } from '../testing/scene.ts';

describe('the contract of the gateway', () => {
  let scene: Scene;
  let pass: OwnerPass;
  before(async () => {
    scene = await Scene.open();
    const owner = createSigner(generatePrivateKey());
    pass = await OwnerPass.create(owner, { domain: HOST.slice(NAME.length + 1) });
    scene.core.put({ instance_id: HASH, ipv6: '::1', owner: owner.address });
    await scene.start();
    await scene.untilActive();
  });
  after(() => scene[Symbol.asyncDispose]());

  // Everything is asked by the operator and owner: who else asks is another test's.
  const send = async (asked: Parameters<ReturnType<typeof overHttp>>[0]) => {
    const signed = await pass.headers({ method: asked.method, path: asked.url });
    return overHttp(() => scene.urls[2]!, { authorization: `Bearer ${KEY}`, ...signed })(asked);
  };
  const requests = {
    getDomainOfInstance: [{ params: { hash: HASH } }],
    findDomain: [{ params: { subdomain: NAME } }],
    explainDomain: [{ params: { subject: HOST } }, { params: { subject: 'zoo-zoo-zoo-zoo' } }],
    listRoutes: [{ query: { limit: 1 } }, {}],
    listCollisions: [{}],
    getTraffic: [{ params: { hash: HASH } }],
    getGatewayStatus: [{}],
    listRefusals: [{ query: { limit: 1 } }, {}],
    syncGateway: [{ body: { accept_loss: true } }, {}],
    getGatewayMetrics: [{}],
    getFront: [{}],
    getDocument: [{}],
    getReference: [{}],
  };
  testContractOver(send, GATEWAY_API, requests, GATEWAY_EXAMPLES);
});

test('a stranger may ask for so many names and so many explanations a minute', async () => {
  await using scene = await Scene.open({
    SKERRY_GATEWAY_DATA_PLANE: 'typescript',
    SKERRY_GATEWAY_RATE_EXEMPT: 'none',
    SKERRY_GATEWAY_RATE_GENERAL: '2',
    SKERRY_GATEWAY_RATE_HEAVY: '1',
  });
  await scene.start();
  const ask = async (...paths: string[]) => {
    const statuses: number[] = [];
    for (const path of paths) statuses.push((await scene.api(path)).status);
    return statuses;
  };
  const [why, name] = [`/api/why/${NAME}`, `/api/hash/${HASH}`];
  assert.deepEqual(await ask(why, why), [200, 429]);
  assert.deepEqual(await ask(name, '/api/nowhere', name), [200, 404, 429]);
});

test('the console may follow a machine on its way, which asks every two seconds, beside another tab', async () => {
  await using scene = await Scene.open({
    SKERRY_GATEWAY_DATA_PLANE: 'typescript',
    SKERRY_GATEWAY_RATE_EXEMPT: 'none',
  });
  await scene.start();
  const answers = Array.from({ length: 60 / 2 + 6 }, () => scene.api(`/api/why/${NAME}`));
  const statuses = new Set((await Promise.all(answers)).map(({ status }) => status));
  assert.deepEqual([...statuses], [200]);
});
