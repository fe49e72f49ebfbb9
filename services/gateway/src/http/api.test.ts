import { after, before, describe } from 'node:test';
import { createSigner, generatePrivateKey, OwnerPass } from '@skerry/client';
import { overHttp, testContractOver } from '@skerry/kit/testing';
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
  testContractOver(send, GATEWAY_API, {
    getDomainOfInstance: [{ params: { hash: HASH } }],
    findDomain: [{ params: { subdomain: NAME } }],
    explainDomain: [{ params: { subject: HOST } }, { params: { subject: 'zoo-zoo-zoo-zoo' } }],
    listRoutes: [{ query: { limit: 1 } }, {}],
    listCollisions: [{}],
    getTraffic: [{ params: { hash: HASH } }],
    getGatewayStatus: [{}],
    syncGateway: [{ body: { accept_loss: true } }, {}],
    getGatewayMetrics: [{}],
    getFront: [{}],
    getDocument: [{}],
    getReference: [{}],
  });
});
