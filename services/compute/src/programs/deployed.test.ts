import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import {
  buildNetworkMessage,
  buildStoredMessage,
  CoreClient,
  createSigner,
  generatePrivateKey,
} from '@skerry/client';
import { CoreSync } from '@skerry/client/core-sync';
import { createLogger, readConfig } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { AppError, isCid } from '@skerry/protocol';
import { computeConfig } from '../config.ts';
import { RealCore } from '../testing/real-core.ts';
import { openPrograms, type ProgramService } from './open.ts';
import { callOf } from './testing/setup.ts';
import { storedZip } from './testing/zip.ts';

/** Programs as the SDKs of the deployed network make them: a zip on IPFS, an image by its hash as runtime. */

const RUNTIME = '63f07193e6ee9d207b7d1fcf8286f9aee34e6f12f101d2ec77c1229f92964696';
const FASTAPI = `
import os
from fastapi import FastAPI, Request

app = FastAPI()
calls = 0

@app.get("/")
def index():
    global calls
    calls += 1
    return {"calls": calls, "own": os.environ["OWN"]}

@app.post("/echo/{name}")
async def echo(name: str, request: Request, times: int = 1):
    return {"name": name, "body": (await request.json())["text"] * times}

@app.get("/missing")
async def missing():
    raise KeyError("on purpose")
`;

const signer = createSigner(generatePrivateKey());
const closing = new AsyncDisposableStack();
let core: RealCore;
let service: ProgramService;

before(async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  const home = await mkdtemp(join(tmpdir(), 'skerry-deployed-'));
  closing.defer(() => rm(home, { recursive: true, force: true }));
  core = closing.use(await new RealCore().start());
  service = closing.use(
    await openPrograms({
      config: readConfig(computeConfig, { SKERRY_HOME: home }),
      core: new CoreClient({ url: core.url, signer: createSigner(generatePrivateKey()) }),
      sync: new CoreSync(core.url),
      nodeId: '5'.repeat(64),
      log: createLogger('test', 'error'),
      signal: new AbortController().signal,
    }),
  );
});
after(() => closing.disposeAsync());

async function post(path: string, body: FormData | string): Promise<{ hash: string }> {
  const headers = typeof body === 'string' ? { 'content-type': 'application/json' } : {};
  const response = await fetch(`${core.url}/api/v0${path}`, { method: 'POST', body, headers });
  assert.equal(response.status, 200, await response.clone().text());
  return (await response.json()) as { hash: string };
}

async function send(type: string, content: Record<string, unknown>): Promise<string> {
  const { body, itemHash } = buildNetworkMessage({ type, content, sync: true }, signer);
  await post('/messages', body);
  return itemHash;
}

/** The message that keeps it on IPFS. @param ref the first version, of a later one */
async function store(bytes: Buffer, ref?: string): Promise<string> {
  const form = new FormData();
  form.set('file', new Blob([new Uint8Array(bytes)]), 'blob');
  const { hash } = await post('/ipfs/add_file', form);
  assert.ok(isCid(hash));
  return send('STORE', { item_type: 'ipfs', item_hash: hash, ...(ref ? { ref } : {}) });
}

/** A content as the SDKs write it. */
const programOf = (ref: string, more: Record<string, unknown> = {}) => ({
  type: 'vm-function',
  allow_amend: false,
  code: { encoding: 'zip', entrypoint: 'main:app', ref, use_latest: true },
  on: { http: true, persistent: false },
  environment: { reproducible: false, internet: true, aleph_api: true, shared_cache: false },
  resources: { vcpus: 1, memory: 128, seconds: 30 },
  runtime: { ref: RUNTIME, use_latest: true, comment: '' },
  volumes: [],
  metadata: {},
  payment: { chain: 'ETH', type: 'hold' },
  ...more,
});

async function answerOf(hash: string, more: Parameters<typeof callOf>[1]): Promise<[number, unknown]> {
  const { result } = await service.programs!.run(hash, callOf({}, { isRun: false, ...more }), 'test');
  assert.ok(result.kind === 'answer', result.kind === 'failed' ? result.traceback : '');
  return [result.status, JSON.parse(result.body.toString())];
}

