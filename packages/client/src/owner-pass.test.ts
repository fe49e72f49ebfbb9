import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AppError, bytesToHex, OPERATION_WINDOW_MS, OWNER_HEADERS, verifyOwnerPass } from '@skerry/protocol';
import fc from 'fast-check';
import { OwnerPass } from './owner-pass.ts';
import { createSigner, generatePrivateKey } from './signer.ts';

const NOW = 1_750_000_000_000;
const PATH = '/control/machine/abc/stop';
const signer = createSigner(generatePrivateKey());
const isError = (code: string) => (error: unknown) => error instanceof AppError && error.code === code;
const NODE = 'a'.repeat(64);
const names = { domain: 'node.example' };
const expected = {
  ...{ domain: 'node.example', node: NODE, method: 'POST', path: PATH, query: '', hasBody: false },
  nowMs: NOW,
};

async function sign(domain = 'node.example', atMs = NOW) {
  const headers = await (await OwnerPass.create(signer, { domain }, NOW)).headers(
    { method: 'POST', path: PATH },
    atMs,
  );
  return { publicKey: headers[OWNER_HEADERS.publicKey], operation: headers[OWNER_HEADERS.operation] };
}

describe('owner pass', () => {
  test('what an owner signs is verified, and names the owner', async () => {
    assert.equal((await verifyOwnerPass(await sign(), expected)).address, signer.address);
    const pass = await OwnerPass.create(signer, { ...names, nodeId: NODE }, NOW);
    const parts = await pass.sign({ method: 'GET', path: '/other' }, NOW);
    const frame = { publicKey: parts['X-SignedPubKey'], operation: parts['X-SignedOperation'] };
    const other = { ...expected, method: 'GET', path: '/other' };
    assert.equal((await verifyOwnerPass(frame, other)).address, signer.address);
  });

  test('another node, method, path or time is refused', async () => {
    const good = await sign();
    for (const change of [
      { domain: 'other.example' },
      { method: 'GET' },
      { path: `${PATH}/more` },
      { nowMs: NOW + OPERATION_WINDOW_MS + 1 },
      { nowMs: NOW - OPERATION_WINDOW_MS - 1 },
    ])
      await assert.rejects(verifyOwnerPass(good, { ...expected, ...change }), isError('INVALID_SIGNATURE'));
    const late = { ...expected, nowMs: NOW + 2 * 3_600_000 };
    await assert.rejects(
      verifyOwnerPass(await sign('node.example', late.nowMs), late),
      isError('INVALID_SIGNATURE'),
      'a key that has expired',
    );
  });

  test('whoever signs by a wrong clock is told so, and how far it is off', async () => {
    const told = async (atMs: number, nowMs: number) => {
      const { message, details } = await verifyOwnerPass(await sign('node.example', atMs), {
        ...expected,
        nowMs,
      }).then(
        () => assert.fail('it was taken'),
        (error: AppError) => error,
      );
      assert.deepEqual(details, { node_time: nowMs / 1000 });
      return message;
    };
    const rule = "the time of the node's clock; look at the clocks";
    const hour = 3_600_000;
    assert.equal(await told(NOW + hour, NOW), `the operation was signed 3600 seconds after ${rule}`);
    assert.equal(await told(NOW, NOW + hour / 2), `the operation was signed 1800 seconds before ${rule}`);
    // The clock of who signs is a day behind: the key that it made for an hour is over.
    assert.equal(await told(NOW, NOW + 25 * hour), `the signed key expired 86400 seconds before ${rule}`);
  });

  test('a part of another pass, a changed payload and nothing at all are refused', async () => {
    const [one, other] = [await sign(), await sign()];
    const mixed = { publicKey: one.publicKey, operation: other.operation };
    await assert.rejects(verifyOwnerPass(mixed, expected), isError('INVALID_SIGNATURE'));
    const key = JSON.parse(one.publicKey!) as { payload: string; signature: string };
    const text = Buffer.from(key.payload, 'hex')
      .toString()
      .replace(signer.address, `0x${'1'.repeat(40)}`);
    const payload = bytesToHex(new TextEncoder().encode(text));
    const forged = { ...one, publicKey: JSON.stringify({ ...key, payload }) };
    await assert.rejects(verifyOwnerPass(forged, expected), isError('INVALID_SIGNATURE'));
    const nothing = { publicKey: undefined, operation: undefined };
    await assert.rejects(verifyOwnerPass(nothing, expected), isError('SIGNATURE_REQUIRED'));
  });

  test('whatever strangers send is refused by an error of ours', async () => {
    const good = await sign();
    const junk = fc.oneof(
      fc.string(),
      fc.json(),
      fc.record({ payload: fc.string(), signature: fc.string() }).map((value) => JSON.stringify(value)),
      fc
        .json()
        .map((text) =>
          JSON.stringify({ payload: bytesToHex(new TextEncoder().encode(text)), signature: 'ff' }),
        ),
    );
    await fc.assert(
      fc.asyncProperty(junk, fc.boolean(), async (text, isKey) => {
        const headers = isKey ? { ...good, publicKey: text } : { ...good, operation: text };
        await assert.rejects(verifyOwnerPass(headers, expected), (error) => error instanceof AppError);
      }),
      { numRuns: 300 },
    );
  });
});
