import { after, before, describe } from 'node:test';
import { overHttp, testContractOver } from '@skerry/kit/testing';
import { GATEWAY_API } from '@skerry/protocol/api/gateway';
import { HASH, HOST, KEY, NAME, Scene } from '../testing/scene.ts';

describe('the contract of the gateway', () => {
  let scene: Scene;
  before(async () => {
    scene = await Scene.open();
    scene.core.put({ instance_id: HASH, ipv6: '::1' });
    await scene.start();
    await scene.untilActive();
  });
  after(() => scene[Symbol.asyncDispose]());

  const send = overHttp(() => scene.urls[2]!, { authorization: `Bearer ${KEY}` });
  testContractOver(send, GATEWAY_API, {
    getDomainOfInstance: [{ params: { hash: HASH } }],
    findDomain: [{ params: { subdomain: NAME } }],
    explainDomain: [{ params: { subject: HOST } }, { params: { subject: 'zoo-zoo-zoo-zoo' } }],
    getGatewayStatus: [{}],
    syncGateway: [{ body: { accept_loss: true } }, {}],
    getGatewayMetrics: [{}],
    getFront: [{}],
    getDocument: [{}],
    getReference: [{}],
  });
});
