import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { buildNetworkMessage, CoreClient, createSigner, generatePrivateKey } from '@skerry/client';
import { CoreSync } from '@skerry/client/core-sync';
import { createLogger, readConfig } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { nodeIdOf } from '@skerry/protocol';
import { computeConfig } from '../../config.ts';
import { RealCore } from '../../testing/real-core.ts';
import { openPrograms, type ProgramService } from '../open.ts';
import { callOf } from '../testing/setup.ts';
import { storedZip } from '../testing/zip.ts';

/** Programs that run by themselves on the node that they are assigned to, by messages as the SDKs of the deployed network make them. */

const RUNTIME = '63f07193e6ee9d207b7d1fcf8286f9aee34e6f12f101d2ec77c1229f92964696';
const owner = createSigner(generatePrivateKey());
const node = createSigner(generatePrivateKey());
const closing = new AsyncDisposableStack();
let home: string;
let core: RealCore;

/** A node's programs, as its process has them from start to end. */
async function openNode() {
  const ending = new AbortController();
  const service = await openPrograms({
    config: readConfig(computeConfig, { SKERRY_HOME: home }),
    core: new CoreClient({ url: core.url, signer: node, signal: ending.signal }),
    sync: new CoreSync(core.url),
    nodeId: nodeIdOf(node.address),
    log: createLogger('test', 'error'),
    signal: ending.signal,
  });
  const working = service.work();
  return {
    service,
    async [Symbol.asyncDispose]() {
      ending.abort();
      await working;
      await service[Symbol.asyncDispose]();
    },
  };
}

before(async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  home = await mkdtemp(join(tmpdir(), 'skerry-standing-'));
  closing.defer(() => rm(home, { recursive: true, force: true }));
  core = closing.use(await new RealCore().start());
  await core.listRunners([node.address]);
});
after(() => closing.disposeAsync());

async function send(type: string, content: Record<string, unknown>, channel = 'standing'): Promise<string> {
  const { body, itemHash } = buildNetworkMessage({ type, content, channel, sync: true }, owner);
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${core.url}/api/v0/messages`, { method: 'POST', headers, body });
  assert.equal(response.status, 200, await response.text());
  return itemHash;
}

async function publish(code: string, on: object): Promise<string> {
  const form = new FormData();
  form.set('file', new Blob([new Uint8Array(storedZip({ 'main.py': code }))]), 'blob');
  const added = await fetch(`${core.url}/api/v0/storage/add_file`, { method: 'POST', body: form });
  const { hash } = (await added.json()) as { hash: string };
  const ref = await send('STORE', { item_type: 'storage', item_hash: hash });
  return send('PROGRAM', {
    ...{ type: 'vm-function', allow_amend: false, environment: {}, resources: { memory: 64, seconds: 30 } },
    code: { encoding: 'zip', entrypoint: 'main:app', ref },
    on: { http: true, ...on },
    runtime: { ref: RUNTIME },
  });
}

const ask = async ({ programs }: ProgramService, hash: string): Promise<unknown> => {
  const { result, start } = await programs!.run(hash, callOf({}, { method: 'GET', isRun: false }), 'test');
  assert.ok(result.kind === 'answer', result.kind === 'failed' ? result.traceback : '');
  return { start, ...JSON.parse(result.body.toString()) };
};

const PERSISTENT = `
import json, threading, time
began = time.time()

async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps({"began": began}).encode()})
`;

test('a persistent program is started without a call, answers, and stops when it is forgotten', async () => {
  await using running = await openNode();
  const { service } = running;
  const hash = await publish(PERSISTENT, { persistent: true });
  await until('it runs', () => service.programs!.sandboxes === 1);
  const first = (await ask(service, hash)) as { start: string; began: number };
  assert.equal(first.start, 'warm');
  assert.deepEqual(await ask(service, hash), first);
  await send('FORGET', { hashes: [hash] });
  await until('it is stopped', () => service.programs!.sandboxes === 0);
});

/** As the deployed SDK's application for messages, AlephApp, without the SDK. What it says is in the program's log. */
const SUBSCRIBED = `
import json

class App:
    def __init__(self):
        self.event_handlers = [self.note]

    async def note(self, event):
        print(json.dumps(json.loads(event["body"])["content"]["content"]))
        return {"type": "noted"}

    async def __call__(self, scope, receive, send):
        if scope["type"] == "aleph.message":
            for handler in self.event_handlers:
                await send(await handler(scope))

app = App()
`;
/** As an application over HTTP. */
const POSTED = `
import json
from fastapi import FastAPI, Request
app = FastAPI()

@app.post("/")
async def message(request: Request):
    print(json.dumps((await request.json())["content"]["content"]))
`;

test('programs are called with the messages that they ask for, each once, also over a restart of the node', async () => {
  const post = (content: unknown, channel: string) =>
    send('POST', { type: 'note', content, address: owner.address }, channel);
  const filters = [{ sender: owner.address, channel: 'news', content: { type: 'note' } }];
  const hashes: string[] = [];
  /** What the program was called with since the node started. */
  const seenBy = async ({ programs }: ProgramService, hash: string) => {
    const log = programs!.listLog(hash);
    return log.filter(({ type }) => type === 'stdout').map(({ text }): unknown => JSON.parse(text));
  };
  {
    await using running = await openNode();
    const { service } = running;
    for (const code of [SUBSCRIBED, POSTED]) hashes.push(await publish(code, { message: filters }));
    // What came before the node heard of the subscription is nobody's, so that the first one that counts is found out.
    for (const hash of hashes) {
      const seen = async () => {
        await post({}, 'news');
        return (await seenBy(service, hash)).length > 0;
      };
      await until('it is subscribed', seen, Boolean, { everyMs: 1_000 });
    }
    for (const [text, channel] of [
      ['first', 'news'],
      ['of another channel', 'other'],
      ['second', 'news'],
    ] as const)
      await post(text, channel);
    for (const hash of hashes) {
      const textsOf = async () => (await seenBy(service, hash)).filter((one) => typeof one === 'string');
      await until('both are there', textsOf, (texts) => texts.length >= 2);
      assert.deepEqual(await textsOf(), ['first', 'second']);
    }
  }
  await post('while it was away', 'news');
  await using running = await openNode();
  for (const hash of hashes) {
    await until(
      'what came meanwhile',
      () => seenBy(running.service, hash),
      (seen) => seen.length > 0,
    );
    assert.deepEqual(await seenBy(running.service, hash), ['while it was away']);
  }
});
