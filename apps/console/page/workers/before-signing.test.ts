import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSigner, generatePrivateKey } from '@skerry/client';
import { serving } from '@skerry/kit/testing/serving';
import { AppError } from '@skerry/protocol';
import { SCHEDULER_EXAMPLES } from '@skerry/protocol/api/examples/scheduler';
import { act } from './actions.ts';
import { type Advice, hearReply, signerThatAsks } from './ask-owner.ts';
import { lackOf, quote } from './explain.ts';
import { askWebhooks } from './webhooks.ts';

const NOWHERE = 'http://127.0.0.1:9';
const MACHINE = { name: 'web', cpu: 1, memory: 512, disk: 4, image: 'debian:12' };
const ssh_key = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Fh0uVwOqkFZkP3kCq5p8v0wYVqX5b0pD8kT3C1xYz';

test('what no core node takes is refused before its owner is asked to sign it', async () => {
  const own = createSigner(generatePrivateKey());
  let asked = 0;
  const signer = {
    ...{ chain: own.chain, address: own.address },
    sign(text: string) {
      asked++;
      return Promise.resolve(own.sign(text));
    },
  };
  const program = { name: 'p', code: 'x', runtime: 'python3', memory: 128, timeout: 30 };
  const wrong = [
    { kind: 'createInstance', content: { ...MACHINE, ssh_key, memory: 1 } },
    { kind: 'createInstance', content: { ...MACHINE, ssh_key: 'none' } },
    { kind: 'createProgram', content: { ...program, timeout: 0 } },
    { kind: 'update', instanceId: 'a'.repeat(64), changes: { name: '' }, after: 0 },
  ] as const;
  for (const action of wrong)
    await assert.rejects(act(NOWHERE, action, signer), { code: /INVALID_CONTENT|INVALID_SSH_KEY/ });
  const webhook = { name: 'register', asked: { url: 'ftp://example.org', events: ['message.new'] } } as const;
  await assert.rejects(askWebhooks(NOWHERE, webhook, signer), { code: 'INVALID_CONTENT' });
  assert.equal(asked, 0);
  const right = { kind: 'createInstance', content: { ...MACHINE, ssh_key } } as const;
  await assert.rejects(act(NOWHERE, right, signer), { code: 'UPSTREAM_UNAVAILABLE' });
  assert.equal(asked, 1);
});

test('what costs something is never shown without a word about its price', async () => {
  for (const type of ['INSTANCE', 'PROGRAM'])
    assert.equal(await quote(NOWHERE, { type, content: { memory: 1 } }), 'untold');
  assert.equal(await quote(NOWHERE, { type: 'file', bytes: 1 }), 'untold');
  assert.equal(await quote(NOWHERE, { type: 'POST', content: {} }), null);
});

/** A core node and its scheduler in one, whose only compute node has eight cores, two of them free. @param told resolves when it may say so */
const startNetwork = (services: (url: string) => object, told: Promise<void> = Promise.resolve()) =>
  serving((request, response) => {
    const url = `http://${request.headers.host}`;
    const { pathname, searchParams } = new URL(request.url!, url);
    const trusted = { value: [], source: 'unset' };
    const answers: Readonly<Record<string, object>> = {
      '/api/v0/info/public.json': {
        ...{ node_multi_addresses: [], name: 'n', version: '0.1.0', address: '0x1', services: services(url) },
        trust: {
          ...{ schedulers: trusted, scoring_publishers: trusted, credit_publishers: trusted },
          ...{ known_core_nodes: trusted, credit_enforcement: { value: false, source: 'unset' } },
        },
      },
      '/api/v0/nodes': SCHEDULER_EXAMPLES.listNodes!.answer as object,
      '/api/v0/simulate':
        Number(searchParams.get('vcpus')) <= 2
          ? { schedulable: true, reasons: [] }
          : { schedulable: false, reasons: ['needs more cores'], code: 'NO_CAPACITY' },
    };
    const answer = answers[pathname];
    const reply = () => {
      response.statusCode = answer === undefined ? 404 : 'code' in answer ? 503 : 200;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(answer ?? {}));
    };
    if (pathname === '/api/v0/simulate') void told.then(reply);
    else reply();
  });

const machineOf = (cpu: number) =>
  ({ kind: 'createInstance', content: { ...MACHINE, cpu, ssh_key } }) as const;

/** What is to be signed for a machine with so many cores. */
async function textOf(cpu: number): Promise<string> {
  const { chain, address } = createSigner(generatePrivateKey());
  const asked = Promise.withResolvers<string>();
  const sign = (text: string) => {
    asked.resolve(text);
    return Promise.reject(new AppError('SIGNATURE_REQUIRED', 'not now'));
  };
  await assert.rejects(act(NOWHERE, machineOf(cpu), { chain, address, sign }), {
    code: 'SIGNATURE_REQUIRED',
  });
  return asked.promise;
}

test('whoever is to sign for a machine that no node has room for is told so', async () => {
  const [small, large, huge] = [await textOf(2), await textOf(8), await textOf(64)];
  await using network = await startNetwork((url) => ({ scheduler: `${url}/` }));
  assert.equal(await lackOf(network.url, small), null);
  assert.match(
    (await lackOf(network.url, large))!,
    /^no compute node has room for it now \(needs more cores\)/,
  );
  assert.match((await lackOf(network.url, huge))!, /large enough for 64 cores.*one node has at most 8 cores/);
  // Where nobody says, nothing is said.
  await using alone = await startNetwork(() => ({}));
  assert.equal(await lackOf(alone.url, huge), null);
  await using silent = await startNetwork(() => ({ scheduler: NOWHERE }));
  assert.equal(await lackOf(silent.url, huge), null);
  assert.equal(await lackOf(network.url, 'no message'), null);
});

test('nobody waits for the scheduler: the question is there before it answers, and its advice comes after', {
  timeout: 60_000,
}, async () => {
  const { address } = createSigner(generatePrivateKey());
  const shown = Promise.withResolvers<number>();
  const advised = Promise.withResolvers<Advice>();
  await using network = await startNetwork(
    (url) => ({ scheduler: `${url}/` }),
    // It says nothing before the question is there.
    shown.promise.then(() => {}),
  );
  const signer = signerThatAsks(
    { coreUrl: network.url, chain: 'ETH', address },
    ({ turn }) => shown.resolve(turn),
    (advice) => advised.resolve(advice),
  );
  const refused = assert.rejects(act(network.url, machineOf(8), signer), { code: 'SIGNATURE_REQUIRED' });
  const turn = await shown.promise;
  const advice = await advised.promise;
  assert.equal(advice.turn, turn);
  assert.match(advice.lack, /^no compute node has room for it now/);
  hearReply({ kind: 'refused', turn, message: 'not now' });
  await refused;
});