test('an application of FastAPI in a zip on IPFS runs, with its variables; so does one of several blocks', async () => {
  const variables = { OWN: 'x' };
  for (const filler of [0, 600_000]) {
    const files = { 'main.py': FASTAPI, 'filler.txt': randomBytes(filler).toString('hex') };
    const hash = await send('PROGRAM', programOf(await store(storedZip(files)), { variables }));
    const get = (path: string) => answerOf(hash, { method: 'GET', path });
    assert.deepEqual(await get('/'), [200, { calls: 1, own: 'x' }]);
    assert.deepEqual(await get('/'), [200, { calls: 2, own: 'x' }]);
    assert.deepEqual((await get('/none'))[0], 404);
    const echo = { method: 'POST', path: '/echo/ada', query: 'times=2' };
    const headers = { 'content-type': 'application/json' };
    const body = Buffer.from('{"text":"a"}');
    assert.deepEqual(await answerOf(hash, { ...echo, headers, body }), [200, { name: 'ada', body: 'aa' }]);
    const { result } = await service.programs!.run(
      hash,
      callOf({}, { method: 'GET', path: '/missing' }),
      'test',
    );
    assert.ok(result.kind === 'failed' && /KeyError: 'on purpose'/.test(result.traceback));
  }
});

test('an application of Flask runs', async () => {
  const code = `
from flask import Flask, jsonify, request
app = Flask(__name__)

@app.route("/sum", methods=["POST"])
def sum():
    return jsonify(sum=request.json["a"] + int(request.args["b"]), type=request.headers["x-a"]), 201
`;
  const hash = await send('PROGRAM', programOf(await store(storedZip({ 'main.py': code }))));
  const call = { method: 'POST', path: '/sum', query: 'b=3', body: Buffer.from('{"a":2}') };
  const headers = { 'content-type': 'application/json', 'x-a': 'y' };
  assert.deepEqual(await answerOf(hash, { ...call, headers }), [201, { sum: 5, type: 'y' }]);
});

test('a content that is a file is read; a runtime that nobody has is named', async () => {
  const ref = await store(storedZip({ 'main.py': 'def app(variables):\n  return [1]' }));
  const { body, content, itemHash } = buildStoredMessage(
    { type: 'PROGRAM', content: programOf(ref), sync: true },
    signer,
  );
  assert.equal((await post('/storage/add_json', content)).hash, itemHash);
  await post('/messages', body);
  assert.deepEqual(await answerOf(itemHash, {}), [200, [1]]);
  const other = await send('PROGRAM', programOf(ref, { runtime: { ref: 'f'.repeat(64), use_latest: true } }));
  await assert.rejects(
    answerOf(other, {}),
    (error) =>
      error instanceof AppError && error.code === 'PROGRAM_UNSUPPORTED' && /f{64}/.test(error.message),
  );
});

test('use_latest runs the newest version of the code, also where it came later; without it the pinned one runs', async () => {
  const versionOf = (text: string) => storedZip({ 'main.py': `def app(variables):\n  return "${text}"` });
  const first = await store(versionOf('first'));
  const latest = await send('PROGRAM', programOf(first));
  const code = { ...programOf(first).code, use_latest: false };
  const pinned = await send('PROGRAM', programOf(first, { code }));
  const textOf = async (hash: string) => {
    const { result } = await service.programs!.run(hash, callOf({}, {}), 'test');
    return result.kind === 'answer' ? result.body.toString() : result.traceback;
  };
  assert.equal(await textOf(latest), 'first');
  await store(versionOf('second'), first);
  const made = await send('PROGRAM', programOf(first, { metadata: { name: 'made later' } }));
  assert.deepEqual([await textOf(made), await textOf(pinned)], ['second', 'first']);
  await until('the newest version', async () => (await textOf(latest)) === 'second');
});
