import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '@skerry/protocol';
import { withSent } from './lost.ts';
import { request } from './request.ts';
import { answering } from './testing/answering.ts';

const itemHash = 'a'.repeat(64);
const detailsOf = (error: unknown) =>
  withSent(itemHash, Promise.reject(error)).then(
    () => assert.fail('it was answered'),
    (caught: AppError) => caught.details,
  );
const failing = (cause: Error) => new AppError('UPSTREAM_UNAVAILABLE', 'no answer', { cause });
/** As `node:https` says it, and as `fetch` does. */
const waysOf = (code: string) => {
  const own = Object.assign(new Error('x'), { code });
  return [failing(own), failing(new TypeError('fetch failed', { cause: own }))];
};

test('a message may have arrived where its connection broke, and not where there was none, nor a certificate that is believed', async () => {
  const unsent = [
    ...['ECONNREFUSED', 'ENOTFOUND', 'UND_ERR_CONNECT_TIMEOUT', 'EPROTO', 'ERR_SSL_WRONG_VERSION_NUMBER'],
    ...['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN'],
    ...[
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      'CRL_HAS_EXPIRED',
      'INVALID_CA',
    ],
    ...['ERR_TLS_CERT_ALTNAME_INVALID', 'HOSTNAME_MISMATCH', 'PATH_LENGTH_EXCEEDED', 'INVALID_PURPOSE'],
  ];
  for (const code of unsent)
    for (const error of waysOf(code)) assert.equal(await detailsOf(error), undefined, code);
  const open = ['ECONNRESET', 'UND_ERR_SOCKET', 'ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC', 'ABORT_ERR'];
  for (const code of open)
    for (const error of waysOf(code)) assert.deepEqual(await detailsOf(error), { item_hash: itemHash }, code);
  const told = new AppError('INTERNAL', 'no', { details: { phase: 'writing' } });
  assert.deepEqual(await detailsOf(told), { phase: 'writing', item_hash: itemHash });
  const refused = new AppError('INVALID_CONTENT', 'no');
  await assert.rejects(withSent(itemHash, Promise.reject(refused)), refused);
});

test('whoever asks by https where no TLS is spoken has sent nothing', async () => {
  await using plain = await answering({});
  const url = plain.url.replace('http:', 'https:');
  const error = await request(url, { method: 'POST', body: '{}' }).catch((caught: unknown) => caught);
  assert.match((error as AppError).message, /speaks no TLS/);
  assert.equal(await detailsOf(error), undefined);
});

test('a service has no say in which message may have arrived', async () => {
  const refusal = (code: string) => ({
    status: 'error',
    code,
    error: 'no',
    details: { item_hash: itemHash, x: 1 },
  });
  const told = async (code: string) => {
    await using node = await answering({}, refusal(code));
    const error = await request(node.url).catch((caught: unknown) => caught);
    return (error as AppError).details;
  };
  for (const code of ['UPSTREAM_UNAVAILABLE', 'INTERNAL', 'OVERLOADED'])
    assert.deepEqual(await told(code), { x: 1 });
  assert.deepEqual(await told('FILE_NOT_FOUND'), { item_hash: itemHash, x: 1 });
});
