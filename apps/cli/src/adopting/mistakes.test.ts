import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { CoreClient, createSigner, generatePrivateKey } from '@skerry/client';
import { loadOrCreateKeyFile } from '@skerry/kit';
import { serving } from '@skerry/kit/testing/serving';
import { CREDIT_CHANNEL, CREDIT_POST } from '@skerry/protocol';
import { PUBLISH_MESSAGE } from '@skerry/protocol/api/core/messages';
import { startCore } from '../testing/core.ts';
import { skerryHere } from '../testing/here.ts';
import { createTestDir } from '../testing/run.ts';

const GRANTS = 3;
const YEAR = 31_536_000;

/** Passes on what it is asked, but of messages that are sent only so many. */
const startCutting = (target: string, sent: number) => {
  let left = sent;
  return serving(async (request, response) => {
    if (request.method === PUBLISH_MESSAGE.method && request.url === PUBLISH_MESSAGE.path && left-- <= 0)
      return void response.destroy();
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method = 'GET', headers } = request;
    const type = headers['content-type'] ?? 'application/json';
    const body = chunks.length === 0 ? {} : { body: Buffer.concat(chunks) };
    const inner = await fetch(`${target}${request.url}`, {
      method,
      headers: { 'content-type': type },
      ...body,
    });
    response.writeHead(inner.status, { 'content-type': 'application/json' });
    response.end(Buffer.from(await inner.arrayBuffer()));
  });
};

test('another address, another moment, and a connection that breaks: nothing is named as done, and the next run goes on', async () => {
  await using home = await createTestDir();
  const old = createSigner(generatePrivateKey());
  const keyFile = join(home.path, 'key');
  const next = createSigner(await loadOrCreateKeyFile(keyFile));
  await using core = await startCore(home.path, { SKERRY_CORE_CREDIT_PUBLISHERS: old.address });
  const now = Math.floor(Date.now() / 1000);
  const client = new CoreClient({ url: core.url, signer: old });
  for (let ref = 0; ref < GRANTS; ref++) {
    const distribution = { credits: [{ address: old.address, amount: 1, ref: `r${ref}` }] };
    const content = { type: CREDIT_POST.distribution, content: { distribution } };
    await client.postMessage({ type: 'POST', channel: CREDIT_CHANNEL, content, timestamp: now - 60 + ref });
  }
  const adopt = async (from: string, until: number, url = core.url, json = true) => {
    const given = ['--until', String(until), '--key-file', keyFile, ...(json ? ['--json'] : [])];
    return skerryHere({ SKERRY_HOME: home.path, SKERRY_CORE_URL: url }, ['credit', 'adopt', from, ...given]);
  };
  const refusalOf = async (from: string, until: number) => {
    const { out, err, code } = await adopt(from, until);
    assert.deepEqual([out, code === 0], ['', false]);
    return JSON.parse(err);
  };
  const other = await refusalOf(createSigner(generatePrivateKey()).address, now);
  assert.equal(other.code, 'MESSAGE_NOT_FOUND');
  assert.match(other.error, /never signed what a credit service signs/);
  const early = await refusalOf(old.address, now - YEAR);
  assert.deepEqual([early.code, /3 later.*check the moment/.test(early.error)], ['MESSAGE_NOT_FOUND', true]);
  assert.match((await refusalOf(next.address, now)).error, /name the new one/);

  await using cutting = await startCutting(core.url, 1);
  const broken = await adopt(old.address, now, cutting.url, false);
  assert.match(broken.err, /signed until then: 1; repeat the command to go on/);
  assert.notEqual(broken.code, 0);
  const { out, err, code } = await adopt(old.address, now, core.url, false);
  assert.equal(code, 0, err);
  assert.match(out, new RegExp(`until: ${new Date(now * 1_000).toISOString().slice(0, 19)}Z`));
  assert.match(out, /signed: 2\nsigned before: 1\n/);
  assert.match(out, new RegExp(`SKERRY_CORE_CREDIT_PUBLISHERS=${next.address} and restart it`));
});
