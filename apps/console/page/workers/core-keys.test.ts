import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSigner, generatePrivateKey } from '@skerry/client';
import { serving } from '@skerry/kit/testing/serving';
import { createNodeProof, nodeIdOf } from '@skerry/protocol';
import type { InfoView } from '@skerry/protocol/api/core/node';
import { judgeCores } from './core-keys.ts';

const [node, liar] = [createSigner(generatePrivateKey()), createSigner(generatePrivateKey())];

const nobody: InfoView['trust']['schedulers'] = { value: [], source: 'unset' };
const infoOf = (address: string): InfoView => ({
  ...{ node_multi_addresses: [], name: 'node', version: '1', address },
  trust: {
    ...{
      schedulers: nobody,
      scoring_publishers: nobody,
      credit_publishers: nobody,
      known_core_nodes: nobody,
    },
    credit_enforcement: { value: false, source: 'unset' },
  },
});

/** A server that proves a key, or answers in another way. @param place it says that it is; where it is asked if left out */
function serve(signer: typeof node | undefined, place?: string) {
  return serving((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://node');
    if (pathname === '/api/v0/info/public.json' && signer)
      return void response.end(JSON.stringify(infoOf(signer.address)));
    if (pathname !== '/status/proof' || !signer) return void response.writeHead(404).end('{}');
    const claim = {
      nodeId: nodeIdOf(signer.address),
      place: place ?? searchParams.get('place')!,
      challenge: searchParams.get('challenge')!,
    };
    response.end(JSON.stringify(createNodeProof(claim, (text) => signer.sign(text))));
  });
}

test('a key that signs its URL is proven; another key contradicts it, and a key at two URLs is one node', async () => {
  await using honest = await serve(node);
  await using twin = await serve(node);
  await using other = await serve(liar);
  await using relay = await serve(node, 'https://elsewhere.example');
  await using older = await serve(undefined);
  await using unknown = await serve(liar);
  const { address } = node;
  const facts = await judgeCores({
    coreUrl: older.url,
    cores: [
      { url: honest.url, address },
      { url: twin.url, address },
      { url: other.url, address },
      { url: relay.url, address },
      { url: older.url, address },
      { url: unknown.url, address: null },
      { url: older.url, address: null },
      { url: 'no URL', address },
    ],
  });
  assert.deepEqual(
    facts.map(({ kind }) => kind),
    ['proven', 'wrong', 'wrong', 'said', 'said', 'proven', 'said', 'said'],
  );
  assert.deepEqual(
    facts.map(({ key }) => key),
    [address, null, null, null, null, liar.address, null, null],
  );
  assert.match(facts[1]!.why, /one node/);
  assert.match(facts[3]!.why, /https:\/\/elsewhere\.example/);
});
