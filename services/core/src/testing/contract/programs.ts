import { signers, type TestCore } from '../core.ts';
import { canRunPrograms } from '../runner.ts';
import {
  alone,
  answers,
  type Case,
  type Cases,
  given,
  jsonCall,
  NO_HASH,
  programContent,
  refuses,
  refusesTooMany,
  refusesWithoutDatabase,
  signedCall,
  succeeds,
} from './case.ts';

const PROGRAMS = '/api/v0/programs';
const WEBHOOKS = '/api/v0/webhooks';
const program = (more: object = {}) => ({ type: 'PROGRAM', content: { ...programContent, ...more } });
const webhook = (more: object = {}) => ({
  type: 'WEBHOOK',
  content: { url: 'https://example.org/hook', events: ['message.new'], secret: 'told to nobody', ...more },
});
const run = (hash: string, body = '{"variables":{"name":"a"}}') => jsonCall(`/api/v0/run/${hash}`, body);

/** By a real compute node, which the shared core node has where this machine can make sandboxes. */
const runs = (code: string) => async (core: TestCore) => {
  const call = signedCall(PROGRAMS, program({ code, timeout: 1 }));
  const { body } = await core.post('/programs', String(call.body));
  return run(body.item_hash);
};
const ranCases: readonly Case[] = canRunPrograms
  ? [
      succeeds(runs('def main(variables):\n  return variables')),
      succeeds(runs('print("hello")')),
      refuses('PROGRAM_FAILED', runs('raise ValueError("on purpose")')),
      refuses('PROGRAM_CRASHED', runs('import os\nos._exit(1)')),
      refuses('PROGRAM_TIMED_OUT', runs('while True: pass')),
      refuses('PROGRAM_OUTPUT_TOO_LARGE', runs('def main(variables):\n  return "x" * (9 << 20)')),
    ]
  : [];

/** Programs and webhooks. */
export const programCases: Cases = {
  'POST /api/v0/programs': [
    succeeds(() => signedCall(PROGRAMS, program())),
    answers(202, () => signedCall(PROGRAMS, program({ code: NO_HASH }))),
    refuses('INVALID_CONTENT', () => signedCall(PROGRAMS, program({ runtime: 'perl' }))),
    refuses('UNKNOWN_FIELD', () => signedCall(PROGRAMS, program({ colour: 'red' }))),
    refuses('UNKNOWN_MESSAGE_TYPE', () => signedCall(PROGRAMS, webhook())),
    refuses('NOT_PERMITTED', () => signedCall(PROGRAMS, program({ address: signers.bob.address }))),
    refuses('MESSAGE_FORGOTTEN', async (core) => {
      const call = signedCall(PROGRAMS, program());
      const { body } = await core.post('/programs', String(call.body));
      await core.send(signers.alice, { type: 'FORGET', content: { hashes: [body.item_hash] } });
      await core.rooms.pipeline.idle();
      return call;
    }),
    refusesWithoutDatabase(() => signedCall(PROGRAMS, program())),
  ],
  'GET /api/v0/programs/assigned/{node_id}': [
    succeeds(`/api/v0/programs/assigned/${NO_HASH}`),
    refuses('INVALID_PARAMETERS', '/api/v0/programs/assigned/abc'),
  ],
  'GET /api/v0/programs/{program_hash}/runners': [
    succeeds(async (core) => ({ path: `/api/v0/programs/${await given.program(core)}/runners` })),
    refuses('PROGRAM_NOT_FOUND', `/api/v0/programs/${NO_HASH}/runners`),
    refuses('INVALID_HASH', '/api/v0/programs/abc/runners'),
    refusesWithoutDatabase(`/api/v0/programs/${NO_HASH}/runners`),
  ],
  'POST /api/v0/run/{program_hash}': [
    ...ranCases,
    alone(refuses('NO_RUNNER', async (core) => run(await given.program(core)))),
    alone(refuses('NO_RUNNER', async (core) => ({ path: `/api/v0/run/${await given.program(core)}` }))),
    refuses('PROGRAM_NOT_FOUND', () => run(NO_HASH)),
    refuses('PROGRAM_NOT_FOUND', async (core) => run(await given.message(core))),
    refuses('INVALID_HASH', () => run('abc')),
    refuses('INVALID_JSON', () => run(NO_HASH, '{')),
    refuses('INVALID_PARAMETERS', () => run(NO_HASH, '{"variables":[]}')),
    refuses('UNKNOWN_FIELD', () => run(NO_HASH, '{"colour":"red"}')),
    refuses('UNSUPPORTED_MEDIA_TYPE', () => ({ ...run(NO_HASH), headers: { 'content-type': 'image/png' } })),
    refuses('BODY_TOO_LARGE', () => run(NO_HASH, ' '.repeat(1024 * 1024 + 1))),
    refusesTooMany(`/api/v0/run/${NO_HASH}`, 10, 'POST'),
    refusesWithoutDatabase(() => run(NO_HASH)),
  ],
  'POST /api/v0/webhooks': [
    succeeds(() => signedCall(WEBHOOKS, webhook())),
    refuses('INVALID_CONTENT', () => signedCall(WEBHOOKS, webhook({ url: 'ftp://example.org' }))),
    refuses('INVALID_CONTENT', () => signedCall(WEBHOOKS, webhook({ events: ['everything'] }))),
    refuses('UNKNOWN_FIELD', () => signedCall(WEBHOOKS, webhook({ colour: 'red' }))),
    refuses('NOT_PERMITTED', () => signedCall(WEBHOOKS, webhook({ address: signers.bob.address }))),
    refuses('UNKNOWN_MESSAGE_TYPE', () => signedCall(WEBHOOKS, program())),
    refuses('INVALID_JSON', () => jsonCall(WEBHOOKS, '{')),
    refusesWithoutDatabase(() => signedCall(WEBHOOKS, webhook())),
  ],
};
