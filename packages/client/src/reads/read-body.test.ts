import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { hashOfFile } from '../files/stored-file.ts';
import { causeOf } from './cause.ts';
import { readText } from './read-body.ts';

const url = 'http://node';
const failing = (error: unknown) => new ReadableStream({ start: (controller) => controller.error(error) });
const read = (error: unknown) => readText({ url, body: failing(error), text: async () => '' });

test('an answer that takes too long is told as that, and no number is told as a cause', async () => {
  await assert.rejects(
    read(new DOMException('late', 'TimeoutError')),
    ({ code, message, details, cause }: AppError) => {
      assert.deepEqual([code, details, cause], ['UPSTREAM_UNAVAILABLE', { late: true }, undefined]);
      assert.equal(message, 'http://node was not done with its answer in the time that it was given');
      return true;
    },
  );
  await assert.rejects(read(new DOMException('the network changed', 'NetworkError')), {
    message: 'http://node broke its answer off (the network changed)',
  });
  const ended = new DOMException('its user went away', 'AbortError');
  await assert.rejects(read(ended), ended);
  assert.equal(causeOf(Object.assign(new Error('x'), { code: 'ECONNRESET' })), 'ECONNRESET');
});

test('a certificate that is not believed is told in words, as `fetch` has it and as `node:https`', () => {
  const wordsOf = (code: string) => {
    const own = Object.assign(new Error('x'), { code });
    const words = causeOf(own);
    assert.equal(causeOf(new TypeError('fetch failed', { cause: own })), words);
    return words;
  };
  assert.equal(wordsOf('CERT_HAS_EXPIRED'), "its certificate has expired, by this computer's clock");
  assert.equal(wordsOf('CERT_NOT_YET_VALID'), "its certificate is not valid yet, by this computer's clock");
  assert.equal(wordsOf('ERR_TLS_CERT_ALTNAME_INVALID'), 'its certificate is for another name');
  assert.match(wordsOf('UNABLE_TO_VERIFY_LEAF_SIGNATURE'), /^its certificate is of an authority that/);
  assert.match(wordsOf('DEPTH_ZERO_SELF_SIGNED_CERT'), /^its certificate is signed by nobody/);
  assert.equal(wordsOf('CRL_HAS_EXPIRED'), 'CRL_HAS_EXPIRED');
});

test('of a file whose bytes broke off, it is told why it was asked for in vain', async () => {
  const refused = new AppError('RATE_LIMITED', 'later');
  const core = { getMessage: () => Promise.reject(refused) };
  const response = new Response(failing(new TypeError('terminated')));
  await assert.rejects(hashOfFile(core, 'a'.repeat(64), response), refused);
});
