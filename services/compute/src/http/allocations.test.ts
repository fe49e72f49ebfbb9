import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSigner, generatePrivateKey } from '@skerry/client';
import { createHttpServer, createLogger } from '@skerry/kit';
import { sha256Hex } from '@skerry/protocol';
import { ALLOCATIONS_API } from '@skerry/protocol/api/compute/allocations';
import type { Instances } from '../instances/instances.ts';
import { addAllocationRoutes } from './allocations.ts';

const BODY = '{"instances":[]}';

test('a scheduler whose signature is refused is told what one has to be', async () => {
  const app = await createHttpServer({ log: createLogger('test', 'silent') });
  const nowMs = 1_000_000_000;
  addAllocationRoutes(app, {
    core: { getInstance: () => Promise.reject(new Error('not asked')) },
    instances: {} as Instances,
    ...{ nodeId: 'a'.repeat(64), domains: undefined, signers: [], now: () => nowMs },
  });
  const { path, method } = ALLOCATIONS_API.setAllocations;
  const signer = createSigner(generatePrivateKey());
  const ask = async (authorization?: string) => {
    const headers = authorization === undefined ? {} : { authorization };
    const json = { 'content-type': 'application/json', ...headers };
    const { statusCode, payload } = await app.inject({ method, url: path, headers: json, payload: BODY });
    assert.equal(statusCode, 401);
    return (JSON.parse(payload) as { error: string }).error;
  };
  const signed = (head: object) => {
    const text = JSON.stringify(head);
    return `Net-EIP191-V1 sig=${signer.sign(text)}, payload=${Buffer.from(text).toString('hex')}`;
  };
  assert.match(await ask(), /Authorization: "<NAME>-EIP191-V1 sig=.*, payload=/);
  assert.match(await ask('Bearer x'), /is not "<NAME>-EIP191-V1 sig=.*, payload=/);
  assert.match(await ask(`Net-EIP191-V1 sig=${'0'.repeat(130)}, payload=00`), /personal_sign \(EIP-191\)/);
  assert.match(await ask(signed({ method, path })), /its method, path and body_sha256/);
  const right = { method, path, body_sha256: sha256Hex(new TextEncoder().encode(BODY)) };
  assert.match(await ask(signed({ ...right, iat: nowMs / 1000 - 301 })), /iat must be within 300 s/);
  await app.close();
});
