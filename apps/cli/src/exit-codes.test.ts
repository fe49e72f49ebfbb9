import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { request } from '@skerry/client';
import { makeCertificate } from '@skerry/kit/testing/certificate';
import { serving } from '@skerry/kit/testing/serving';
import { AppError, ERRORS, type ErrorCode } from '@skerry/protocol';
import { CommanderError } from 'commander';
import { exitCodeOf } from './exit-codes.ts';
import { describeFailure, renderFailure } from './failure.ts';

const exitOf = (code: ErrorCode) => describeFailure(new AppError(code, 'x')).exitCode;

test('every code of the catalogue has an exit code that is not success', () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    const exitCode = exitCodeOf(new AppError(code, 'x'));
    assert.ok((exitCode >= 1 && exitCode <= 6) || code === 'INTERRUPTED', code);
  }
});

test('what scripts rely on', () => {
  assert.equal(exitOf('INVALID_CONTENT'), 2);
  assert.equal(exitOf('BODY_TOO_LARGE'), 2);
  assert.equal(exitOf('KEY_NOT_FOUND'), 3);
  assert.equal(exitOf('INSTANCE_NOT_FOUND'), 3);
  assert.equal(exitOf('NOT_PERMITTED'), 4);
  assert.equal(exitOf('INVALID_SIGNATURE'), 4);
  assert.equal(exitOf('UPSTREAM_UNAVAILABLE'), 5);
  assert.equal(exitOf('TIMED_OUT'), 5);
  assert.equal(exitOf('NO_CAPACITY'), 5);
  assert.equal(exitOf('NO_RUNNER'), 5);
  assert.equal(exitOf('PROGRAM_FAILED'), 6);
  assert.equal(exitOf('PROGRAM_TIMED_OUT'), 6);
  assert.equal(exitOf('KEY_EXISTS'), 1);
  assert.equal(exitOf('INTERRUPTED'), 130);
  assert.equal(exitOf('VM_START_FAILED'), 1);
  assert.equal(describeFailure(new CommanderError(1, 'commander.unknownOption', 'error: x')).exitCode, 2);
});

test('for people: a sentence, its code, and a hint where there is one', () => {
  const error = new AppError('KEY_NOT_FOUND', 'no key yet', { details: { hint: 'make one' } });
  assert.equal(
    renderFailure(describeFailure(error), false),
    'error: no key yet (KEY_NOT_FOUND)\nhint: make one\n',
  );
  const plain = new AppError('MESSAGE_NOT_FOUND', 'there is no message');
  assert.equal(
    renderFailure(describeFailure(plain), false),
    'error: there is no message (MESSAGE_NOT_FOUND)\n',
  );
});

test("a request that a node refuses by its clock is refused by this computer's, and no other signature", () => {
  const of = (details?: object) => describeFailure(new AppError('INVALID_SIGNATURE', 'no', { details })).hint;
  assert.equal(of({ node_time: 1_800_000_000 }), "set this computer's clock");
  assert.equal(of(), undefined);
});

/** What is told of a server that is asked. */
async function toldOf(server: Server, scheme: 'http' | 'https', timeoutMs?: number): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    await request(url, timeoutMs === undefined ? {} : { timeoutMs });
    return assert.fail('it does not answer');
  } catch (error) {
    return renderFailure(describeFailure(error), false).replace(url, 'URL');
  } finally {
    server.close();
  }
}

test('one that hangs, and one whose certificate is not believed, are told apart from one that is not there', async () => {
  const silent = createTcpServer((socket) => socket.on('error', () => {}).resume());
  assert.match(
    await toldOf(silent, 'http', 50),
    /^error: URL does not answer \(no answer within 50 ms\) \(UPSTREAM_UNAVAILABLE\)\nhint: it hangs, is overloaded, or/,
  );
  const certificate = await makeCertificate('IP:127.0.0.1');
  assert.match(
    await toldOf(createTlsServer(certificate), 'https'),
    /^error: URL does not answer \(its certificate is signed by nobody but itself\) \(UPSTREAM_UNAVAILABLE\)\nhint: nothing was sent\./,
  );
  await using service = await serving(() => {});
  // Nobody else has its port there. A port such as 9 would not do: `fetch` itself refuses it.
  const nowhere = service.url.replace('127.0.0.1', '127.0.0.2');
  const { body, hint } = describeFailure(await request(nowhere).catch((caught: unknown) => caught));
  assert.match(body.error, /does not answer \(ECONNREFUSED\)$/);
  assert.match(hint!, /^is the network running\?/);
});

test('for programs: the error body of the network', () => {
  const error = new AppError('NO_CAPACITY', 'full', { details: { nodes: 2 } });
  assert.deepEqual(JSON.parse(renderFailure(describeFailure(error), true)), {
    error: 'full',
    status: 'error',
    code: 'NO_CAPACITY',
    details: { nodes: 2 },
  });
});

test("the system's refusals are told in its words; our faults with where they are", () => {
  const refusal = Object.assign(new Error('ENOSPC: no space left on device, write'), { syscall: 'write' });
  assert.equal(describeFailure(refusal).body.error, 'ENOSPC: no space left on device, write');
  assert.match(describeFailure(new TypeError('oops')).body.error, /oops\n\s+at /);
});
