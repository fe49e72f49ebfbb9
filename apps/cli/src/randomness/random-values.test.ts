import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { after, describe, test } from 'node:test';
import {
  createVrfAnswer,
  parseVrfRequest,
  pureVrfEngine,
  type VrfClaimBody,
  verifyVrfToken,
  viewOfVrfAnswer,
  viewOfVrfVerdict,
} from '@skerry/protocol';
import { skerryHere } from '../testing/here.ts';
import { createTestDir } from '../testing/run.ts';

/** Nothing listens on the discard port: what works with it needs no network. */
const NOWHERE = 'http://127.0.0.1:9';
const prover = pureVrfEngine.find(3)!.createProver(new Uint8Array(32).fill(3));
const answerTo = (body: unknown) => viewOfVrfAnswer(createVrfAnswer(parseVrfRequest(body), prover));

const home = await createTestDir();
after(() => home[Symbol.asyncDispose]());

const run = (args: readonly string[], core = NOWHERE, input = '') =>
  skerryHere({ SKERRY_HOME: home.path, HOME: home.path }, ['vrf', ...args, '--core', core], input);

const honestly = (asked: Record<string, unknown>): Record<string, unknown> => answerTo(asked);

/** Speaks as a core node that has the key, and answers what it is told to. */
async function serve(generate: typeof honestly) {
  const server = createServer(async (request, response) => {
    const body = (await json(request)) as Record<string, unknown>;
    const reply = request.url!.endsWith('/generate')
      ? generate(body)
      : viewOfVrfVerdict(verifyVrfToken(body as unknown as VrfClaimBody));
    response.setHeader('content-type', 'application/json').end(JSON.stringify(reply));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

describe('skerry vrf', () => {
  const answer = answerTo({ seed: 'draw 7', min: 1, max: 49, count: 3 });
  const key = ['--public-key', answer.public_key];

  test('verifies offline by a given key, from a file, standard input or an argument', async () => {
    await using dir = await createTestDir();
    const file = join(dir.path, 'draw.json');
    await writeFile(file, JSON.stringify(answer));
    const people = await run(['verify', '--answer', `@${file}`, ...key]);
    assert.equal(people.code, 0, people.err);
    assert.equal(
      people.out,
      `valid: yes\nvalues: ${answer.values.join(' ')}\nasked: 3 from 1 to 49\npublic_key: ${answer.public_key}\n`,
    );
    const piped = await run(['verify', '--answer', '-', '--json', ...key], NOWHERE, JSON.stringify(answer));
    assert.equal(piped.code, 0);
    const verdict = JSON.parse(piped.out) as { valid: boolean; values: number[] };
    assert.deepEqual([verdict.valid, verdict.values], [true, answer.values]);
  });

  test('says no, with the reason and exit code 1, to what does not hold', async () => {
    const cases: [unknown, string[], string][] = [
      [{ ...answer, seed: 'draw 8' }, key, 'VRF_PROOF_REFUTED'],
      [{ ...answer, value: 50 }, key, 'VRF_VALUE_MISMATCH'],
      [{ ...answer, proof: '0x00' }, key, 'VRF_PROOF_MALFORMED'],
      // What an answer says of itself is claimed as well.
      [{ ...answer, min: 2 }, key, 'VRF_VALUE_MISMATCH'],
      [{ ...answer, max: 1_000_000 }, key, 'VRF_VALUE_MISMATCH'],
      [{ ...answer, count: 2 }, key, 'VRF_VALUE_MISMATCH'],
      [{ ...answer, public_key: '11'.repeat(32) }, key, 'VRF_VALUE_MISMATCH'],
      [answer, ['--public-key', '11'.repeat(32)], 'VRF_KEY_UNKNOWN'],
    ];
    for (const [claim, more, reason] of cases) {
      const { out, code } = await run(['verify', '--json', '--answer', JSON.stringify(claim), ...more]);
      const verdict = JSON.parse(out) as { valid: boolean; reason: { code: string } };
      assert.deepEqual([code, verdict.valid, verdict.reason.code], [1, false, reason]);
    }
  });

  test('wrong use ends with 2, no node with 5', async () => {
    assert.equal((await run(['verify', '--answer', '{}', ...key])).code, 2);
    const more = JSON.stringify({ ...answer, maximum: 6 });
    assert.equal((await run(['verify', '--answer', more, ...key])).code, 2);
    assert.equal((await run(['verify', '--answer', JSON.stringify(answer), '--public-key', 'xyz'])).code, 2);
    const reversed = await run(['generate', 's', '--min', '2', '--max', '1']);
    assert.equal(reversed.code, 2);
    assert.match(reversed.err, /min \(2\) is above max \(1\)/);
    assert.equal((await run(['generate', 's', '--min', '1.5'])).code, 2);
    assert.equal((await run(['verify', '--answer', JSON.stringify(answer)])).code, 5);
  });

  test('checks what a node answers before it prints it', async () => {
    await using honest = await serve(honestly);
    const made = await run(['generate', 's', '--min', '-3', '--max', '3', '--json'], honest.url);
    assert.equal(made.code, 0, made.err);
    assert.deepEqual(JSON.parse(made.out), answerTo({ seed: 's', min: -3, max: 3 }));
    assert.equal((await run(['verify', '--answer', made.out], honest.url)).code, 0);
    const lies: (typeof honestly)[] = [
      (asked) => ({ ...answerTo(asked), value: 1, values: [1] }),
      (asked) => ({ ...answerTo(asked), public_key: '11'.repeat(32) }),
      // A proof that holds, of something else than what was asked.
      (asked) => answerTo({ ...asked, seed: 'one that suits the node' }),
      (asked) => answerTo({ ...asked, max: 6 }),
    ];
    for (const lie of lies) {
      await using liar = await serve(lie);
      const refused = await run(['generate', 's', '--max', '1000000'], liar.url);
      assert.deepEqual([refused.code, refused.out], [5, '']);
      assert.match(refused.err, /proof in the core node's answer is false/);
    }
  });
});
